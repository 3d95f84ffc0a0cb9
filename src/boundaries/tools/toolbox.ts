/** The tools of a run. Each call passes the gate first; whatever happens, it gets exactly one result. */
import { cached } from "../../flow/cached.ts";
import {
  RunnerError,
  type Approved,
  type Toolbox,
  type ToolCall,
  type ToolSpec,
} from "../../engine/ports.ts";
import type { Call, CallResult, Grant } from "../../flow/event.ts";
import type { Flow, Step } from "../../flow/flow.ts";
import { own, type JsonObject } from "../../flow/json.ts";
import { rulingOn } from "../../flow/question.ts";
import { errorText } from "../../flow/text/harmless.ts";
import { bashTool } from "./bash.ts";
import { fileTools } from "./files.ts";
import { GITHUB_READ, githubTool } from "./github.ts";
import { argsDigest, createGrantedCalls, grantBy, WHO, type Granting } from "../gate/grants.ts";
import { judge, mayOffer, mayOfferAsking, reachOf, type GateRule } from "../gate/gate.ts";
import { createGround, type Ground, type Guarded } from "../gate/paths.ts";
import { permissionFor, permissionWish, userWish, type Permission } from "../gate/permissions.ts";
import { searchTools, wanders } from "./search.ts";
import { talkTools } from "./talk.ts";
import { clipOutput, inputFault, type ToolOutcome, type Tool, type ToolSurroundings } from "./tool.ts";

export type ToolboxOptions = Omit<ToolSurroundings, "ground" | "call"> & {
  /** Who may grant a stage what its list does not have, and approve what a mode asks about; no one by default. */
  readonly granting?: Omit<Granting, "cwd">;
  /** AskUserQuestion goes to a person, where there is one. */
  readonly asksUser?: boolean;
  /** Tools of servers, by names that no other tool has. */
  readonly served?: readonly ServedTool[];
  /** Paths that Write and Edit must not change, besides `.git`, `.lockstep` and `.agent`. */
  readonly protect: readonly string[];
  /** What belongs to Lockstep itself: read-only, and its records not even that. */
  readonly guarded?: () => Guarded;
};

/** A tool that somebody else runs, and describes: its input is for them to judge. */
export type ServedTool = {
  readonly spec: ToolSpec;
  /** It says of itself that it changes nothing. */
  readonly reads: boolean;
  readonly run: (input: JsonObject, signal: AbortSignal) => Promise<ToolOutcome>;
};

export function createToolbox(options: ToolboxOptions): Toolbox {
  const { protect, guarded, granting = NO_ONE, asksUser = false, served = [], ...more } = options;
  const ground = createGround(more.cwd, protect, guarded);
  const world = { ...more, ground };
  const permitting = { person: granting.person, asksUser };
  const { others, readers } = served.length === 0 ? NOT_SERVED : byName(served);
  const may = isAsking(granting.person) ? mayOfferAsking : mayOffer;
  const ours = offerOf(granting.person, more.github !== undefined);
  const offer = served.length === 0 ? ours : withServed();

  const call: Toolbox["call"] = async (step, batch, signal, approved = NOTHING) => {
    const names = batch.map(({ name }) => name);
    const results: CallResult[] = [];
    for (const [index, one] of batch.entries())
      results.push(await settle(step, one, index, names, approved, signal));
    return results;
  };

  return {
    offer,
    judge: (step, one, batch, allowed = []) => {
      const judgement = judge(step, one, batch, readers);
      const { kind } = permissionFor(one, 0, judgement, { ruled: [], allowed }, permitting);
      return judgement.allow || kind === "allowed" ? trespass(ground, one) : judgement.reason;
    },
    wish: (step, batch, approved) => {
      if (!permitting.person.isReachable) return null;
      const names = batch.map(({ name }) => name);
      for (const [index, one] of batch.entries()) {
        const judgement = judge(step, one, names, readers);
        const { kind } = permissionFor(one, index, judgement, approved, permitting);
        if (kind === "ask" && trespass(ground, one) === null) return permissionWish(step, one, index);
        if (!judgement.allow || rulingOn(approved.ruled, index) !== undefined) continue;
        const wish = userWish(one, index, permitting);
        if (wish !== null) return wish;
      }
      return null;
    },
    call,
    ...(served.length > 0 && { served: served.map(({ spec }) => spec) }),
    callGranted: createGrantedCalls({ offer, call }, { ...granting, cwd: more.cwd }),
  };

  function withServed(): Toolbox["offer"] {
    const theirs = offering(served, (step, name) => may(step, name, readers));
    return cached((step: Step) => [...ours(step), ...theirs(step)]);
  }

  async function settle(
    step: Step,
    call: Call,
    index: number,
    batch: readonly string[],
    approved: Approved,
    signal: AbortSignal,
  ): Promise<CallResult> {
    if (signal.aborted)
      return toResult(call, {
        kind: "failed",
        content: `${call.name} did not run: the run was interrupted.`,
      });
    const tool = TOOLS.get(call.name);
    const other = others.get(call.name);
    const judgement = judge(step, call, batch, readers);
    const permission = permissionFor(call, index, judgement, approved, permitting);
    const isKnown = tool !== undefined || other !== undefined;
    const isOurs = isKnown || (!judgement.allow && TELLING.has(judgement.rule));
    if (!judgement.allow && permission.kind !== "allowed" && isOurs)
      return granted(call, permission, {
        kind: "refused",
        why: refusalFor(step, call, judgement.reason, permission),
      });
    if (other !== undefined)
      return granted(call, permission, await attempt(call.name, signal, () => other.run(call.input, signal)));
    if (tool === undefined) return toResult(call, notRegistered(call.name, offer(step)));
    const answer = call.name === "AskUserQuestion" ? rulingOn(approved.ruled, index)?.answer : undefined;
    const answering = answer == null ? world : { ...world, autoResponse: answer };
    return granted(call, permission, await run(tool, call, answering, signal));
  }
}

