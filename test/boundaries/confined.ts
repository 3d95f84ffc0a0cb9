/** A machine in a folder: a home with secrets, a project, a folder beside it, and the sandbox that a run would open. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { existsSync } from "node:fs";
import type { Sandbox } from "../../src/flow/settings.ts";
import { childEnv, type ProcessResult } from "../../src/effects/process/process.ts";
import { decideSandbox } from "../../src/run/world/sandbox-decision.ts";
import { settle, type SandboxGround } from "../../src/run/world/sandbox.ts";

export const hasBwrap =
  process.platform === "linux" &&
  (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, "bwrap")));
export const NO_BWRAP = "bubblewrap is not installed (apt install bubblewrap)";

/** Stands in every file that a command must not read. */
export const SECRET = "canary-5f2c9e";

export type Machine = {
  readonly base: string;
  readonly home: string;
  readonly project: string;
  readonly outside: string;
  readonly open: (sandbox?: Partial<Sandbox>, cwd?: string) => Promise<Confined>;
  readonly [Symbol.dispose]: () => void;
};

export type Confined = SandboxGround & {
  readonly close: () => Promise<void>;
  readonly sh: (
    command: string | readonly string[],
    more?: { readonly [name: string]: string },
    timeoutMs?: number,
  ) => Promise<ProcessResult>;
};

export const HOME_FILES = [
  ".ssh/id_ed25519",
  ".aws/credentials",
  ".config/gcloud/credentials.db",
  ".azure/accessTokens.json",
  ".config/gh/hosts.yml",
  ".npmrc",
  ".docker/config.json",
  ".netrc",
  ".local/share/keyrings/login.keyring",
  ".mozilla/firefox/logins.json",
  ".config/lockstep/trust.json",
  ".git-credentials",
  ".kube/config",
  ".bash_history",
];

/** Not below a scratch folder: those are not the host's inside. */
export function createMachine(): Machine {
  const base = realpathSync(mkdtempSync(join(homedir(), ".lockstep-test-")));
  const [home, project, outside] = [join(base, "home"), join(base, "project"), join(base, "outside")];
  const write = (path: string, text: string) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  };
  for (const name of HOME_FILES) write(join(home, name), `${SECRET}\n`);
  write(join(home, ".bashrc"), "# mine\n");
  write(join(home, ".gitconfig"), "[user]\n\tname = Tester\n\temail = tester@example.invalid\n");
  write(join(outside, "file"), "before\n");
  write(join(project, ".gitignore"), ".lockstep/\n");
  write(join(project, "readme.md"), "A project.\n");
  write(join(project, ".agent/worker/agent.json"), "{}\n");
  const git = (...args: readonly string[]) =>
    execFileSync("git", args, { cwd: project, env: { PATH: process.env.PATH, HOME: home } });
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("commit", "-q", "-m", "first");
  write(join(project, ".lockstep/runs.db"), `${SECRET}\n`);
  chmodSync(base, 0o755);

  const open: Machine["open"] = async (more = {}, cwd = project) => {
    const env = { ...process.env, HOME: home };
    const sandbox: Sandbox = {
      asked: true,
      enabled: true,
      network: { asked: true, mode: "none", trustedDomains: [] },
      filesystem: { allowedPaths: [] },
      excludedCommands: [],
      allowUnsandboxedCommands: false,
      ...more,
    };
    const places = {
      cwd,
      root: project,
      agentsDir: join(project, ".agent"),
      stateDir: join(project, ".lockstep"),
      configDir: join(home, ".config", "lockstep"),
      home,
    };
    const asked = { sandbox, wish: "auto", network: null, starts: true, unconfinable: null } as const;
    const settled = await settle(decideSandbox(asked), places, env);
    const { exec, child, search, inside } = await settled.groundAt(cwd);
    const sh: Confined["sh"] = async (command, extra = {}, timeoutMs = 30_000) =>
      await exec({
        command,
        cwd,
        env: { ...childEnv(env), ...extra },
        timeoutMs,
        maxOutputBytes: 1 << 20,
        signal: new AbortController().signal,
      });
    return { exec, child, search, inside, sh, close: async () => await settled[Symbol.asyncDispose]() };
  };
  return {
    base,
    home,
    project,
    outside,
    open,
    [Symbol.dispose]: () => rmSync(base, { recursive: true, force: true }),
  };
}
