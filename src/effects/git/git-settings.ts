/**
 * What a repository's own settings could make git start, and what is said to git in their place.
 *
 * The settings of the user and the system stay as they are: only they can write them. Those of the repository (its
 * `config`, its `config.worktree`, and what these include) came with a clone or were written by a run.
 */

/** One line of `git config --list`. A key without a value is true. */
export type GitSetting = {
  readonly scope: string;
  /** The file it stands in; null: it was given on the command line. */
  readonly file: string | null;
  readonly key: string;
  readonly value: string;
};

/** Reads `git config --list --show-scope --show-origin -z`. */
export function parseSettings(out: string): readonly GitSetting[] {
  const parts = out.split("\0");
  return Array.from({ length: Math.floor(parts.length / 3) }, (_, index) => {
    const [scope = "", origin = "", line = ""] = parts.slice(index * 3);
    const end = line.indexOf("\n");
    const [key, value] = end === -1 ? [line, "true"] : [line.slice(0, end), line.slice(end + 1)];
    return { scope, file: origin.startsWith("file:") ? origin.slice("file:".length) : null, key, value };
  });
}

export type Overruled = {
  /** Said to git after all files, so that it counts. */
  readonly settings: readonly (readonly [key: string, value: string])[];
  /** The keys that a person should know are not obeyed. */
  readonly reported: readonly string[];
  /** Where the repository says that its files are, as it is written; null: it says nothing. */
  readonly elsewhere: string | null;
  /** Git would fetch missing objects by itself, with a program that the repository names. */
  readonly fetches: boolean;
};

/** `proxy`: the one that the user's environment names. */
export function overrule(all: readonly GitSetting[], proxy = ""): Overruled {
  const theirs = all.filter(isTheirs);
  const yours = all.filter(({ scope }) => scope === "system" || scope === "global");
  const yoursAt = (key: string) => yours.findLast((one) => one.key === key)?.value;
  const settings: (readonly [string, string])[] = [];
  const reported = new Set<string>();
  const overruled = new Set<string>();
  for (const { key, value } of theirs) {
    const rule = RULES.find(({ matches }) => matches.test(key));
    if (rule === undefined || overruled.has(key)) continue;
    overruled.add(key);
    const own = yoursAt(key);
    if (rule.kind !== "list")
      settings.push([key, own ?? neutral(rule, key, theirs, yoursAt("http.proxy") ?? proxy)]);
    if (rule.isReported !== false && own !== value && !key.endsWith(".required")) reported.add(key);
  }
  const helpers = theirs.some(({ key }) => HELPER.test(key))
    ? // An empty one takes back all that were named before.
      [["credential.helper", ""] as const, ...yours.flatMap(({ key, value }) => helperOf(key, value))]
    : [];
  const elsewhere = theirs.findLast(({ key }) => key === "core.worktree")?.value ?? null;
  const has = (pattern: RegExp) => theirs.some(({ key }) => pattern.test(key));
  const fetches = has(UPLOAD) && has(PROMISED);
  return { settings: [...settings, ...helpers], reported: [...reported], elsewhere, fetches };
}

/** The file that a setting of the repository has git read as well, as it is written, under whatever condition. */
export function includedBy(setting: GitSetting): string | null {
  return isTheirs(setting) && INCLUDE.test(setting.key) ? setting.value : null;
}

function isTheirs({ scope }: GitSetting): boolean {
  return scope === "local" || scope === "worktree";
}

type Rule = {
  readonly matches: RegExp;
  /** `list`: every value counts, so that one more does not overrule the others. */
  readonly kind: "value" | "proxy" | "required" | "list";
  /** What is said where the user says nothing. */
  readonly to?: string;
  /** false: nothing that we call would look at it, so it is not reported. */
  readonly isReported?: false;
};

const HELPER = /^credential\.(?:.+\.)?helper$/s;
const UPLOAD = /^remote\..+\.uploadpack$/s;
const PROMISED = /^(?:extensions\.partialclone|remote\..+\.(?:promisor|partialclonefilter))$/s;
const INCLUDE = /^include(?:if\..+)?\.path$/s;

/** Fails, so that a merge stops with a conflict instead of taking one side in silence. */
const FAILS = "exit 1";

/** `core.hooksPath`, editors and what else is never wanted are overruled for every repository; see git.ts. */
const RULES: readonly Rule[] = [
  { matches: /^filter\..+\.(?:clean|smudge|process)$/s, kind: "value", to: "" },
  { matches: /^filter\..+\.required$/s, kind: "required" },
  { matches: /^merge\..+\.driver$/s, kind: "value", to: FAILS },
  { matches: /^diff\..+\.(?:command|textconv)$/s, kind: "value", to: FAILS, isReported: false },
  { matches: /^core\.sshcommand$/, kind: "value", to: "ssh" },
  { matches: /^core\.alternaterefscommand$/, kind: "value", to: "true", isReported: false },
  { matches: /^core\.gitproxy$/, kind: "list" },
  { matches: HELPER, kind: "list" },
  // Of these git takes the first; we name both programs ourselves where we speak to a remote.
  { matches: UPLOAD, kind: "list" },
  { matches: /^remote\..+\.receivepack$/s, kind: "list" },
  { matches: /^(?:http\.(?:.+\.)?proxy|remote\..+\.proxy)$/s, kind: "proxy" },
  { matches: /^http\.(?:.+\.)?sslverify$/s, kind: "value", to: "true" },
  { matches: /^http\.(?:.+\.)?curloptresolve$/s, kind: "value", to: "" },
  { matches: /^submodule\..+\.update$/s, kind: "value", to: "none", isReported: false },
  {
    matches: /^gpg\.(?:.+\.)?(?:program|defaultkeycommand)$/s,
    kind: "value",
    to: "false",
    isReported: false,
  },
  { matches: /^hook\..+\.command$/s, kind: "value", to: "true", isReported: false },
  // What git-lfs starts, which may well be a filter of the user's own.
  { matches: /^lfs\.customtransfer\..+\.path$/s, kind: "value", to: "false" },
  { matches: /^lfs\.extension\..+\.(?:clean|smudge)$/s, kind: "value", to: "false" },
];

/** A filter that the repository cannot do without stays required: then git refuses its files, and commits none as it is. */
function neutral({ kind, to = "" }: Rule, key: string, theirs: readonly GitSetting[], proxy: string): string {
  if (kind === "proxy") return proxy;
  if (kind === "required") return theirs.findLast((one) => one.key === key)?.value ?? "false";
  return to;
}

function helperOf(key: string, value: string): readonly (readonly [string, string])[] {
  return HELPER.test(key) ? [[key, value]] : [];
}
