/** The tools of a run. Each call passes the gate first; whatever happens, it gets exactly one result. */
import type { Toolbox, ToolSpec } from "../engine/ports.ts";
import type { Call, CallResult } from "../flow/event.ts";
import type { Step } from "../flow/flow.ts";
import { own } from "../flow/json.ts";
import { bashTool, type Env, type RunProcess } from "./bash.ts";
import { fileTools } from "./files.ts";
import { judge, mayOffer, reachOf, type Rule, type ToolCall } from "./gate.ts";
import { createGround, type Ground } from "./paths.ts";
import { searchTools, wanders } from "./search.ts";
import { talkTools } from "./talk.ts";
import { clip, misfit, type Outcome, type Tool } from "./tool.ts";

export type ToolboxOptions = {
  /** The folder that tools work in; file tools never leave it. */
  readonly cwd: string;
  /** Paths that Write and Edit must not change, besides `.git`, `.lockstep` and `.agent`. */
  readonly protect: readonly string[];
  /** Exactly what commands see of the environment: narrowed, nothing secret in it. */
  readonly env: Env;
  /** What AskUserQuestion is answered with. */
  readonly autoResponse: string;
  readonly exec: RunProcess;
};

export function createToolbox({ cwd, protect, env, autoResponse, exec }: ToolboxOptions): Toolbox {
  const ground = createGround(cwd, protect);
  const all = [
    ...fileTools(ground),
    ...searchTools(ground),
    bashTool({ cwd, env, exec }),
    ...talkTools(autoResponse),
  ];
  const tools: ReadonlyMap<string, Tool> = new Map(all.map((tool) => [tool.spec.name, tool]));
  const offers = new WeakMap<Step, readonly ToolSpec[]>();

  function offer(step: Step): readonly ToolSpec[] {
    const known = offers.get(step);
    if (known !== undefined) return known;
    const specs = all.map(({ spec }) => spec).filter(({ name }) => mayOffer(step, name));
    offers.set(step, specs);
    return specs;
  }

  return {
    offer,
    judge: (step, call, batch) => {
      const judgement = judge(step, call, batch);
      return judgement.allow ? trespass(ground, call) : judgement.reason;
    },
    call: async (step, batch, signal) => {
      const names = batch.map((call) => call.name);
      const results: CallResult[] = [];
      for (const call of batch) {
        const outcome = await settle(step, call, names, signal);
        results.push(toResult(call, outcome));
      }
      return results;
    },
  };

  async function settle(
    step: Step,
    call: Call,
    batch: readonly string[],
    signal: AbortSignal,
  ): Promise<Outcome> {
    if (signal.aborted)
      return { kind: "failed", content: `${call.name} did not run: the run was interrupted.` };
    const tool = tools.get(call.name);
    const judgement = judge(step, call, batch);
    const isOurs = tool !== undefined || (!judgement.allow && TELLING.has(judgement.rule));
    if (!judgement.allow && isOurs) return { kind: "refused", why: judgement.reason };
    if (tool === undefined) return notRegistered(call.name, offer(step));
    return run(tool, call, signal);
  }
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

async function run(tool: Tool, call: Call, signal: AbortSignal): Promise<Outcome> {
  const fault = misfit(tool.spec.input, call.input);
  if (fault !== null) return { kind: "failed", content: `InvalidInput: ${call.name}: ${fault}.` };
  try {
    return await tool.run(call.input, signal);
  } catch (error) {
    const what = signal.aborted
      ? "was interrupted"
      : `failed: ${error instanceof Error ? error.message : String(error)}`;
    return { kind: "failed", content: `${call.name} ${what}.` };
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
