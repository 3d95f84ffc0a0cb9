/** A throw-away git repository, and the command in it, as a user of a ready-made flow has them. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after } from "node:test";
import { MAIN, start, type Ran } from "../cli/world.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-ready-made-")));
after(() => rmSync(base, { recursive: true, force: true, maxRetries: 5 }));

/** With one commit of these files. */
export function repository(files: { readonly [path: string]: string }, more: NodeJS.ProcessEnv = {}) {
  const root = mkdtempSync(join(base, "r-"));
  const [cwd, home, temp] = [join(root, "work"), join(root, "home"), join(root, "tmp")];
  for (const folder of [cwd, home, temp]) mkdirSync(folder);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  const git = (...args: readonly string[]) => execFileSync("git", args, { cwd, encoding: "utf8" });
  git("init", "-q", "-b", "main");
  git("config", "user.name", "T");
  git("config", "user.email", "t@example.invalid");
  git("add", "-A");
  git("commit", "-qm", "Begin", "--allow-empty");
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    TMPDIR: temp,
    XDG_CACHE_HOME: join(tmpdir(), "lockstep-test-cache"),
    LOCKSTEP_TRUST: "all",
    ...more,
  };
  const lockstep = (...words: readonly string[]): Promise<Ran> =>
    start(process.execPath, [MAIN, ...words], cwd, { env });
  return { cwd, git, lockstep };
}

export type Repository = ReturnType<typeof repository>;
