/** Addresses of repositories that a run names: data from a record, held against what a worker may fetch from. */

export type RepositoryAddress = {
  /** As git takes it. */
  readonly url: string;
  /** As patterns see it: always with a protocol, without `.git` at its end. */
  readonly plain: string;
};

export type AddressFault = { readonly fault: string };

/** What a worker fetches from where its config does not say: anything but folders of its own machine. */
export const ANY_REPOSITORY: readonly string[] = ["https://**", "ssh://**"];

/** Refused: what git could take for an option, what leads elsewhere than it says, passwords, other protocols. */
export function readRepositoryAddress(text: string): RepositoryAddress | AddressFault {
  if (text === "" || text.length > 2000) return { fault: "it is empty or too long" };
  if (!/^[\x21-\x7e]+$/.test(text)) return { fault: "it holds blanks or characters that are not ASCII" };
  if (text.startsWith("-")) return { fault: "it begins with -" };
  if (/[\\?#]|%(?:2e|2f|5c|00)/i.test(text)) return { fault: "it holds \\, ?, # or encoded separators" };
  const scp = /^(?:([\w.-]+)@)?([\w.-]+):(?!\/\/|:)(.+)$/.exec(text);
  if (scp !== null) {
    const [, user, host = "", path = ""] = scp;
    const who = user === undefined ? "" : `${user}@`;
    const fault = hostFault(host) ?? (user?.startsWith("-") ? "its user begins with -" : pathFault(path));
    if (fault !== null) return { fault };
    return { url: text, plain: plainOf(`ssh://${who}${host.toLowerCase()}/${path.replace(/^\/+/, "")}`) };
  }
  if (!URL.canParse(text)) return { fault: "it is not an address" };
  const { protocol, hostname, host, username, password, pathname } = new URL(text);
  if (!PROTOCOLS.has(protocol)) return { fault: "only https, ssh and file are used" };
  if (password !== "") return { fault: "it holds a password" };
  const isFile = protocol === "file:";
  const fault =
    (isFile ? (host === "" ? null : "it names another host") : hostFault(hostname)) ?? pathFault(text);
  if (fault !== null) return { fault };
  if (username.startsWith("-")) return { fault: "its user begins with -" };
  const who = protocol === "ssh:" && username !== "" ? `${username}@` : "";
  return { url: text, plain: plainOf(`${protocol}//${who}${host.toLowerCase()}${pathname}`) };
}

const PROTOCOLS: ReadonlySet<string> = new Set(["https:", "ssh:", "file:"]);

function hostFault(host: string): string | null {
  return host === "" || host.startsWith("-") ? "its host is missing or begins with -" : null;
}

/** A pattern would match another place than git goes to. */
function pathFault(path: string): string | null {
  const parts = path.split("/");
  if (parts.some((part) => part === ".." || part === ".")) return "its path holds . or ..";
  return path.startsWith("-") ? "its path begins with -" : null;
}

function plainOf(address: string): string {
  return address.replace(/\/+$/, "").replace(/\.git$/, "");
}

/** `*` stands for a part of a name, `**` for anything. A folder of the machine is fetched from only where a pattern names `file://`. */
export function mayFetch({ plain }: RepositoryAddress, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => {
    if (plain.startsWith("file:") && !pattern.startsWith("file://")) return false;
    const parts = plainOf(pattern).split(/(\*\*?)/);
    const form = parts.map((part) =>
      part === "**" ? ".*" : part === "*" ? "[^/]*" : part.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"),
    );
    return new RegExp(`^${form.join("")}$`).test(plain);
  });
}
