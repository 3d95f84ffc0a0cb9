/** Settings of a repository that git must not obey: listed once, and again when their files have changed. Listing starts nothing. */
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Env } from "../process/process.ts";
import { findGitPlace, type GitPlace } from "./git-place.ts";
import { includedBy, overrule, parseSettings, type Overruled } from "./git-settings.ts";

type Options = {
  readonly env: Env;
  /** Hears which settings of a repository are not obeyed, once for each repository. */
  readonly onOverruled?: (keys: readonly string[], top: string) => void;
};

/** What is said to git in the place of settings that are not obeyed. */
export type Overrules = Pick<Overruled, "settings"> & {
  readonly env: Env;
  /** What git said that stays true as long as the settings are the same. */
  readonly answers?: Map<string, string>;
};
type Listed = {
  readonly prints: string;
  readonly files: readonly string[];
  readonly overruled: Overruled;
  readonly answers: Map<string, string>;
};

export const NOTHING_OVERRULED: Overrules = { settings: [], env: {} };

export function createOverrules(
  { env, onOverruled }: Options,
  list: (cwd: string, args: readonly string[]) => Promise<string | null>,
): (cwd: string) => Promise<Overrules | null> {
  const reported = new Set<string>();
  const proxy = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    .map((name) => env[name])
    .find(Boolean);

  return async (cwd) => {
    const place = findGitPlace(cwd);
    if (place === null) return NOTHING_OVERRULED;
    const { top, gitDir, common } = place;
    const files = [...settingFiles(place), ...ownFiles(env)];
    const key = JSON.stringify([files, proxy, ownSays(env)]);
    const known = LISTED.get(key);
    const isFresh = known !== undefined && known.prints === printsOf(known.files);
    const found = isFresh ? known : await look(top, files);
    if (found === null) return null;
    remember(key, found);
    const { overruled, answers } = found;
    if (overruled.reported.length > 0 && !reported.has(common)) {
      reported.add(common);
      onOverruled?.(overruled.reported, top);
    }
    const { settings, elsewhere, fetches } = overruled;
    // Of a submodule it is where we are; anything else would have a merge write there.
    const isElsewhere = elsewhere !== null && gitDir === common && resolve(common, elsewhere) !== top;
    return {
      settings,
      answers,
      env: {
        ...(isElsewhere && { GIT_WORK_TREE: top }),
        ...(fetches && { GIT_ALLOW_PROTOCOL: "none" }),
      },
    };
  };

  async function look(top: string, files: readonly string[]): Promise<Listed | null> {
    const before = printsOf(files);
    const out = await list(top, []);
    if (out === null) return null;
    const listed = parseSettings(out);
    const all = [...listed];
    const shown = new Set(listed.flatMap(({ file }) => (file === null ? [] : [resolve(top, file)])));
    const includes = new Map<string, string>();
    // What is included for another branch or working tree only is not in the list, and counts: git may come there.
    for (const setting of all) {
      const path = includedBy(setting);
      if (path === null || setting.file === null) continue;
      // Where git itself would look for such a file, only git knows.
      if (setting.key.startsWith("includeif.") && /^(?:~[^/]|%\(prefix\))/.test(path)) return null;
      const file = includedFile(resolve(top, setting.file), path, env);
      if (includes.has(file)) continue;
      if (includes.size >= MOST_INCLUDED) return null;
      const stamp = stampOf(file);
      includes.set(file, stamp);
      if (shown.has(file) || stamp === "-") continue;
      const more = await list(top, ["--no-includes", "--file", file]);
      if (more === null) return null;
      const { scope } = setting;
      all.push(...parseSettings(more).map(({ key, value }) => ({ scope, file, key, value })));
    }
    // What the user's own settings include, which says who commits.
    for (const file of shown)
      if (!files.includes(file) && !includes.has(file)) includes.set(file, stampOf(file));
    const prints = before + [...includes.values()].map((stamp) => `${stamp};`).join("");
    const overruled = overrule(all, proxy);
    return { prints, files: [...files, ...includes.keys()], overruled, answers: new Map() };
  }
}

const MOST_INCLUDED = 50;

/** For all runs of this process. */
const LISTED = new Map<string, Listed>();
const MOST_LISTED = 100;

function remember(key: string, found: Listed): void {
  LISTED.delete(key);
  LISTED.set(key, found);
  for (const oldest of [...LISTED.keys()].slice(0, Math.max(0, LISTED.size - MOST_LISTED)))
    LISTED.delete(oldest);
}

/** Those of the user and the system. */
function ownFiles({ HOME = homedir(), XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL, GIT_CONFIG_SYSTEM }: Env) {
  const folder = XDG_CONFIG_HOME || join(HOME, ".config");
  const global = GIT_CONFIG_GLOBAL ?? join(HOME, ".gitconfig");
  return [global, join(folder, "git", "config"), GIT_CONFIG_SYSTEM ?? "/etc/gitconfig"];
}

function ownSays({ HOME, GIT_CONFIG_NOSYSTEM }: Env): readonly (string | undefined)[] {
  return [HOME, GIT_CONFIG_NOSYSTEM];
}

function settingFiles({ gitDir, common }: GitPlace): readonly string[] {
  const own = join(gitDir, "config.worktree");
  const files = [join(common, "config"), join(common, "config.worktree")];
  return gitDir === common || stampOf(own) === "-" ? files : [...files, own];
}

function includedFile(from: string, path: string, { HOME }: Env): string {
  const full = path.startsWith("~/") ? join(HOME ?? homedir(), path.slice(2)) : path;
  return resolve(dirname(from), full);
}

function printsOf(files: readonly string[]): string {
  return files.map((file) => `${stampOf(file)};`).join("");
}

/** Another one when the file has changed. */
export function stampOf(file: string): string {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(":");
  } catch {
    return "-"; // it does not exist, or is not ours to see
  }
}
