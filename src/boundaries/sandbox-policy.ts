/** What a run's settings come to as a policy: the folders, what is never seen, and the hosts. */
import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { isInside } from "./paths.ts";
import type { SandboxPolicy } from "./sandbox.ts";

/** The places of this machine and of this run, absolute. */
export type Places = {
  /** Where the run works. */
  readonly cwd: string;
  /** The project: relative `allowedPaths` are meant from here. */
  readonly root: string;
  readonly agentsDir: string;
  /** Where runs are recorded. */
  readonly stateDir: string;
  /** Where the user's own settings and trust are. */
  readonly configDir: string;
  readonly home: string;
  /** Where programs are looked for. */
  readonly path?: string;
};

export function policyOf(
  { hosts, allowedPaths }: { readonly allowedPaths: readonly string[] } & Pick<SandboxPolicy, "hosts">,
  places: Places,
): SandboxPolicy {
  const cwd = realPlace(places.cwd);
  return {
    cwd,
    writable: allowedPaths.map((path) => placeOf(path, places)),
    shielded: [join(cwd, ".agent"), realPlace(places.agentsDir)],
    home: realPlace(places.home),
    hidden: hiddenPlaces(places),
    hosts,
  };
}

/** Why this folder cannot be opened for writing; null if it can. */
export function refusePath(path: string, places: Places): string | null {
  const place = placeOf(path, places);
  const holds = (kept: string) => isInside(place, realPlace(kept));
  if (place === "/" || holds(places.home)) return "the home folder lies in it";
  if (holds(places.stateDir)) return "the record of runs lies in it";
  if (holds(places.configDir)) return "your settings and what you trust lie in it";
  if (holds(places.root) || holds(places.cwd)) return "the project lies in it";
  const system = SYSTEM.find((folder) => isInside(folder, place) || isInside(place, folder));
  if (system !== undefined) return `${system} belongs to the system`;
  const secret = hiddenPlaces(places).find((hidden) => isInside(realPlace(hidden), place));
  if (secret !== undefined) return `commands never see ${secret}`;
  return obeyedLater(place, places);
}

/** What programs outside run or read by themselves: a command that writes there acts outside of the sandbox, later. */
function obeyedLater(place: string, { home, path = "" }: Places): string | null {
  const folders = path.split(":").filter(isAbsolute).map(realPlace);
  const searched = folders.find((folder) => isInside(folder, place) || isInside(place, folder));
  if (searched !== undefined) return `programs are looked for in ${searched}`;
  const below = relative(realPlace(home), place).split("/");
  if (below[0] === "bin") return "programs of yours lie in ~/bin";
  const isCache = below[0] === ".cache" && below.length > 1;
  if (below[0] === ".." || isCache || !below.some((name) => name.startsWith("."))) return null;
  return "hidden folders of your home hold settings and programs that others obey";
}

/** Why a run cannot be confined to this folder; null if it can. */
export function refuseGround({ cwd, home, configDir }: Places): string | null {
  const place = realPlace(cwd);
  const lies = [home, configDir].find((kept) => isInside(place, realPlace(kept)));
  return lies === undefined ? null : `${lies} lies in the working directory ${cwd}, where commands may write`;
}

/** Where software comes from. Code hosts are not among them: what a run writes there is for the run to do. */
export const TRUSTED_HOSTS: readonly string[] = [
  "registry.npmjs.org",
  "registry.yarnpkg.com",
  "jsr.io",
  "npm.jsr.io",
  "deno.land",
  "pypi.org",
  "files.pythonhosted.org",
  "crates.io",
  "index.crates.io",
  "static.crates.io",
  "proxy.golang.org",
  "sum.golang.org",
  "rubygems.org",
];

const SYSTEM = ["/dev", "/proc", "/sys", "/run", "/etc", "/boot", "/usr", "/bin", "/sbin", "/lib", "/lib64"];

/** Keys, sessions and histories, below the home folder. */
const SECRETS = [
  ".ssh .gnupg .password-store .netrc .git-credentials .config/git/credentials .vault-token .pgpass .my.cnf",
  ".aws .azure .config/gcloud .kube .terraform.d .config/doctl .config/rclone .oci .fly .config/heroku",
  ".config/gh .config/hub .config/glab-cli .config/op .docker .config/containers .npmrc .yarnrc.yml .pypirc",
  ".config/pip .gem/credentials .cargo/credentials .cargo/credentials.toml .m2/settings.xml .gradle/gradle.properties",
  ".cache/huggingface/token .huggingface .claude .claude.json .codex .gemini .config/openai .config/anthropic",
  ".local/share/keyrings .local/share/kwalletd .mozilla .thunderbird .config/google-chrome .config/chromium",
  ".config/BraveSoftware .config/microsoft-edge .config/vivaldi .config/Slack .config/discord .config/Signal",
  ".config/Code/User/globalStorage .vscode-server/data .bash_history .zsh_history .node_repl_history .psql_history",
  ".python_history .local/share/fish/fish_history .config/github-copilot .config/Bitwarden .config/1Password",
].flatMap((names) => names.split(" "));

const SYSTEM_SECRETS = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh"];

function hiddenPlaces({ home, stateDir, configDir, cwd }: Places): readonly string[] {
  return [
    ...SECRETS.map((name) => join(home, name)),
    ...SYSTEM_SECRETS,
    configDir,
    stateDir,
    join(cwd, ".lockstep"),
  ];
}

function placeOf(path: string, { root, home }: Places): string {
  if (path === "~" || path.startsWith("~/")) return realPlace(join(home, path.slice(1)));
  return realPlace(resolve(root, path));
}

/** Where it really is, also if its last parts do not exist yet. */
function realPlace(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    const isLink = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
    return isLink || path === dirname(path) ? path : join(realPlace(dirname(path)), basename(path));
  }
}
