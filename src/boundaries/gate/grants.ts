/**
 * Tools that a stage is granted beyond its list: one call at a time, by the machine's own code or by a person. A grant
 * is bound to the stage execution, the try, the call and its arguments, and is used up by that call.
 */
import { createHash } from "node:crypto";
import type { Approved, Hooks, Person, GrantScope, Toolbox, Wish } from "../../engine/ports.ts";
import type { Call, CallResult, Grant, Ruling, Teller } from "../../flow/event.ts";
import { callShown } from "../../flow/text/call-shown.ts";
import type { Step } from "../../flow/flow.ts";
import { canonicalJson, isObject, own, type Json } from "../../flow/json.ts";
import { executionId, hookHost } from "../../flow/lifecycle.ts";
import { GRANT_CHOICES, rulingOn } from "../../flow/question.ts";
import { visibleInLine } from "../../flow/text/visible.ts";

export type Granting = {
  /** Absent: the project has no code for its stages. */
  readonly hooks?: Hooks;
  readonly person: Pick<Person, "isReachable" | "absent">;
  readonly cwd: string;
};

/** First every approval, one after the other; then the calls. */
export function createGrantedCalls(
  toolbox: Pick<Toolbox, "offer" | "call">,
  granting: Granting,
): Toolbox["callGranted"] {
  return async (step, batch, about, signal) => {
    const { approved = NOTHING } = about;
    const decided: Decision[] = [];
    const ruled = [...approved.ruled];
    for (const [index, call] of batch.entries()) {
      const before = rulingOn(ruled, index);
      const decision = await decideOn(toolbox, step, call, about, granting, before, signal);
      if (decision.kind === "ask") return { kind: "ask", wish: { ...decision.wish, call: index }, ruled };
      // Code is asked once about a call, however often people are asked about the others.
      const { grant } = decision.kind === "listed" ? {} : decision;
      if (before === undefined && grant?.by === "hook")
        ruled.push({ call: index, answer: grant.decision === "approve" ? "allow" : "deny", by: "hook" });
      decided.push(decision);
    }
    const results: CallResult[] = [];
    for (const [index, call] of batch.entries()) {
      results.push(await settle(toolbox, step, call, decided[index]!, { ...approved, ruled }, index, signal));
    }
    return { kind: "results", results };
  };
}

const NOTHING: Approved = { ruled: [], allowed: [] };

type Decision =
  | { readonly kind: "listed" }
  | { readonly kind: "granted"; readonly grant: Grant }
  | { readonly kind: "denied"; readonly why: string; readonly grant?: Grant }
  | { readonly kind: "ask"; readonly wish: Wish };

async function settle(
  toolbox: Pick<Toolbox, "call">,
  step: Step,
  call: Call,
  decision: Decision,
  { ruled, allowed }: Approved,
  index: number,
  signal: AbortSignal,
): Promise<CallResult> {
  const { id, name } = call;
  if (decision.kind === "denied") {
    const { why, grant } = decision;
    return { id, name, ok: false, content: why, denied: why, ...(grant !== undefined && { grant }) };
  }
  const allow = decision.kind === "granted" ? [...step.tools.allow, name] : step.tools.allow;
  const ruling = rulingOn(ruled, index);
  // What a machine's code grants is still asked about where the mode wants a person's word.
  const own = ruling === undefined || ruling.by === "hook" ? [] : [{ ...ruling, call: 0 }];
  const stage = { ...step, tools: { ...step.tools, allow } };
  const [result] = await toolbox.call(stage, [call], signal, { ruled: own, allowed });
  return decision.kind === "granted" ? { ...result!, grant: decision.grant } : result!;
}

async function decideOn(
  toolbox: Pick<Toolbox, "offer">,
  step: Step,
  call: Call,
  about: GrantScope,
  granting: Granting,
  before: Ruling | undefined,
  signal: AbortSignal,
): Promise<Decision> {
  // A tool that is listed in part, as `Bash(git status)`, is listed: which commands it may run is for the gate to say.
  const listed = new Set(step.tools.allow.map((pattern) => pattern.split("(", 1)[0]!.trim()));
  const isListed = listed.has("*") || listed.has(call.name);
  // A tool that does not exist is answered by the toolbox itself, which says which ones there are.
  const exists = toolbox.offer({ ...step, tools: EVERYTHING }).some(({ name }) => name === call.name);
  if (!exists) return { kind: "listed" };
  const decision: Decision = isListed
    ? { kind: "listed" }
    : before === undefined
      ? await askFor(step, call, about, granting, signal)
      : decidedBy(before, step, call);
  if (decision.kind === "denied" || decision.kind === "ask") return decision;
  return (await guardAgainst(step, call, about, granting, signal)) ?? decision;
}

