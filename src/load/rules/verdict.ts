/** Rules about the verdict: that it can fire, and that the model knows how to make it fire. */
import type { Flow } from "../../flow/flow.ts";
import { partsOf, type Part } from "../../flow/rules.ts";
import { answerSchema, isGated, visitsToVerdict, type Registered } from "./loaded.ts";
import { error, warning, type Codes, type Rules, type Tell } from "./rule.ts";

export const rules: Rules = { gated: [checkVerdict] };

export const codes = {
  "VERDICT-NEVER": error(
    "verdict never fires",
    "A run that cannot succeed spends tokens until a limit stops it, and then fails.",
  ),
  "VERDICT-UNTOLD": warning(
    "prompts do not say how to end",
    "A model can only give a keyword or a block that a prompt asks it for.",
  ),
  "VERDICT-CLOSES": warning(
    "issue closed by a count",
    "A count shows that a run is over, not that its work is done.",
  ),
} satisfies Codes;

function checkVerdict(loaded: Registered, tell: Tell): void {
  checkReachable(loaded, tell);
  checkTold(loaded, tell);
  checkClosing(loaded, tell);
}

/** A count says that a run is over, not that its work is done: an issue should not be closed by one. */
function checkClosing({ flow, sources }: Registered, tell: Tell): void {
  const { enabled, asked, defaultClosureAction: action } = flow.settings.github;
  const counts = [flow.stop, ...(flow.stop.kind === "any" ? flow.stop.of : [])];
  const count = counts.find((part) => part.kind === "visits" || part.kind === "checks");
  if (!enabled || asked !== true || action === "label-only" || count === undefined) return;
  tell({
    code: "VERDICT-CLOSES",
    document: sources.agentDocument,
    pointer: "/runner/verdict",
    message: `A run counts as complete after ${count.count} ${count.kind}, and its issue is then closed even if the work is not done.`,
    fix: 'End the flow by a closure with the verdict type detect:graph, or set defaultClosureAction to "label-only".',
  });
}

/** Where gates may end the run, a verdict that cannot is only dead weight. An end by gates alone is their own business. */
function checkReachable(loaded: Registered, tell: Tell): void {
  const { flow, sources } = loaded;
  const { stop, limits } = flow;
  const needed = visitsToVerdict(loaded);
  const counts = partsOf(stop).some(({ kind }) => kind === "checks");
  if (needed <= limits.visits || (needed === Infinity && !counts)) return;
  tell({
    code: "VERDICT-NEVER",
    ...(isGated(loaded) && { severity: "warning" as const }),
    document: sources.agentDocument,
    pointer: "/runner/verdict/config",
    message:
      needed === Infinity
        ? `The verdict ${sources.verdict.type} counts visits of verification and closure steps, but no path leads to one.`
        : `The verdict ${sources.verdict.type} needs ${needed} visits to end the run, but the run is stopped after ${limits.visits}.`,
    fix:
      needed === Infinity
        ? "Add a transition to a verification step or a closure."
        : `Set maxIterations to at least ${needed}.`,
  });
}

/** A word or a block that no prompt, no schema and no criteria tell of. */
function checkTold({ flow, sources }: Registered, tell: Tell): void {
  if (flow.system.text.includes("{uv-verdict_criteria}")) return;
  for (const part of partsOf(flow.stop)) {
    const how = wordsFor(part, flow);
    if (how === null || isTold(how.words, flow)) continue;
    tell({
      code: "VERDICT-UNTOLD",
      document: sources.agentDocument,
      pointer: "/runner/verdict/config",
      message: `The run ends when the model gives ${how.what}, but no prompt mentions it.`,
      fix: "Write {uv-verdict_criteria} in the system prompt, or mention it in a prompt.",
    });
  }
}

/** What the model has to give, and what tells it so. */
function wordsFor(part: Part, flow: Flow): { what: string; words: readonly string[] } | null {
  if (part.kind === "keyword") {
    const isVariable = partsOf(flow.stop).find(({ kind }) => kind === "keyword") === part;
    const words = isVariable ? [part.text, "{uv-completion_keyword}"] : [part.text];
    return { what: `the keyword ${part.text}`, words };
  }
  if (part.kind !== "signal") return null;
  return { what: `a block of the type ${part.type}`, words: [part.type, '"completed"', '"complete"'] };
}

function isTold(words: readonly string[], { system, steps }: Flow): boolean {
  const texts = Object.values(steps).flatMap((step) => {
    const schema = answerSchema(step);
    return [step.prompt.text, schema === true ? "" : JSON.stringify(schema)];
  });
  return [system.text, ...texts].some((text) => words.some((word) => text.includes(word)));
}
