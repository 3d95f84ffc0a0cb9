/**
 * Tools that a stage is granted beyond its list: one call at a time, by the machine's own code or by a person. A grant
 * is bound to the stage execution, the try, the call and its arguments, and is used up by that call.
 */
import { createHash } from "node:crypto";
import type { Hooks, Person, StageCall, Toolbox } from "../engine/ports.ts";
import type { Call, CallResult, Grant } from "../flow/event.ts";
import type { Step } from "../flow/flow.ts";
import { canonicalJson, isObject, own, type Json, type JsonObject } from "../flow/json.ts";

export type Granting = {
  /** Absent: the project has no code for its stages. */
  readonly hooks?: Hooks;
  readonly person: Person;
  readonly cwd: string;
};

/** First every approval, one after the other; then the calls. */
export function createStageCalls(
  toolbox: Pick<Toolbox, "offer" | "call">,
  granting: Granting,
): Toolbox["callInStage"] {
  return async (step, batch, about, signal) => {
    const rulings: Ruling[] = [];
    for (const call of batch) {
      const ruling = await ruleOn(toolbox, step, call, about, granting, signal);
      if (ruling.kind === "halt") return ruling;
      rulings.push(ruling);
    }
    const results: CallResult[] = [];
    for (const [index, call] of batch.entries()) {
      results.push(await settle(toolbox, step, call, rulings[index]!, signal));
    }
    return { kind: "results", results };
  };
}

type Ruling =
  | { readonly kind: "listed" }
  | { readonly kind: "granted"; readonly grant: Grant }
  | { readonly kind: "denied"; readonly why: string; readonly grant?: Grant }
  | { readonly kind: "halt"; readonly why: string; readonly choices: readonly string[] };

async function settle(
  toolbox: Pick<Toolbox, "call">,
  step: Step,
  call: Call,
  ruling: Ruling,
  signal: AbortSignal,
): Promise<CallResult> {
  const { id, name } = call;
  if (ruling.kind === "denied") {
    const { why, grant } = ruling;
    return { id, name, ok: false, content: why, denied: why, ...(grant !== undefined && { grant }) };
  }
  const allow = ruling.kind === "granted" ? [...step.tools.allow, name] : step.tools.allow;
  const [result] = await toolbox.call({ ...step, tools: { ...step.tools, allow } }, [call], signal);
  return ruling.kind === "granted" ? { ...result!, grant: ruling.grant } : result!;
}

async function ruleOn(
  toolbox: Pick<Toolbox, "offer">,
  step: Step,
  call: Call,
  about: StageCall,
  granting: Granting,
  signal: AbortSignal,
): Promise<Ruling> {
  // A tool that is listed in part, as `Bash(git status)`, is listed: which commands it may run is for the gate to say.
  const listed = new Set(step.tools.allow.map((pattern) => pattern.split("(", 1)[0]!.trim()));
  const isListed = listed.has("*") || listed.has(call.name);
  // A tool that nobody has is answered by the toolbox itself, which says which ones there are.
  const exists = toolbox.offer({ ...step, tools: EVERYTHING }).some(({ name }) => name === call.name);
  if (!exists) return { kind: "listed" };
  const ruling: Ruling = isListed ? { kind: "listed" } : await askFor(step, call, about, granting, signal);
  if (ruling.kind === "denied" || ruling.kind === "halt") return ruling;
  return (await guardAgainst(step, call, about, granting, signal)) ?? ruling;
}

const EVERYTHING = { allow: ["*"], mode: "bypassPermissions" } as const;

/** The machine's own word on the arguments of a call, whoever allowed the tool. */
async function guardAgainst(
  step: Step,
  call: Call,
  about: StageCall,
  { hooks, cwd }: Granting,
  signal: AbortSignal,
): Promise<Ruling | null> {
  if (hooks === undefined) return null;
  const proposal = { ...tupleOf(call, about), input: call.input };
  const said = await hooks.call(["guard"], [proposal, hostOf(step, about, cwd)], signal);
  if (said.kind === "absent") return null;
  const refused = said.kind === "threw" ? `it failed: ${said.message}` : refusal(said.value);
  if (refused === null) return null;
  return {
    kind: "denied",
    why: `ApprovalDenied: ${call.name} is refused by the guard of the machine: ${refused}.`,
  };
}

/** Code is asked first, then a person, once. */
async function askFor(
  step: Step,
  call: Call,
  about: StageCall,
  { hooks, person, cwd }: Granting,
  signal: AbortSignal,
): Promise<Ruling> {
  const { argsDigest, ...tuple } = tupleOf(call, about);
  const granted = (by: Grant["by"]): Ruling => ({
    kind: "granted",
    grant: { by, decision: "approve", argsDigest },
  });
  const denied = (by: Grant["by"], who: string): Ruling => ({
    kind: "denied",
    why: `ApprovalDenied: ${call.name} is not among the tools of stage "${step.id}", and ${who}. Go on without it.`,
    grant: { by, decision: "deny", argsDigest },
  });
  if (hooks !== undefined) {
    const said = await hooks.call(
      ["grantStageTool"],
      [{ ...tuple, argsDigest }, hostOf(step, about, cwd)],
      signal,
    );
    if (said.kind === "threw") return denied("hook", `grantStageTool failed: ${said.message}`);
    if (said.kind === "gave" && decisionOf(said.value) === "approve") return granted("hook");
    if (said.kind === "gave" && decisionOf(said.value) === "deny")
      return denied("hook", "the machine does not grant it");
  }
  const wish = `Stage "${step.id}" wants to call ${call.name}, which is not among its tools: ${JSON.stringify(call.input).slice(0, 400)}`;
  const answer = await person.choose(`${wish}\nLet it, this once?`, CHOICES, signal);
  if (answer === "allow") return granted("person");
  if (answer !== null) return denied("person", "a person said no");
  switch (person.absent) {
    case "allow":
      return granted("setting");
    case "halt":
      return {
        kind: "halt",
        why: `${wish}. Nobody is there to allow it; answer with: lockstep answer ${about.run} allow (or deny)`,
        choices: CHOICES,
      };
    case "deny":
      return denied("nobody", "nobody is there to allow it");
  }
}

const CHOICES = ["allow", "deny"] as const;

function tupleOf({ id, name, input }: Call, { stageExecutionId, attempt }: StageCall) {
  const argsDigest = createHash("sha256").update(canonicalJson(input)).digest("hex");
  return { stageExecutionId, attempt, proposalId: id, tool: name, argsDigest };
}

function hostOf({ id }: Step, { run, stageExecutionId }: StageCall, cwd: string): JsonObject {
  return { cwd, workflowRunId: run, stageExecutionId, stage: id };
}

/** `"approve"`, or `{ decision: "approve" }`. */
function decisionOf(value: Json): Json | undefined {
  return isObject(value) ? own(value, "decision") : value;
}

/** `"deny"`, `false`, `{ deny: why }` or `{ decision: "deny", reason }`; anything else lets the call through. */
function refusal(value: Json): string | null {
  const reason = isObject(value) ? (own(value, "reason") ?? own(value, "deny")) : undefined;
  const why = typeof reason === "string" ? reason : "it said no";
  const denies = isObject(value) && own(value, "deny") !== undefined && own(value, "deny") !== false;
  return value === false || decisionOf(value) === "deny" || denies ? why : null;
}
