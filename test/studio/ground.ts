/** A project with recorded runs of every kind, and the studio started over it as a user starts it. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { builtCommand } from "../built.ts";
import { agentFiles, stepTo, writeFiles } from "../run/project.ts";

const EXAMPLES = fileURLToPath(new URL("../../examples/", import.meta.url));

export type Ground = {
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** Runs the command there, and gives its JSON document. */
  readonly lockstep: (...args: readonly string[]) => JsonDocument;
  readonly remove: () => void;
};

export type JsonDocument = { readonly [member: string]: unknown } & { readonly run?: string };

/** An empty project in a git repository. */
export async function emptyGround(): Promise<Ground> {
  const main = await builtCommand();
  const folder = mkdtempSync(join(tmpdir(), "lockstep-studio-"));
  const { NODE_TEST_CONTEXT: _, CI: __, ...rest } = process.env;
  const env = { ...rest, LOCKSTEP_TRUST: "all", NO_COLOR: "1" };
  const lockstep = (...args: readonly string[]): JsonDocument => {
    const ran = spawnSync(process.execPath, [main, ...args, "--json"], {
      cwd: folder,
      env,
      encoding: "utf8",
      input: "",
    });
    try {
      return JSON.parse(ran.stdout) as JsonDocument;
    } catch {
      throw new Error(`lockstep ${args.join(" ")} gave ${ran.status}: ${ran.stdout}${ran.stderr}`);
    }
  };
  for (const args of [
    ["init", "-q", "-b", "main"],
    ["config", "user.name", "Studio test"],
    ["config", "user.email", "studio@example.invalid"],
  ])
    spawnSync("git", args, { cwd: folder });
  return { folder, env, lockstep, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function commit(folder: string, message: string): void {
  spawnSync("git", ["add", "-A"], { cwd: folder });
  spawnSync("git", ["commit", "-qm", message], { cwd: folder });
}

const NOTE = ["initial.note", "continuation.note", "closure.note"] as const;

/** The replies of the agent that `init` makes, after the calls of its first step. */
function noteScript(calls: readonly object[]): string {
  const [initial, continuation, closure] = NOTE;
  return JSON.stringify({
    replies: [
      ...calls.map((call) => ({ step: initial, calls: [call] })),
      {
        step: initial,
        output: {
          stepId: initial,
          plan: { angle: "why", points: ["the moon"] },
          next_action: { action: "next" },
        },
      },
      {
        step: continuation,
        output: { stepId: continuation, draft: { text: "short" }, next_action: { action: "handoff" } },
      },
      {
        step: closure,
        output: { stepId: closure, note: "Two tides a day.", next_action: { action: "closing" } },
      },
    ],
  });
}

const README = ["# Tides", "", "The sea rises once a day.", "It falls again.", "", "More to come.", ""].join(
  "\n",
);

export const EDIT = {
  name: "Edit",
  input: {
    file_path: "README.md",
    old_string: "The sea rises once a day.",
    new_string: "The sea rises twice a day,\nbecause of the moon.",
  },
};
export const COMMAND = {
  name: "Bash",
  input: { command: "npm run build && ls -l dist", description: "Build the project" },
};

/** The runs by what they show. */
export type FullGround = Ground & {
  readonly runs: {
    /** Sent back by a check once, then completed. */
    readonly fixed: string;
    /** Made from `fixed`, with another answer. */
    readonly forked: string;
    /** Stages side by side. */
    readonly shipped: string;
    readonly failed: string;
    /** Asks about an edit. */
    readonly editing: string;
    /** Asks about a command. */
    readonly building: string;
  };
};

export async function fullGround(): Promise<FullGround> {
  const ground = await emptyGround();
  const { folder, lockstep } = ground;
  for (const example of ["06-stage-machine", "01-fix-a-test"]) {
    cpSync(join(EXAMPLES, example, "project"), folder, { recursive: true });
    cpSync(join(EXAMPLES, example, ".agent"), join(folder, ".agent"), { recursive: true });
    cpSync(join(EXAMPLES, example, "script.yaml"), join(folder, `${example}.yaml`));
  }
  lockstep("init", "asker");
  const agent = join(folder, ".agent/asker/agent.json");
  const said = JSON.parse(readFileSync(agent, "utf8")) as { runner: { boundaries: object } };
  said.runner.boundaries = { allowedTools: ["Read", "Write", "Edit", "Bash"], permissionMode: "default" };
  writeFileSync(agent, `${JSON.stringify(said, null, 2)}\n`);
  const broken = agentFiles("broken", {
    "initial.a": stepTo("work", { next: "continuation.b", repeat: "initial.a" }),
    "closure.a": stepTo("closure", { closing: null }),
  });
  const parameters = {
    topic: {
      type: "string",
      description: "What it is about",
      cli: "--topic",
      required: true,
      validation: { pattern: "^[a-z]+$" },
    },
    depth: {
      type: "number",
      description: "How deep",
      cli: "--depth",
      default: 2,
      validation: { min: 1, max: 5 },
    },
    tone: {
      type: "string",
      description: "In which tone",
      cli: "--tone",
      default: "plain",
      validation: { enum: ["plain", "formal"] },
    },
    careful: { type: "boolean", description: "Look twice", cli: "--careful", default: false },
    files: { type: "array", description: "Files to look at", cli: "--files" },
  };
  const typed = agentFiles(
    "typed",
    { "initial.a": stepTo("work", { next: "closure.a" }), "closure.a": stepTo("closure", { closing: null }) },
    { agent: { parameters } },
  );
  writeFiles(folder, {
    ...broken,
    ...typed,
    "README.md": README,
    "edit.yaml": noteScript([EDIT]),
    "build.yaml": noteScript([COMMAND]),
    "note.yaml": noteScript([]),
    // The same way, with the files as the first run left them: this time "done" is true at once.
    "again.yaml": JSON.stringify({
      replies: [
        {
          step: "closure.issue",
          output: { stepId: "closure.issue", next_action: { action: "closing", reason: "nothing is left" } },
        },
      ],
    }),
    "short.yaml": JSON.stringify({
      replies: [{ step: NOTE[0], error: { kind: "auth", message: "The key was refused." } }],
    }),
    "typed.yaml": JSON.stringify({
      replies: ["initial.a", "closure.a"].map((stepId, at) => ({
        step: stepId,
        output: { stepId, next_action: { action: at === 0 ? "next" : "closing" } },
      })),
    }),
  });
  commit(folder, "A project with agents");
  const run = (...args: readonly string[]) => String(lockstep("run", ...args).run);
  const shipped = run("ship", "--task", "make the tests pass", "--script", "06-stage-machine.yaml");
  const fixed = run("fixer", "--issue", "7", "--script", "01-fix-a-test.yaml");
  const failed = run("asker", "--topic", "waves", "--script", "short.yaml");
  const editing = run("asker", "--topic", "tides", "--script", "edit.yaml", "--on-permission", "halt");
  const building = run(
    "asker",
    "--topic",
    "harbours",
    "--script",
    "build.yaml",
    "--on-permission",
    "halt",
    "--expire",
    "24h",
  );
  const forked = String(lockstep("fork", fixed, "--at", "closure.issue@1", "--script", "again.yaml").run);
  return { ...ground, runs: { fixed, forked, shipped, failed, editing, building } };
}

export type Studio = {
  /** With the token in its fragment. */
  readonly url: string;
  readonly origin: string;
  readonly token: string;
  readonly process: ChildProcess;
  readonly close: () => Promise<void>;
};

/** Started as a user starts it. It ends with `close`, or with this process. */
export async function openStudio(ground: Ground, ...args: readonly string[]): Promise<Studio> {
  const main = await builtCommand();
  const child = spawn(process.execPath, [main, "studio", "--json", ...args], {
    cwd: ground.folder,
    env: ground.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const end = () => void child.kill("SIGKILL");
  process.once("exit", end);
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (complaint += text));
  const url = await new Promise<string>((resolve, reject) => {
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const found = /"url":\s*"([^"]+)"/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("exit", () => reject(new Error(`lockstep studio ended: ${said}${complaint}`)));
  });
  const { origin, hash } = new URL(url);
  const close = async () => {
    process.off("exit", end);
    child.kill("SIGINT");
    await exited;
  };
  return { url, origin, token: hash.replace(/^#(?:token=)?/, ""), process: child, close };
}
