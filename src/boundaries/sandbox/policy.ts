/** What a run's settings come to as a policy: the folders, what is never seen, and the hosts. */
import { lstatSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve, sep } from "node:path";
import { isInside } from "../gate/paths.ts";
import type { Watched } from "./sandbox-git.ts";
import type { SandboxPolicy } from "./sandbox.ts";

/** The places of this machine and of this run, absolute. */
export type SandboxPlaces = {
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
  /** What commands of this run never see, besides secrets. */
  readonly unseen?: readonly string[];
  /** Where programs are looked for. */
  readonly programs?: readonly string[];
  /** What belongs to Lockstep itself below folders that may be written. */
  readonly own?: (roots: readonly string[]) => OwnPlaces;
};

export type OwnPlaces = {
  readonly there: readonly { readonly path: string }[];
  readonly missing: readonly { readonly path: string }[];
  readonly links: readonly { readonly path: string; readonly to: string }[];
};

export function policyOf(
  { hosts, allowedPaths }: { readonly allowedPaths: readonly string[] } & Pick<SandboxPolicy, "hosts">,
  places: SandboxPlaces,
): SandboxPolicy {
  const cwd = realPlace(places.cwd);
  const writable = allowedPaths.map((path) => placeOf(path, places));
  const own = places.own?.([cwd, ...writable]);
  return {
    cwd,
    writable,
    shielded: [
      join(cwd, ".agent"),
      realPlace(places.agentsDir),
      ...(own?.there ?? []).map(({ path }) => path),
    ],
    hidden: [...hiddenPlaces(places), ...pipesIn(places.home)],
    watched: [
      ...standing([join(cwd, ".agent")], true),
      // The run's own records may be made later, by us.
      ...standing([join(cwd, ".lockstep")], realPlace(places.stateDir) !== join(cwd, ".lockstep")),
      ...standing([places.agentsDir, places.stateDir], false),
      ...(own?.missing ?? []).map(({ path }) => ({ path, link: null })),
      ...(own?.links ?? []).map(({ path, to }) => ({ path, link: to })),
    ],
    home: realPlace(places.home),
    hosts,
  };
}

/** Links and, with `missing`, what is not there: neither can be made read-only, so each must be as it is afterwards. */
function standing(paths: readonly string[], missing: boolean): readonly Watched[] {
  return paths.flatMap((path): readonly Watched[] => {
    const found = isThere(path) ? lstatSync(path) : undefined;
    if (found === undefined) return missing ? [{ path, link: null }] : [];
    return found.isSymbolicLink() ? [{ path, link: readlinkSync(path) }] : [];
  });
}

/** Whether a folder of `allowedPaths` lies outside of the project, as it is written or where it leads. */
export function isOutside(path: string, places: Pick<SandboxPlaces, "root" | "home">): boolean {
  const isHome = path === "~" || path.startsWith("~/");
  const written = isHome ? join(places.home, path.slice(1)) : resolve(places.root, path);
  return !isInside(places.root, written) || !isInside(realPlace(places.root), placeOf(path, places));
}

/** Why this folder cannot be opened for writing; null if it can. */
export function refusePath(path: string, places: SandboxPlaces): string | null {
  let place: string;
  try {
    place = placeOf(path, places);
    const found = lstatSync(place, { throwIfNoEntry: false });
    if (found !== undefined && !found.isDirectory()) return "it is not a folder";
  } catch (error) {
    return `it cannot be looked at (${(error as NodeJS.ErrnoException).code ?? String(error)})`;
  }
  const holds = (kept: string) => isInside(place, realPlace(kept));
  if (place === "/" || holds(places.home)) return "the home folder lies in it";
  if (holds(places.stateDir)) return "the record of runs lies in it";
  if (holds(places.configDir)) return "your settings and what you trust lie in it";
  if (holds(places.root) || holds(places.cwd)) return "the project lies in it";
  const system = SYSTEM.find((folder) => isInside(folder, place) || isInside(place, folder));
  if (system !== undefined) return `${system} belongs to the system`;
  const obeyed = obeyedIn(path, place, places);
  if (obeyed !== null) return obeyed;
  const secret = hiddenPlaces(places).find((hidden) => isInside(realPlace(hidden), place));
  return secret === undefined ? null : `commands never see ${secret}`;
}

/**
 * Why something in this folder would be obeyed outside of the sandbox: programs on the PATH, and whatever begins with a
 * dot, which shells, editors, services and git read. What the project itself holds is not meant.
 */
function obeyedIn(path: string, place: string, places: SandboxPlaces): string | null {
  const { root, home, programs = [] } = places;
  const real = realPlace(root);
  if (isInside(real, place)) return null;
  const isNear = (folder: string) => isInside(folder, place) || isInside(place, folder);
  const started = [
    ...programs.filter((folder) => isAbsolute(folder)),
    ...STARTED.map((name) => join(home, name)),
  ]
    .map(realPlace)
    .find((folder) => !isInside(real, folder) && isNear(folder));
  if (started !== undefined) return `programs are started from ${started}`;
  const written = path.startsWith("~/") ? path.slice(2) : path;
  // Folders that the project itself lies in are as good as the project.
  const [ours, theirs] = [real.split(sep), place.split(sep)];
  const parting = theirs.findIndex((part, index) => part !== ours[index]);
  const dotted = [...written.split(sep), ...theirs.slice(parting)].find((part) => /^\.(?!\.?$)/.test(part));
  if (dotted === undefined) return null;
  return `what begins with a dot, as ${dotted} does, is obeyed by shells, editors and services`;
}

