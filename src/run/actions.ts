/** The action blocks of a run: noticed in the answers that settled its visits, and carried out before anything else is done. */
import { resolve } from "node:path";
import { createGround } from "../boundaries/gate/paths.ts";
import type { Redactor } from "../boundaries/redact/redact.ts";
import { blocksIn, type Block } from "../effects/actions/action-blocks.ts";
import { actsOf, type ActionRequest, type ActionSurroundings } from "../effects/actions/actions.ts";
import { createLedger, type Act } from "../effects/actions/ledger.ts";
import type { ModuleHost, ModuleHostOptions } from "../effects/modules/module-host.ts";
import type { Drive } from "../engine/drive/drive.ts";
import type { Clock } from "../engine/ports.ts";
import { REFUSED, SIDE_NOTE, type Effect, type Report } from "../story/report.ts";
import type { State } from "../engine/decide/state.ts";
import { flowFrom } from "../flow/adopted.ts";
import type { EffectEvent, Entry, Event, Led } from "../flow/event.ts";
import type { Flow, Flows } from "../flow/flow.ts";
import { own } from "../flow/json.ts";
import { githubFor, type Pinned } from "./world/github.ts";
import { guardedIn } from "./world/own-files.ts";
import { loadedModules } from "./world/own-modules.ts";
import type { WorktreeSurroundings } from "./world/worktree.ts";

export type ActingOptions = WorktreeSurroundings & {
  /** The flow that the run began with, and those it adopted. */
  readonly began: Flow;
  readonly adopted: Flows;
  readonly run: string;
  /** Of the project, where its modules are. */
  readonly root: string;
  readonly cwd: string;
  /** Where runs are recorded. */
  readonly stateDir: string;
  /** The working tree that the run was started in. */
  readonly home: string;
  /** Kept up with every entry before it is heard here. */
  readonly report: Pick<Report, "effects" | "dryRun">;
  readonly clock: Clock;
  readonly repository: Pinned;
  readonly redactor: Redactor;
  readonly hookTimeoutMs?: number;
  /** Puts the process of a module into the sandbox. */
  readonly confine: NonNullable<ModuleHostOptions["confine"]>;
};

export type Acting = {
  /** Every entry of the run, in order, with the state it led to. */
  readonly hear: (entry: Entry, after: State) => void;
  readonly attend: NonNullable<Drive["attend"]>;
  /** What waits for the work to be where it was to go. */
  readonly attendLast: NonNullable<Drive["attend"]>;
  readonly close: () => Promise<void>;
};

/** A settled visit whose blocks are to be carried out, as the flow had it that held then. */
type Due = {
  readonly flow: Flow;
  readonly step: string;
  readonly visit: number;
  /** A closure completed the run with it. */
  readonly completes: boolean;
  readonly blocks: readonly Block[];
};

export function createActing(options: ActingOptions): Acting {
  const { adopted, run, cwd, report, redactor, signal } = options;
  const { effects } = report;
  const ground = createGround(cwd, [], () =>
    guardedIn(options, options.env, loadedModules(options.began, options.root)),
  );
  const hosts = createHosts(options);
  // Whether it is switched on is looked at for each block, by the flow that held then.
  const github = githubFor({ ...options, cwd: options.home, enabled: true, onToken: redactor.learn });
  const said = new Map<string, Said>();
  /** Acts that failed in this stretch, by how often; and those of them that trying again may help. */
  const tries = new Map<string, number>();
  const passing = new Set<string>();
  let flow = options.began;
  let shared = 0;
  let isForked = false;
  let due: readonly Due[] = [];

  return {
    hear: (entry, after) => {
      const { seq, event, led } = entry;
      flow = flowFrom(flow, event, adopted);
      // What a run shares with the one it was forked from, that one has done.
      if (event.type === "run.started") shared = event.forkedFrom?.seq ?? 0;
      if (!("step" in event) || seq <= shared) return;
      // Before this could happen, all that was due was attended to, unless it happened beside others.
      if (!isForked) due = due.filter(isOpen);
      isForked = after.fork !== null;
      if (event.type === "step.answered") remember(said, flow, event, after);
      if (led === undefined) return;
      const key = visitOf(led);
      const words = said.get(key);
      said.delete(key);
      if (words === undefined || !flow.settings.actions.enabled || !isAccepted(flow, led, after)) return;
      const blocks = blocksIn(words.text, flow.settings.actions, words.answer);
      if (blocks.length > 0) {
        const completes = isCompletion(flow, led, after);
        due = [...due, { flow, step: led.step, visit: led.visit, completes, blocks }];
      }
    },
    attend: async (state, record) => await attend(state, record, false),
    attendLast: async (state, record) =>
      !due.some(({ completes }) => completes) || (await attend(state, record, true)),
    close: hosts.close,
  };

  async function attend(
    { args }: State,
    record: (event: EffectEvent) => Promise<void>,
    isLast: boolean,
  ): Promise<boolean> {
    const tell = (event: EffectEvent) => record({ ...event, detail: redactor.text(event.detail) });
    for (const visit of due) {
      const world = { ...worldOf(visit), args };
      for (const [index, block] of visit.blocks.entries()) {
        await carryOut(block, { ...visit, index }, world, isLast, tell);
        if (signal.aborted) return false;
      }
    }
    return true;
  }

  /** A failed act on GitHub may be done later. */
  function isOpen(visit: Due): boolean {
    const prefix = `${SIDE_NOTE}${visitOf(visit)}/`;
    return [...effects].some(([key, effect]) => key.startsWith(prefix) && isRepeatable(effect));
  }

  function worldOf({ flow: held, step, completes }: Due): Omit<ActionSurroundings, "args"> {
    return {
      run,
      agent: held.agent,
      cwd,
      settings: held.settings,
      mayWrite: own(held.steps, step)?.tools.mode !== "plan",
      mayClose: completes,
      writing: ground.writing,
      pin: ground.pin,
      github,
      passing: (key) => void passing.add(key),
      host: (type) => hosts.of(held, type),
      signal,
    };
  }

  async function carryOut(
    block: Block,
    { step, visit, index }: Omit<Due, "blocks"> & { readonly index: number },
    world: ActionSurroundings,
    isLast: boolean,
    record: (event: EffectEvent) => Promise<void>,
  ): Promise<void> {
    const key = `${SIDE_NOTE}${visitOf({ step, visit })}/${index}`;
    const before = effects.get(key);
    if (before !== undefined && before.state !== "intended" && !isRepeatable(before)) return;
    const past = (one: string) => effects.get(one) ?? null;
    const asked: ActionRequest =
      block.kind === "refused"
        ? { ok: false, why: block.why }
        : await actsOf(block.action, { key, step, visit, index, past }, world);
    if (!asked.ok) {
      const detail = `${visitOf({ step, visit })}: ${asked.why}`;
      await record({ type: "effect.held", key, kind: REFUSED, target: visitOf({ step, visit }), detail });
      return;
    }
    for (const act of asked.acts) {
      if (act.last === true && !isLast) return;
      if (!(await perform(act, record))) return;
    }
  }

  /** false: what comes after it in the same block has to wait for it. */
  async function perform(act: Act, record: (event: EffectEvent) => Promise<void>): Promise<boolean> {
    const { key } = act;
    const before = effects.get(key);
    const tried = tries.get(key) ?? 0;
    if (before?.state === "failed") {
      const mayHelp = tried === 0 || (passing.has(key) && tried < MOST_TRIES);
      if (!isRepeatable(before) || !mayHelp) return false;
    }
    passing.delete(key);
    // What is only told is told in a dry run too.
    const dryRun = report.dryRun && !TOLD.has(act.kind);
    const done = await createLedger({ past: effects, record, dryRun, signal }).act(act);
    if (!done) tries.set(key, tried + 1);
    return done;
  }
}

