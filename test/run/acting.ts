/** A project whose agent carries out action blocks, and a stand-in of GitHub beside it. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  createMemoryJournal,
  resume,
  run,
  type Journal,
  type Result,
  type RunOptions,
  type ScriptReply,
} from "../../src/run/index.ts";
import { createClock } from "../github/client.ts";
import { openStandIn, type StandIn } from "../github/stand-in.ts";
import type { StoredIssue } from "../../src/testing/github/world.ts";
import { agentFiles, projectWith, writeFiles } from "./project.ts";

export const HANDLERS = {
  note: "builtin:file",
  issue: "builtin:github-issue",
  comment: "builtin:github-comment",
  done: "builtin:completion-signal",
  plan: "builtin:log",
};
export const NOTE = { type: "note", content: "one", filename: "notes.md" };
export const TYPES = ["issue-action", ...Object.keys(HANDLERS)];

export type Settings = {
  readonly actions?: object;
  readonly github?: object;
  readonly execution?: object;
  /** The closure passes when this file is there. */
  readonly proof?: string;
  readonly mode?: string;
  readonly verdict?: object;
  readonly files?: { readonly [path: string]: string };
};

export function actingAgent(settings: Settings = {}): { readonly [path: string]: string } {
  const { actions, github = {}, execution, proof, mode = "acceptEdits", files = {} } = settings;
  const { verdict = { type: "detect:graph", config: { maxIterations: 8 } } } = settings;
  const more = { permissionMode: mode };
  const steps = {
    "initial.work": {
      kind: "work",
      intents: ["next", "repeat", "handoff"],
      transitions: {
        next: { target: "initial.work" },
        repeat: { target: "initial.work" },
        handoff: { target: "closure.work" },
      },
      more,
    },
    "closure.work": {
      kind: "closure",
      intents: ["closing", "repeat"],
      transitions: { closing: { target: null }, repeat: { target: "initial.work" } },
    },
  } as const;
  const registry = {
    validators: { proof: { type: "file", path: proof, failurePattern: "unproven" } },
    failurePatterns: { unproven: { description: "No proof", edition: "failed", params: [] } },
    validationSteps: {
      "closure.work": {
        stepId: "closure.work",
        name: "Proof",
        c2: "retry",
        c3: "work",
        validationConditions: [{ validator: "proof" }],
        onFailure: { action: "retry", maxAttempts: 3 },
      },
    },
  };
  const runner = {
    flow: { systemPromptPath: "prompts/system.md" },
    verdict,
    boundaries: { allowedTools: ["*"], permissionMode: "acceptEdits" },
    integrations: { github },
    actions: { enabled: true, types: TYPES, outputFormat: "json", handlers: HANDLERS, ...actions },
    ...(execution && { execution }),
  };
  const agent = { parameters: { issue: { type: "number", cli: "--issue" } } };
  return {
    ...agentFiles("worker", steps, { runner, agent, ...(proof !== undefined && { registry }) }),
    ".agent/worker/prompts/steps/retry/work/f_failed.md": "There is no proof.\n",
    ...files,
  };
}

/** A reply with an answer, and blocks in the words beside it. */
export function reply(step: string, action: string, ...blocks: readonly object[]): ScriptReply {
  const text = ["Here is what I did.", ...blocks.map(fenced)].join("\n\n");
  return { step, text, output: { stepId: step, next_action: { action } } };
}

export function fenced(block: object): string {
  return `\`\`\`json\n${JSON.stringify(block)}\n\`\`\``;
}

export const handoff = (...blocks: readonly object[]) => reply("initial.work", "handoff", ...blocks);
export const closing = (...blocks: readonly object[]) => reply("closure.work", "closing", ...blocks);

export type World = {
  readonly cwd: string;
  readonly stand: StandIn;
  /** The run's own, and another one. */
  readonly issue: StoredIssue;
  readonly other: StoredIssue;
  readonly journal: Journal;
  readonly start: (script: readonly ScriptReply[], more?: Partial<RunOptions>) => Promise<Result>;
  readonly resume: (result: Pick<Result, "run">, more?: Partial<RunOptions>) => Promise<Result>;
  readonly read: (path: string) => string | null;
  readonly write: (path: string, text: string) => void;
  /** What was changed on the stand-in, in order. */
  readonly writes: readonly string[];
};

export async function withActing(settings: Settings, use: (world: World) => Promise<void>): Promise<void> {
  const stand = await openStandIn();
  const issue = stand.world.addIssue({ labels: ["todo"] });
  const other = stand.world.addIssue();
  const writes: string[] = [];
  stand.onRequest = ({ method, path }) => {
    if (method !== "GET") writes.push(`${method} ${path.split("/").slice(4).join("/")}`);
  };
  const cwd = projectWith(actingAgent(settings));
  const journal = createMemoryJournal();
  const env = { ...stand.env, LOCKSTEP_TRUST: "all", PATH: process.env.PATH };
  const around = { cwd, journal, env, clock: createClock().clock };
  try {
    await use({
      cwd,
      stand,
      issue,
      other,
      journal,
      writes,
      start: async (script, more = {}) =>
        await run({ agent: "worker", args: { issue: issue.number }, ...around, script, ...more }),
      resume: async (result, more = {}) => await resume({ run: result.run!, ...around, ...more }),
      read: (path) => (existsSync(join(cwd, path)) ? readFileSync(join(cwd, path), "utf8") : null),
      write: (path, text) => writeFiles(cwd, { [path]: text }),
    });
  } finally {
    await stand.close();
  }
}

export function effectsOf({ effects }: Pick<Result, "effects">): readonly string[] {
  return effects.map(({ kind, state }) => `${kind}:${state}`);
}

/** The texts of an issue's comments, without the signature that Lockstep adds. */
export const bodies = (issue: { readonly comments: readonly { readonly body: string }[] }) =>
  issue.comments.map(({ body }) => body.replace(/\n\n<!-- lockstep [0-9a-f]{32} -->$/, " (signed)"));