/** Below the home folder, where programs are started from without a dot. */
const STARTED = ["bin", "Library", "Applications", "AppData", "Desktop"];

/** Why a run cannot be confined to this folder; null if it can. */
export function refuseGround({ cwd, home, configDir }: SandboxPlaces): string | null {
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
  // Shells read them for people, and people put keys there. Of git only .gitconfig stays: it says who commits.
  ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .kshrc",
  ".config/fish .config/zsh .config/environment.d .config/nushell .oh-my-zsh/custom .envrc .env .direnvrc",
  ".config/direnv .pam_environment .xprofile .xsessionrc .xinitrc .sh_history .ksh_history .histfile .lesshst .wget-hsts",
  ".viminfo .local/state/nvim .local/share/nvim .mysql_history .mycli-history .sqlite_history .rediscli_history",
  ".irb_history .php_history .dbshell .mongodb .mongorc.js .mylogin.cnf .psqlrc .config/pgcli .curlrc .wgetrc",
  ".composer/auth.json .config/composer/auth.json .bundle/config .config/rubygems .nuget/NuGet/NuGet.Config",
  ".config/NuGet .sbt/.credentials .ivy2/.credentials .lein/credentials.clj.gpg .hex .config/uv/credentials.toml",
  ".config/pypoetry/auth.toml .condarc .jupyter .ipython/profile_default/history.sqlite .kaggle .config/wandb",
  ".config/sops .pulumi .databrickscfg .boto .s3cfg .config/solana .cloudflared .wrangler .config/.wrangler",
  ".config/configstore .config/netlify .netlify .vercel .config/vercel .local/share/com.vercel.cli .railway",
  ".config/stripe .config/scw .config/linode-cli .config/hcloud .config/packer .terraformrc .tfrc .chef .saltrc",
  ".ansible .vagrant.d .minikube .helm .config/helm .config/argocd .config/k9s .step .config/age .age .lastpass",
  ".config/rbw .config/keepassxc .electrum .bitcoin .ethereum .foundry/keystores .near-credentials .aptos .sui",
  ".local/share/opencode .config/opencode .config/crush .aider.conf.yml .continue .cursor .config/Cursor .windsurf",
  ".config/goose .ollama/id_ed25519 .config/io.datasette.llm .openai .anthropic .config/gemini .config/zed .qwen",
  ".local/share/mise .config/mise .config/asciinema .config/transmission .config/weechat .irssi .mutt .muttrc .msmtprc",
  ".config/neomutt .config/msmtp .fetchmailrc .offlineimaprc .config/evolution .local/share/evolution .config/Element",
  ".config/TelegramDesktop .local/share/TelegramDesktop .config/teams .config/opera .config/Mullvad .config/Nextcloud",
  ".ICEauthority .Xauthority .rhosts .shosts .config/remmina .local/share/remmina .config/filezilla .putty .dbus",
  ".config/JetBrains .local/share/JetBrains .config/VSCodium/User/globalStorage .android .config/flutter .expo .eas",
].flatMap((names) => names.split(" "));

const SYSTEM_SECRETS = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh"];

/** Where programs leave pipes that take orders; those in /run and /tmp are not seen anyway. */
const PIPE_FOLDERS = [".", ".config", ".cache", ".local/share", ".local/state"];

/** A pipe can be written to on a read-only disk as well. */
function pipesIn(home: string): readonly string[] {
  return PIPE_FOLDERS.flatMap((folder) => {
    try {
      const entries = readdirSync(join(home, folder), { withFileTypes: true });
      return entries.flatMap((entry) => (entry.isFIFO() ? [join(home, folder, entry.name)] : []));
    } catch {
      return []; // there is no such folder
    }
  });
}

function hiddenPlaces({ home, stateDir, configDir, cwd, unseen = [] }: SandboxPlaces): readonly string[] {
  return [
    ...SECRETS.map((name) => join(home, name)),
    ...SYSTEM_SECRETS,
    configDir,
    stateDir,
    join(cwd, ".lockstep"),
    ...unseen,
  ];
}

function placeOf(path: string, { root, home }: Pick<SandboxPlaces, "root" | "home">): string {
  if (path === "~" || path.startsWith("~/")) return realPlace(join(home, path.slice(1)));
  return realPlace(resolve(root, path));
}

/** Where it really is, also if its last parts do not exist yet. */
function realPlace(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return isThere(path) || path === dirname(path) ? path : join(realPlace(dirname(path)), basename(path));
  }
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false; // a file lies where a folder would have to be
  }
}
