/** A throw-away project on disk and the program run in it as a user would: a process, its exit code, its two outputs. */
import { spawn, type ChildProcess, type ChildProcessByStdio } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { builtCommand } from "../built.ts";
import { initFiles } from "../../src/cli/commands/init-files.ts";

export const MAIN = await builtCommand();

export type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };
export type Surroundings = {
  /** null: stdin stays open. */
  readonly input?: string | null;
  readonly env?: NodeJS.ProcessEnv;
  /** Told of each piece of output, with the process at hand. */
  readonly watch?: (output: string, child: ChildProcess) => void;
};

export type Begun = ChildProcessByStdio<null, Readable, Readable>;

export type World = {
  readonly root: string;
  readonly write: (path: string, text: string) => void;
  /** Below the home folder. */
  readonly writeHome: (path: string, text: string) => void;
  readonly lockstep: (args: readonly string[], around?: Surroundings) => Promise<Ran>;
  /** Starts the command without waiting for its end. What still runs when the world is disposed of is killed. */
  readonly begin: (args: readonly string[], env?: NodeJS.ProcessEnv) => Begun;
  readonly env: NodeJS.ProcessEnv;
  readonly [Symbol.dispose]: () => void;
};

export function createWorld(): World {
  const root = mkdtempSync(join(tmpdir(), "lockstep-cli-"));
  // Beside the project: commands that may change the project must not change it.
  const home = mkdtempSync(join(tmpdir(), "lockstep-cli-home-"));
  const env: NodeJS.ProcessEnv = {
    PATH: process.env.PATH,
    HOME: home,
    // Shared by all tests, so that not every process compiles the same files again.
    XDG_CACHE_HOME: join(tmpdir(), "lockstep-test-cache"),
  };
  const writeIn = (folder: string) => (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const begun: Begun[] = [];
  return {
    root,
    env,
    begin: (args, more) => {
      const child = spawn(process.execPath, [MAIN, ...args], {
        cwd: root,
        env: { ...env, ...more },
        stdio: ["ignore", "pipe", "pipe"],
      });
      begun.push(child);
      return child;
    },
    write: writeIn(root),
    writeHome: writeIn(home),
    lockstep: async (args, around = {}) =>
      await start(process.execPath, [MAIN, ...args], root, { ...around, env: { ...env, ...around.env } }),
    [Symbol.dispose]: () => {
      for (const child of begun) child.kill("SIGKILL");
      for (const folder of [root, home]) rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function start(
  program: string,
  args: readonly string[],
  cwd: string,
  { input = "", env, watch }: Surroundings,
): Promise<Ran> {
  const child = spawn(program, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    watch?.(stdout + stderr, child);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    watch?.(stdout + stderr, child);
  });
  child.stdin.on("error", () => undefined);
  if (input !== null) child.stdin.end(input);
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { code, stdout, stderr };
}

type Document = { [key: string]: unknown };

/** The agent that `init` writes, changed as the test wants it. */
export function writeAgent(
  world: World,
  name: string,
  change: {
    readonly agent?: (agent: Document) => void;
    readonly registry?: (registry: Document) => void;
  } = {},
): void {
  for (const [path, text] of Object.entries(initFiles(name))) {
    // Tests of the flow as it is before the change.
    if (path.startsWith("tests/")) continue;
    const edit =
      path === "agent.json" ? change.agent : path === "steps_registry.json" ? change.registry : undefined;
    world.write(`.agent/${name}/${path}`, edit === undefined ? text : edited(text, edit));
  }
}

function edited(text: string, edit: (document: Document) => void): string {
  const document = JSON.parse(text) as Document;
  edit(document);
  return JSON.stringify(document, null, 2);
}

/** The agent with one check before the end; whether it passes is up to the command. */
export function writeCheckedAgent(world: World, name: string, command: string, maxAttempts = 3): void {
  writeAgent(world, name, {
    registry: (registry) => {
      registry.validators = {
        proof: { type: "command", command, successWhen: "exitCode:0", failurePattern: "unproven" },
      };
      registry.failurePatterns = { unproven: { description: "No proof", edition: "failed", params: [] } };
      registry.validationSteps = {
        "closure.note": {
          stepId: "closure.note",
          name: "Proof",
          c2: "retry",
          c3: "note",
          validationConditions: [{ validator: "proof" }],
          onFailure: { action: "retry", maxAttempts },
        },
      };
    },
  });
  world.write(`.agent/${name}/prompts/steps/retry/note/f_failed.md`, "The proof is missing: {{summary}}\n");
}

const initial = (action = "next") => ({
  step: "initial.note",
  output: { stepId: "initial.note", plan: { angle: "a", points: ["p"] }, next_action: { action } },
});
const continuation = (action = "handoff") => ({
  step: "continuation.note",
  output: { stepId: "continuation.note", draft: { text: "t" }, next_action: { action } },
});
const closure = (action = "closing", reason = "done") => ({
  step: "closure.note",
  output: { stepId: "closure.note", note: "n", next_action: { action, reason } },
});

/** Replies for the agent above. */
export const replies = { initial, continuation, closure } as const;

export function script(...list: readonly unknown[]): string {
  return JSON.stringify({ replies: list });
}

/** The one document that `--json` promises: a single line that is JSON, and nothing else. */
export function onlyDocument(ran: Ran): { readonly [key: string]: unknown } {
  const lines = ran.stdout.split("\n");
  if (lines.length !== 2 || lines[1] !== "") throw new Error(`Not one line: ${JSON.stringify(ran)}`);
  return JSON.parse(lines[0]!) as { readonly [key: string]: unknown };
}

export function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1) ?? "";
}

/** What begins every order to a terminal. */
export const ESCAPE = "\u001b";

/** The command on a terminal, with something typed each time that it waits, and something that was typed before it started. */
export async function typedAt(
  world: World,
  args: readonly string[],
  typed: readonly string[],
  early = "",
): Promise<string> {
  const words = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(" ");
  const left = [...typed];
  let asked = 0;
  let isEarly = early !== "";
  const ran = await start(
    "script",
    [
      "-qec",
      `trap : INT; stty cols 100; echo ready; ${early === "" ? "" : "sleep 2; "}${words}; echo exit $?`,
      "/dev/null",
    ],
    world.root,
    {
      env: { TERM: "xterm", ...world.env },
      input: null,
      watch: (output, child) => {
        if (isEarly && output.includes("ready")) child.stdin?.write(early);
        if (output.includes("ready")) isEarly = false;
        const prompts = output.split("\r\n> ").length - 1;
        if (prompts > asked && left.length > 0) child.stdin?.write(left.shift()!);
        if (/exit \d/.test(output)) child.stdin?.end();
        asked = prompts;
      },
    },
  );
  return ran.stdout;
}