const EVERYTHING = { allow: ["*"], mode: "bypassPermissions" } as const;

/** The machine's own decision on the arguments of a call, no matter who allowed the tool. */
async function guardAgainst(
  step: Step,
  call: Call,
  about: GrantScope,
  { hooks, cwd }: Granting,
  signal: AbortSignal,
): Promise<Decision | null> {
  if (hooks === undefined) return null;
  const proposal = { ...tupleOf(step, call, about), input: call.input };
  const said = await hooks.call(
    ["guard"],
    [proposal, hookHost(about.run, { step: step.id, visit: about.visit }, cwd)],
    signal,
  );
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
  about: GrantScope,
  { hooks, person, cwd }: Granting,
  signal: AbortSignal,
): Promise<Decision> {
  const tuple = tupleOf(step, call, about);
  const by = (teller: Teller, answer: string | null, who: string) =>
    decisionFor({ by: teller, answer, who, step, call });
  if (hooks !== undefined) {
    const said = await hooks.call(
      ["grantStageTool"],
      [tuple, hookHost(about.run, { step: step.id, visit: about.visit }, cwd)],
      signal,
    );
    if (said.kind === "threw") return by("hook", "deny", `grantStageTool failed: ${said.message}`);
    const decision = said.kind === "gave" ? decisionOf(said.value) : undefined;
    if (decision === "approve") return by("hook", "allow", "");
    if (decision === "deny") return by("hook", "deny", "the machine does not grant it");
  }
  if (!person.isReachable) {
    return person.absent === "allow"
      ? by("setting", "allow", "")
      : by("headless", null, "nobody is there to allow it");
  }
  const heading = `Stage "${visibleInLine(step.id)}" wants to call ${visibleInLine(call.name)}, which is not among its tools`;
  const { text: shown } = callShown(heading, call);
  const text = `${shown}\nAllowed would be this one call.`;
  return { kind: "ask", wish: { about: "grant", text, choices: GRANT_CHOICES } };
}

/** What was said about it before. */
function decidedBy({ answer, by }: Ruling, step: Step, call: Call): Decision {
  return decisionFor({ by, answer, who: WHO[by], step, call });
}

/** Why it was refused, as the model hears it. */
export const WHO: { readonly [by in Teller]: string } = {
  terminal: "the user said no",
  answer: "the user said no",
  studio: "the user said no",
  mcp: "the user said no",
  file: "the user said no",
  expired: "nobody answered in time",
  hook: "the machine does not grant it",
  setting: "a setting says no",
  headless: "nobody is there to allow it",
};

/** Who is recorded as the source of a grant. */
export function grantBy(by: Teller): Grant["by"] {
  if (by === "hook" || by === "setting") return by;
  return by === "expired" || by === "headless" ? "nobody" : "person";
}

function decisionFor(of: {
  readonly by: Teller;
  readonly answer: string | null;
  readonly who: string;
  readonly step: Step;
  readonly call: Call;
}): Decision {
  const { answer, call, step, who } = of;
  const grant = { by: grantBy(of.by), argsDigest: argsDigest(call) };
  if (answer === "allow") return { kind: "granted", grant: { ...grant, decision: "approve" } };
  const why = `ApprovalDenied: ${call.name} is not among the tools of stage "${step.id}", and ${who}. Go on without it.`;
  return { kind: "denied", why, grant: { ...grant, decision: "deny" } };
}

export function argsDigest({ input }: Pick<Call, "input">): string {
  return createHash("sha256").update(canonicalJson(input)).digest("hex");
}

function tupleOf({ id: step }: Step, { id, name, input }: Call, { run, visit, attempt }: GrantScope) {
  const stageExecutionId = executionId(run, { step, visit });
  return { stageExecutionId, attempt, proposalId: id, tool: name, argsDigest: argsDigest({ input }) };
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
