/** Rules about the sandbox: hosts that say what they mean, and folders that can be opened without opening everything. */
import { faultOfHost } from "../../flow/hosts.ts";
import { isWritten } from "../text/document.ts";
import type { LoadedFlow } from "./loaded.ts";
import { error, type Codes, type Rules, type Tell } from "./rule.ts";

export const rules: Rules = { all: [checkSandbox] };

export const codes = {
  "SANDBOX-HOST": error(
    "sandbox host",
    "A host list is only as strict as its widest entry: commands can send anything they can read to an allowed host.",
  ),
  "SANDBOX-PATH": error(
    "sandbox folder",
    "A command that can write to the home folder, the run records or the trust list is not confined.",
  ),
} satisfies Codes;

function checkSandbox({ agentDocument: document, agent }: LoadedFlow, tell: Tell): void {
  const { network, filesystem } = agent.runner.boundaries.sandbox;
  const at = "/runner/boundaries/sandbox";
  if (!isWritten(document, ["runner", "boundaries", "sandbox"])) return;
  if (network.mode === "none" && network.trustedDomains.length > 0) {
    tell({
      code: "SANDBOX-HOST",
      document,
      pointer: `${at}/network/trustedDomains`,
      message: 'trustedDomains names hosts, but network.mode is "none".',
      fix: 'Remove trustedDomains, or set network.mode to "custom".',
    });
  }
  for (const [place, host] of network.trustedDomains.entries()) {
    const fault = faultOfHost(host);
    if (fault === null) continue;
    const pointer = `${at}/network/trustedDomains/${place}`;
    const message = `The host ${JSON.stringify(host)} in trustedDomains cannot be allowed: ${fault.why}.`;
    tell({ code: "SANDBOX-HOST", document, pointer, message, fix: fault.fix });
  }
  for (const [place, path] of filesystem.allowedPaths.entries()) {
    const why = faultOfPath(path);
    if (why === null) continue;
    const pointer = `${at}/filesystem/allowedPaths/${place}`;
    tell({ ...refusedFolder(path, why), document, pointer });
  }
}

export function refusedFolder(path: string, why: string) {
  const message = `The folder ${JSON.stringify(path)} in allowedPaths cannot be opened for writing: ${why}.`;
  return { code: "SANDBOX-PATH", message, fix: "Name only the folder that is needed." } as const;
}

/** What can be told from the words alone; where they lead is looked at where the disk is. */
function faultOfPath(path: string): string | null {
  if (path.trim() === "") return "it is empty";
  if (/\p{Cc}/u.test(path)) return "it contains a control character";
  if (/[*?[\]]/.test(path)) return "wildcards are not supported here";
  if (/^\/+\.?$/.test(path)) return "it is the whole disk";
  if (/^~\/?\.?$/.test(path)) return "it is your home folder";
  if (/^~[^/]/.test(path)) return "~ only works for your own home folder";
  return null;
}
