/** Machines of stages on disk, run by the public door, with everything that a test wants to look at afterwards. */
import assert from "node:assert/strict";
import { stringify } from "yaml";
import {
  auditRun,
  createMemoryJournal,
  createScripted,
  resume,
  run,
  type AuditRecord,
  type Backend,
  type DriveOptions,
  type Entry,
  type Journal,
  type Result,
  type ScriptReply,
  type TurnRequest,
  type Why,
  why,
} from "../../src/run/index.ts";
import { fakeClock } from "../../src/testing/scenario.ts";
import { projectWith } from "./project.ts";

/** Fields of the front matter; `body` is what follows it. A field that is `undefined` is left out. */
export type StageFields = { readonly [field: string]: unknown };

export type MachineFiles = {
  readonly stages: { readonly [id: string]: StageFields };
  readonly machine?: object;
  readonly agent?: object;
  /** The text of hooks.mjs. */
  readonly hooks?: string;
  /** Paths below the project root. */
  readonly files?: { readonly [path: string]: string };
};

const PLAIN: StageFields = {
  allowedTools: [],
  completionTool: "submit",
  completionSchema: { type: "object" },
  retryPolicy: { maxAttempts: 1, backoff: "none" },
  turnCap: 4,
  resolutionPolicy: "fail",
  body: "Do {{stage.id}}.",
};

export function stageFile(id: string, fields: StageFields = {}): string {
  const { body, ...front }: StageFields = { id, name: `Stage ${id}`, ...PLAIN, ...fields };
  const written = Object.fromEntries(Object.entries(front).filter(([, value]) => value !== undefined));
  return `---\n${stringify(written, { aliasDuplicateObjects: false })}---\n\n${String(body)}\n`;
}

/** The machine `m`; its first stage is the entry, unless machine.yaml says otherwise. */
export function machineFiles({ stages, machine, agent, hooks, files }: MachineFiles): {
  readonly [path: string]: string;
} {
  const written = Object.entries(stages).map(
    ([id, fields]) => [`.agent/m/stages/${id}.md`, stageFile(id, fields)] as const,
  );
  const [entry] = Object.keys(stages);
  return {
    ...Object.fromEntries(written),
    ".agent/m/machine.yaml": stringify({ entry, ...machine }),
    ...(agent !== undefined && { ".agent/m/agent.json": JSON.stringify(agent) }),
    ...(hooks !== undefined && { ".agent/m/hooks.mjs": hooks }),
    ...files,
  };
}

/** What was asked of the model: the request as it stood then. */
export type Asked = Pick<TurnRequest, "asker" | "model" | "system" | "messages" | "tools" | "output">;

export type Ran = {
  readonly result: Result;
  readonly entries: readonly Entry[];
  readonly asked: readonly Asked[];
  readonly waits: readonly number[];
  readonly folder: string;
  readonly audit: () => Promise<readonly AuditRecord[]>;
  /** The chain behind a visit of a stage. */
  readonly why: (at: string) => Promise<Why>;
  /** Goes on with the run, with another script and other options. */
  readonly again: (script: readonly ScriptReply[], options?: Partial<DriveOptions>) => Promise<Ran>;
};

export type Start = MachineFiles & {
  readonly args?: { readonly [name: string]: unknown };
  readonly model: readonly ScriptReply[] | Backend;
  readonly options?: Partial<DriveOptions>;
  /** Called with the folder of the project before the run starts. */
  readonly watch?: (folder: string) => void;
};

export async function runMachine({ args, model, options, watch, ...files }: Start): Promise<Ran> {
  const folder = projectWith(machineFiles(files));
  watch?.(folder);
  const journal = createMemoryJournal();
  return await drive(folder, journal, model, options, async (all) => {
    return await run({
      agent: "m",
      args: (args ?? {}) as NonNullable<Parameters<typeof run>[0]["args"]>,
      ...all,
    });
  });
}

