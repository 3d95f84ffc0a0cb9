/** The tools of a run. Each call passes the gate first; whatever happens, it gets exactly one result. */
import type { Toolbox, ToolSpec } from "../engine/ports.ts";
import type { Call, CallResult } from "../flow/event.ts";
import type { Step } from "../flow/flow.ts";
import { own, type JsonObject } from "../flow/json.ts";
import { bashTool } from "./bash.ts";
import { fileTools } from "./files.ts";
import { createStageCalls, type Granting } from "./grants.ts";
import { judge, mayOffer, reachOf, type Rule, type ToolCall } from "./gate.ts";
import { createGround, type Ground } from "./paths.ts";
import { searchTools, wanders } from "./search.ts";
import { talkTools } from "./talk.ts";
import { clip, misfit, type Outcome, type Tool, type World } from "./tool.ts";

export type ToolboxOptions = Omit<World, "ground" | "call"> & {
  /** Who may grant a stage what its list does not have; nobody, unless said. */
  readonly granting?: Omit<Granting, "cwd">;
  /** Tools of servers, by names that no other tool has. */
  readonly served?: readonly ServedTool[];
  /** Paths that Write and Edit must not change, besides `.git`, `.lockstep` and `.agent`. */
  readonly protect: readonly string[];
};

/** A tool that somebody else runs, and describes: its input is for them to judge. */
export type ServedTool = {
  readonly spec: ToolSpec;
  /** It says of itself that it changes nothing. */
  readonly reads: boolean;
  readonly run: (input: JsonObject, signal: AbortSignal) => Promise<Outcome>;
};

export function createToolbox({
  protect,
  granting = NOBODY,
  served = [],
  ...options
}: ToolboxOptions): Toolbox {
  const ground = createGround(options.cwd, protect);
  const world = { ...options, ground };
  const others = new Map(served.map((tool) => [tool.spec.name, tool]));
  const readers = new Set(served.flatMap(({ spec, reads }) => (reads ? [spec.name] : [])));
  const offer = served.length === 0 ? offerOwn : offerAll(served, readers);

  const call: Toolbox["call"] = async (step, batch, signal) => {
    const names = batch.map(({ name }) => name);
    const results: CallResult[] = [];
    for (const one of batch) results.push(toResult(one, await settle(step, one, names, signal)));
    return results;
  };

  return {
    offer,
    judge: (step, one, batch) => {
      const judgement = judge(step, one, batch, readers);
      return judgement.allow ? trespass(ground, one) : judgement.reason;
    },
    call,
    ...(served.length > 0 && { served: served.map(({ spec }) => spec) }),
    callInStage: createStageCalls({ offer, call }, { ...granting, cwd: options.cwd }),
  };

  async function settle(
    step: Step,
    call: Call,
    batch: readonly string[],
    signal: AbortSignal,
  ): Promise<Outcome> {
    if (signal.aborted)
      return { kind: "failed", content: `${call.name} did not run: the run was interrupted.` };
    const tool = TOOLS.get(call.name);
    const other = others.get(call.name);
    const judgement = judge(step, call, batch, readers);
    const isOurs =
      tool !== undefined || other !== undefined || (!judgement.allow && TELLING.has(judgement.rule));
    if (!judgement.allow && isOurs) return { kind: "refused", why: judgement.reason };
    if (other !== undefined) return attempt(call.name, signal, () => other.run(call.input, signal));
    if (tool === undefined) return notRegistered(call.name, offer(step));
    return run(tool, call, world, signal);
  }
}

const NOBODY: Omit<Granting, "cwd"> = {
  person: { choose: () => Promise.resolve(null), absent: "deny" },
};

/** One set for every run, in the order in which they are offered. */
const ALL: readonly Tool[] = [...fileTools(), ...searchTools(), bashTool(), ...talkTools()];
const TOOLS: ReadonlyMap<string, Tool> = new Map(ALL.map((tool) => [tool.spec.name, tool]));
const offers = new WeakMap<Step, readonly ToolSpec[]>();

/** The tools that a step is told of, but for those of servers: those of which some call could pass the gate. */
export function offerOwn(step: Step): readonly ToolSpec[] {
  const known = offers.get(step);
  if (known !== undefined) return known;
  const specs = ALL.map(({ spec }) => spec).filter(({ name }) => mayOffer(step, name));
  offers.set(step, specs);
  return specs;
}

function offerAll(served: readonly ServedTool[], readers: ReadonlySet<string>): Toolbox["offer"] {
  const known = new WeakMap<Step, readonly ToolSpec[]>();
  return (step) => {
    const before = known.get(step);
    if (before !== undefined) return before;
    const theirs = served.map(({ spec }) => spec).filter(({ name }) => mayOffer(step, name, readers));
    const specs = [...offerOwn(step), ...theirs];
    known.set(step, specs);
    return specs;
  };
}

/** Rules that have something to say about a tool that is not in the box; of others, the names there are say more. */
const TELLING: ReadonlySet<Rule> = new Set<Rule>(["batch", "kind"]);

/** For tools that others run: the paths they name, held against the same ground. null: nothing is wrong with them. */
function trespass(ground: Ground, { name, input }: ToolCall): string | null {
  const reach = reachOf(name);
  if ((reach !== "reads" && reach !== "edits") || name.startsWith("mcp__")) return null;
  for (const field of PATH_FIELDS) {
    const path = own(input, field);
    if (typeof path !== "string") continue;
    const place = reach === "edits" ? ground.writing(path) : ground.reading(path);
    if (place.kind === "refused") return place.why;
  }
  const pattern = own(input, "pattern");
  return name === "Glob" && typeof pattern === "string" ? wanders(pattern) : null;
}

const PATH_FIELDS = ["file_path", "notebook_path", "path"];

async function run(
  tool: Tool,
  call: Call,
  world: Omit<World, "call">,
  signal: AbortSignal,
): Promise<Outcome> {
  const fault = misfit(tool.spec.input, call.input);
  if (fault !== null) return { kind: "failed", content: `InvalidInput: ${call.name}: ${fault}.` };
  return await attempt(call.name, signal, () => tool.run(call.input, { ...world, call: call.id }, signal));
}

/** Whatever happens, there is an outcome. */
async function attempt(
  name: string,
  signal: AbortSignal,
  work: () => Outcome | Promise<Outcome>,
): Promise<Outcome> {
  try {
    return await work();
  } catch (error) {
    const what = signal.aborted
      ? "was interrupted"
      : `failed: ${error instanceof Error ? error.message : String(error)}`;
    return { kind: "failed", content: `${name} ${what}.` };
  }
}

function notRegistered(name: string, offered: readonly ToolSpec[]): Outcome {
  const names = offered.map((spec) => spec.name).join(", ");
  const content = `ToolNotRegistered: there is no tool ${JSON.stringify(name.slice(0, 80))}.`;
  return { kind: "failed", content: `${content} This step has: ${names || "no tools"}.` };
}

function toResult({ id, name }: Call, outcome: Outcome): CallResult {
  if (outcome.kind === "refused")
    return { id, name, ok: false, content: clip(outcome.why), denied: outcome.why };
  return { id, name, ok: outcome.kind === "done", content: clip(outcome.content) };
}