const MOST_TRIES = 3;
const TOLD: ReadonlySet<string> = new Set(["action:log", "action:completion-signal"]);
const ON_GITHUB: ReadonlySet<string> = new Set([
  "action:github-issue",
  "action:github-comment",
  "action:issue-action",
]);

function isRepeatable({ kind, state }: Effect): boolean {
  return state === "failed" && ON_GITHUB.has(kind);
}

function visitOf({ step, visit }: { readonly step: string; readonly visit: number }): string {
  return `${step}@${visit}`;
}

// What was said.

/** `answer`: the payload, where the step has to give one. */
type Said = { readonly text: string; readonly answer: NonNullable<State["last"]>["payload"] | null };

/** The newest words of a visit, if they are those that were taken for its answer. */
function remember(
  said: Map<string, Said>,
  { steps }: Flow,
  event: Extract<Event, { type: "step.answered" }>,
  { last }: State,
): void {
  const { reply } = event;
  const step = own(steps, event.step);
  said.delete(visitOf(event));
  if (step === undefined || step.by.kind !== "model" || reply.kind !== "said") return;
  const { text, output = null } = reply;
  // A stage is completed by a call; whether it was accepted is told by its verdict.
  const isTaken =
    step.stage !== undefined || (last?.step === step.id && text.startsWith(last.text) && last.text !== "");
  if (isTaken) said.set(visitOf(event), { text, answer: step.answer.kind === "object" ? output : null });
}

/** Neither overturned by checks, nor an abort, nor what a question about it or its own assertions did not pass. */
function isAccepted(
  { steps }: Flow,
  { step, label, to, overturned, check }: Led,
  { verdict }: State,
): boolean {
  if (overturned === true || label === null) return false;
  if (to === null && verdict?.outcome === "failed") return false;
  if (check !== undefined) return check.label === "pass";
  return own(steps, step)?.stage === undefined || label === "ok";
}

/** The checks of the closure held, and with it the run is complete. Where a verdict ended the run, nobody closed it. */
function isCompletion({ steps }: Flow, { step, to }: Led, { verdict }: State): boolean {
  const { kind, stage } = own(steps, step) ?? {};
  return (
    to === null &&
    verdict?.outcome === "completed" &&
    verdict.step === step &&
    (kind === "close" || stage !== undefined)
  );
}

// What is opened when it is needed first.

function createHosts({ root, cwd, env, hookTimeoutMs, confine }: ActingOptions) {
  const hosts = new Map<string, Promise<ModuleHost>>();
  const open = async (file: string, digest: string) => {
    const { createModuleHost } = await import("../effects/modules/module-host.ts");
    const timing = hookTimeoutMs === undefined ? {} : { timeoutMs: hookTimeoutMs };
    return createModuleHost({ file: resolve(root, file), digest, cwd, env, confine, ...timing });
  };
  return {
    of: async ({ settings }: Flow, type: string): Promise<ModuleHost> => {
      const { file, digest } = own(settings.actions.modules ?? {}, type)!;
      const known = hosts.get(`${digest} ${file}`) ?? open(file, digest);
      hosts.set(`${digest} ${file}`, known);
      return await known;
    },
    close: async () => {
      for (const host of hosts.values()) await (await host).close();
    },
  };
}