/** What steps are offered where no server has tools. `github`: it can be read. */
export function offerOf(person: Granting["person"], github: boolean): Toolbox["offer"] {
  return OFFERS[isAsking(person) ? "asking" : "silent"][github ? "all" : "local"];
}

function isAsking({ isReachable, absent }: Granting["person"]): boolean {
  return isReachable || absent === "allow";
}

function byName(served: readonly ServedTool[]): {
  readonly others: ReadonlyMap<string, ServedTool>;
  readonly readers: ReadonlySet<string>;
} {
  return {
    others: new Map(served.map((tool) => [tool.spec.name, tool])),
    readers: new Set(served.flatMap(({ spec, reads }) => (reads ? [spec.name] : []))),
  };
}

/** Of most runs. */
const NOT_SERVED = byName([]);

const NOTHING: Approved = { ruled: [], allowed: [] };

const NO_ONE: Omit<Granting, "cwd"> = { person: { isReachable: false, absent: "deny" } };

function granted(call: Call, permission: Permission, outcome: ToolOutcome): CallResult {
  return grantedBy(call, permission, toResult(call, outcome));
}

/** With who let it through, or did not, where a person had to be asked. */
export function grantedBy(call: Call, permission: Permission, result: CallResult): CallResult {
  if (permission.kind !== "allowed" && permission.kind !== "denied") return result;
  const decision: Grant["decision"] = permission.kind === "allowed" ? "approve" : "deny";
  return { ...result, grant: { by: grantBy(permission.by), decision, argsDigest: argsDigest(call) } };
}

/** As the model reads it. The gate's own reason is for the case that no one was asked. */
export function refusalFor(step: Step, { name }: Call, reason: string, permission: Permission): string {
  if (permission.kind !== "denied" || permission.by === "headless") return reason;
  if (grantBy(permission.by) === "person")
    return `The user denied ${name} in step "${step.id}". Go on without it.`;
  return reason.replace("nobody is there to ask", WHO[permission.by]);
}

/** One set for every run, in the order in which they are offered. */
const ALL: readonly Tool[] = [...fileTools(), ...searchTools(), bashTool(), ...talkTools(), githubTool()];
const TOOLS: ReadonlyMap<string, Tool> = new Map(ALL.map((tool) => [tool.spec.name, tool]));

/** The names of all of them, in that order. */
export const OFFERED: readonly string[] = ALL.map(({ spec }) => spec.name);

/** The tools that a step is offered: those of which some call could pass the gate. */
const LOCAL = ALL.filter(({ spec }) => spec.name !== GITHUB_READ);

/** With and without somebody who can be asked, with and without GitHub. */
const OFFERS = {
  silent: { all: offering(ALL, mayOffer), local: offering(LOCAL, mayOffer) },
  asking: { all: offering(ALL, mayOfferAsking), local: offering(LOCAL, mayOfferAsking) },
} as const;

function offering(
  tools: readonly Pick<Tool, "spec">[],
  may: (step: Step, name: string) => boolean,
): Toolbox["offer"] {
  return cached((step: Step) => tools.map(({ spec }) => spec).filter(({ name }) => may(step, name)));
}

/** What a run of the flow offers a step, with or without a person who can be asked, but for the tools of servers. */
export function offeredIn(
  { settings }: Pick<Flow, "settings">,
  step: Step,
  when: keyof typeof OFFERS = "silent",
): readonly ToolSpec[] {
  return OFFERS[when][settings.github.enabled ? "all" : "local"](step);
}

/** Rules that have something to say about a tool that is not in the box; of others, the names there are say more. */
const TELLING: ReadonlySet<GateRule> = new Set<GateRule>(["batch", "kind"]);

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
  const pattern = own(input, name === "Grep" ? "glob" : "pattern");
  const isGlob = (name === "Glob" || name === "Grep") && typeof pattern === "string";
  return isGlob ? wanders(pattern) : null;
}

const PATH_FIELDS = ["file_path", "notebook_path", "path"];

async function run(
  tool: Tool,
  call: Call,
  world: Omit<ToolSurroundings, "call">,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const fault = inputFault(tool.spec.input, call.input);
  if (fault !== null) return { kind: "failed", content: `InvalidInput: ${call.name}: ${fault}.` };
  return await attempt(call.name, signal, () => tool.run(call.input, { ...world, call: call.id }, signal));
}

/** Whatever happens, there is an outcome. */
async function attempt(
  name: string,
  signal: AbortSignal,
  work: () => ToolOutcome | Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  try {
    return await work();
  } catch (error) {
    // What keeps commands from what git would obey is gone: the run must not go on as if it were there.
    if (error instanceof RunnerError && error.code === "SANDBOX_UNAVAILABLE") throw error;
    const what = signal.aborted ? "was interrupted" : `failed: ${errorText(error)}`;
    return { kind: "failed", content: `${name} ${what}.` };
  }
}

function notRegistered(name: string, offered: readonly ToolSpec[]): ToolOutcome {
  const names = offered.map((spec) => spec.name).join(", ");
  const content = `ToolNotRegistered: there is no tool ${JSON.stringify(name.slice(0, 80))}.`;
  return { kind: "failed", content: `${content} This step has: ${names || "no tools"}.` };
}

function toResult({ id, name }: Call, outcome: ToolOutcome): CallResult {
  if (outcome.kind === "refused")
    return { id, name, ok: false, content: clipOutput(outcome.why), denied: outcome.why };
  return { id, name, ok: outcome.kind === "done", content: clipOutput(outcome.content) };
}
