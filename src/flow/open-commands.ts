/** Entries of a list of allowed commands through which any command can be run, and how. */

export type OpenEntry = Openness & { readonly index: number; readonly tool: string };

/** The entries through which any command can be run; `any`: the list does not limit commands at all. */
export function openEntries(tools: readonly string[]): readonly OpenEntry[] | "any" {
  const limits = tools.map(limitOf);
  if (limits.includes("*") || tools.some((tool) => tool === "*" || tool === "Bash")) return "any";
  return limits.flatMap((limit, index) => {
    const why = limit === null ? null : openness(limit);
    return why === null ? [] : [{ index, tool: tools[index]!, ...why }];
  });
}

/** What stands in the parentheses of `Bash(…)`; `*` for any command, null for other tools. */
function limitOf(tool: string): string | null {
  const [, limit] = /^Bash\s*\((.*)\)$/s.exec(tool.trim()) ?? [];
  if (limit === undefined) return null;
  return /^(?::?\*)$/.test(limit.trim()) ? "*" : limit.trim();
}

type Openness = { readonly how: string; readonly instead: string };

/** null: it is one command, or what may follow cannot change what it does. */
function openness(limit: string): Openness | null {
  const isPrefix = limit.endsWith(":*");
  const fixed = isPrefix ? limit.slice(0, -2).trim() : limit.split("*", 1)[0]!;
  if (!isPrefix && !limit.includes("*")) return null;
  // A wildcard within a word: which program it is can be chosen.
  const words = fixed.trim().split(/\s+/);
  const isWhole = isPrefix || /\s$/.test(fixed);
  const [first = "", second] = isWhole ? words : words.slice(0, -1);
  if (first === "") return { how: "it does not say which program", instead: "Name the program." };
  // Behind it there are no options any more.
  if (words.includes("--") && isWhole && words.length > 2) return null;
  const program = first.replace(/^.*\//, "");
  const how = program === "git" ? ofGit(second) : (OPEN.get(program) ?? null);
  if (how === null) return null;
  const whole = second === undefined || second.startsWith("-") ? first : `${first} ${second}`;
  return {
    how,
    instead:
      INSTEAD.get(program) ??
      `Write whole commands without a wildcard, such as "Bash(${whole} …)" with the arguments that are needed.`,
  };
}

function ofGit(second: string | undefined): string | null {
  if (second === undefined || second.startsWith("-")) return "git -c alias.x='!command' x runs any command";
  return OPEN_GIT.get(second) ?? null;
}

/** `names`: how they do it. */
function table(rows: { readonly [how: string]: string }): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(rows).flatMap(([how, names]) => names.split(" ").map((name) => [name, how] as const)),
  );
}

const OPEN_GIT = table({
  "--output=FILE writes any file":
    "log diff show whatchanged shortlog format-patch diff-tree diff-index diff-files range-diff stash archive",
  "--open-files-in-pager=COMMAND runs any command": "grep",
  "it runs any command": "bisect rebase submodule filter-branch difftool mergetool config send-email",
  "--upload-pack=COMMAND runs any command": "fetch pull clone ls-remote fetch-pack",
  "--receive-pack=COMMAND runs any command": "push send-pack",
});

const OPEN = table({
  "it runs the program that it is given":
    "sh bash zsh dash ksh fish csh tcsh busybox node nodejs deno bun tsx ts-node python python2 python3 perl ruby php lua tclsh Rscript osascript java awk gawk mawk nawk",
  "it runs the command that follows":
    "env xargs nohup nice ionice timeout time watch parallel stdbuf setsid sudo doas su strace ltrace gdb lldb script expect flock unshare chroot nsenter systemd-run at batch entr ssh npx pnpx bunx uvx corepack command builtin exec eval coproc",
  "it runs what it is given as code": "source . trap mapfile readarray compgen complete bind enable alias",
  "what it sets, such as PATH, decides what the next command is":
    "export declare typeset readonly local set hash",
  "-exec, -delete and -fprintf run, remove and write anything": "find",
  "--exec runs any command": "fd fdfind",
  "--pre=COMMAND runs any command": "rg",
  "-o FILE writes any file": "sort shuf iconv tree curl wget",
  "its second argument is a file that it writes": "uniq xxd",
  "-i and the command e write and run anything": "sed",
  "--to-command and --checkpoint-action run any command": "tar",
  "-T -TT COMMAND runs any command": "zip",
  "-e COMMAND runs any command": "rsync scp sftp",
  "it writes any file": "tee dd cp mv ln install unzip cpio split csplit truncate patch ed",
  "it runs commands from within (! and the like)":
    "vi vim nvim view emacs less more man info sqlite3 psql mysql ftp",
  "it runs what a file says that the model may write, and takes options that name another one":
    "make gmake cmake ninja just task rake gradle mvn ant bazel cargo go dotnet swift mix stack cabal",
  "--script-shell=PROGRAM and scripts of package.json run anything": "npm yarn pnpm",
  "it installs and runs code from anywhere": "pip pip3 pipx uv poetry gem bundle composer brew apt apt-get",
  "a container can be given the whole disk": "docker podman nerdctl kubectl",
  "options name a file of code that it loads":
    "eslint prettier jest vitest mocha pytest tox nox babel webpack rollup vite tsc",
});

const INSTEAD: ReadonlyMap<string, string> = new Map(
  ["npm", "yarn", "pnpm"].map((name) => [
    name,
    `Write the script without a wildcard, such as "Bash(${name} test)", or with arguments for the script only, such as "Bash(${name} test -- *)".`,
  ]),
);