async function drive(
  folder: string,
  journal: Journal,
  model: Start["model"],
  options: Partial<DriveOptions> = {},
  go: (options: DriveOptions) => Promise<Result>,
): Promise<Ran> {
  const waits: number[] = [];
  const asked: Asked[] = [];
  const backend = listening("spec" in model ? model : createScripted(model), asked);
  const env = { ...process.env, LOCKSTEP_TRUST: "all" };
  const result = await go({ cwd: folder, journal, clock: fakeClock(waits), env, backend, ...options });
  const entries = result.run === null ? [] : await journal.read(result.run);
  return {
    result,
    entries,
    asked,
    waits,
    folder,
    audit: async () => await auditRun(journal, "@last"),
    why: async (at) => await why(journal, "@last", at),
    again: async (script, more) =>
      await drive(folder, journal, script, more, async (all) => await resume({ run: "@last", ...all })),
  };
}

function listening(backend: Backend, asked: Asked[]): Backend {
  return {
    ...backend,
    turn: async (request) => {
      const { asker, model, system, messages, tools, output } = request;
      const seen = { asker, model, system, messages: [...messages], tools };
      asked.push(output === undefined ? seen : { ...seen, output });
      return await backend.turn!(request);
    },
  };
}

export type Row = Start & {
  /** Which part of the document it belongs to, and what it says. */
  readonly name: string;
  /** `completed`, or the code of the failure. */
  readonly ends?: string;
  readonly exitCode?: number;
  readonly path?: string;
  /** Requests to the model. */
  readonly asks?: number;
  readonly waits?: readonly number[];
  readonly reason?: RegExp;
  readonly also?: (ran: Ran) => void | Promise<void>;
};

/** Runs the machine of a row and holds it against all that the row says. */
export async function prove(row: Row): Promise<void> {
  const { ends = "completed", exitCode = 0 } = row;
  const ran = await runMachine(row);
  const { result } = ran;
  const why = JSON.stringify([result.reason, result.problems.map(({ message }) => message)]);
  assert.deepEqual([result.code ?? result.outcome, result.exitCode], [ends, exitCode], why);
  if (row.path !== undefined) assert.equal(pathOf(result), row.path);
  if (row.asks !== undefined) assert.equal(ran.asked.length, row.asks);
  if (row.waits !== undefined) assert.deepEqual(ran.waits, row.waits);
  if (row.reason !== undefined) assert.match(result.reason, row.reason);
  const unused = result.warnings.filter((warning) => warning.startsWith("script:"));
  assert.deepEqual(unused, []);
  await row.also?.(ran);
  if (result.run === null) return;
  // Whatever happened can be told afterwards: of every visit, and by every execution that began.
  for (const { step, visit } of result.path) assert.equal((await ran.why(`${step}@${visit}`)).step, step);
  const begun = (await recorded(ran, "StageExecutionSpanStart")).map(
    ({ stageExecutionId }) => stageExecutionId,
  );
  assert.equal(new Set(begun).size, begun.length);
}

/** What the audit has under a name. */
export async function recorded(ran: Ran, name: string): Promise<readonly AuditRecord["about"][]> {
  return (await ran.audit()).filter((record) => record.name === name).map(({ about }) => about);
}

/** `stage:label` for each visit. */
export function pathOf({ path }: Result): string {
  return path.map(({ step, label }) => `${step}:${label}`).join(" ");
}

/** Results that were sent back for tool calls, in order, each as its text. */
export function toolResults(asked: readonly Asked[]): readonly string[] {
  const last = asked.at(-1)?.messages ?? [];
  return last.flatMap((message) =>
    message.role === "tool" ? message.results.map(({ content }) => content) : [],
  );
}

/** Ids of calls that were answered never or more than once, over all that the newest request of each visit holds. */
export function unanswered(asked: readonly Asked[]): readonly string[] {
  const newest = new Map(asked.map((one) => [`${one.asker.step}@${one.asker.visit}`, one]));
  return [...newest.values()].flatMap(({ messages }) => {
    const calls = messages.flatMap((message) =>
      message.role === "assistant" ? message.calls.map(({ id }) => id) : [],
    );
    const answers = messages.flatMap((message) =>
      message.role === "tool" ? message.results.map(({ id }) => id) : [],
    );
    return [...new Set([...calls, ...answers])].filter(
      (id) =>
        calls.filter((other) => other === id).length !== 1 ||
        answers.filter((other) => other === id).length !== 1,
    );
  });
}
