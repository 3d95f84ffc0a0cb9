/** Which hosts can be allowed: a name that says what it means, without opening everything. */

type HostFault = { readonly why: string; readonly fix: string };

const NAME = "Write a host name such as registry.npmjs.org or *.example.com, optionally with :PORT.";

export function faultOfHost(host: string): HostFault | null {
  const [, wildcard, name = "", port] = /^(\*\.)?([A-Za-z0-9.-]*)(?::(\d{1,5}))?$/.exec(host) ?? [];
  if (host === "*" || host === "*.") return { why: "it matches every host", fix: NAME };
  const labels = name.split(".");
  if (name === "" || !labels.every(isLabel)) return { why: "it is not a host name", fix: NAME };
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535))
    return { why: `${port} is not a valid port`, fix: NAME };
  if (wildcard !== undefined && labels.length < 2)
    return { why: `it matches every host below .${name}`, fix: NAME };
  if (isLoopback(name) && port === undefined) {
    return { why: "it matches every service on this machine", fix: `Name the port: ${host}:8080.` };
  }
  return null;
}

function isLabel(label: string): boolean {
  return /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(label);
}

/** Any way to write this machine's own addresses; the shorter ones are taken for them by some programs. */
function isLoopback(name: string): boolean {
  return /^(?:.*\.)?localhost$|^127\.|^0(?:\.0)*$|^0\.0\.0\.0$|^0x|^\d+$/i.test(name);
}
