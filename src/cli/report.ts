/** How a run went, as a person reads it. Pure: the result document in, lines out. */
import { broken, visible } from "../flow/visible.ts";
import type { Result } from "../run/index.ts";
import { count, duration, shown, shownInLine, type Paint } from "./text.ts";

/** `resume`: the command that goes on with the run. `typed`: commands as the user types them. */
export function renderReport(
  result: Result,
  resume: string,
  paint: Paint,
  typed: (text: string) => string = (text) => text,
): string {
  const row = (name: string, text: string) => `  ${paint("dim", name.padEnd(9))} ${text}`;
  const rows = (name: string, texts: readonly string[]) =>
    texts.map((text, place) => row(place === 0 ? name : "", text));
  return [
    headline(result, paint),
    ...reasonOf(result)
      .split("\n")
      .map((line) => `  ${line}`),
    ...(result.forkedFrom === null ? [] : [row("forked", origin(result.forkedFrom))]),
    ...(result.path.length === 0 ? [] : [row("path", chain(result, paint))]),
    ...rows("checks", checks(result, paint)),
    ...rows("handoff", handoff(result)),
    ...(result.verdict === null ? [] : [row("verdict", shownInLine(result.verdict))]),
    ...rows(
      "effects",
      result.effects.map((effect) => effectLine(effect, paint)),
    ),
    ...(result.worktree?.kept ? [row("worktree", worktreeLine(result.worktree))] : []),
    ...(result.run === null ? [] : [row("usage", usage(result))]),
    ...rows(
      "warnings",
      result.warnings.map((text) => paint("yellow", shownInLine(text, 400))),
    ),
    ...rows(
      "next",
      nextAction(result, resume).map((text) => paint("cyan", typed(text))),
    ),
  ].join("\n");
}

/** What a run waits for is a question: it is shown as it would be asked. */
function reasonOf({ outcome, reason }: Result): string {
  return outcome === "waiting" ? broken(visible(reason)) : shown(reason);
}

function origin({ run, seq, edits = [] }: NonNullable<Result["forkedFrom"]>): string {
  const edited = edits.length === 0 ? "" : `, with another ${edits.join(", ")}`;
  return shownInLine(`from run ${run} after entry ${seq}${edited}`, 400);
}

const MARKS = { completed: "✓", failed: "✗", waiting: "…", interrupted: "■" } as const;

function headline({ outcome, code, agent, run, iterations, durationMs }: Result, paint: Paint): string {
  const colour = outcome === "completed" ? "green" : outcome === "failed" ? "red" : "yellow";
  const facts = [
    shownInLine(agent),
    ...(run === null ? [] : [`run ${run}`, count(iterations, "iteration"), duration(durationMs)]),
  ].filter((fact) => fact !== "");
  const isPaused = code === "PAUSED";
  const why = code === null || isPaused || outcome === "interrupted" ? "" : ` ${code}`;
  return `${paint(colour, `${MARKS[outcome]} ${isPaused ? "paused" : outcome}${why}`)}  ${facts.join(" · ")}`.trimEnd();
}

const MOST_LINKS = 12;

/** Equal neighbours once with their number; the middle of a long way is left out. */
function chain({ path, outcome }: Result, paint: Paint): string {
  const links: { text: string; times: number }[] = [];
  for (const led of path) {
    const text = `${shownInLine(led.step, 80)}${led.overturned ? paint("red", " ✗") : ""}`;
    const last = links.at(-1);
    if (last?.text === text) last.times += 1;
    else links.push({ text, times: 1 });
  }
  const texts = links.map(({ text, times }) => (times === 1 ? text : `${text} ×${times}`));
  const half = MOST_LINKS / 2;
  const kept =
    texts.length <= MOST_LINKS
      ? texts
      : [...texts.slice(0, half), `(${texts.length - MOST_LINKS} more)`, ...texts.slice(-half)];
  const next = path.at(-1)?.to ?? null;
  const tail =
    outcome === "completed" ? ["end"] : next === null ? [] : [paint("dim", `(${shownInLine(next, 80)})`)];
  return [...kept, ...tail].join(" → ");
}

/** One line for each check, its tries in order. */
function checks(result: Result, paint: Paint): readonly string[] {
  const byName = Map.groupBy(result.checks, (check) => check.name);
  return [...byName].map(([name, tries]) => {
    const marks = tries.map(({ ok, pattern }) =>
      ok ? paint("green", "✓") : paint("red", `✗ ${shownInLine(pattern, 80)}`),
    );
    return `${shownInLine(name, 80)}: ${marks.slice(-8).join(", ")}`;
  });
}

function handoff(result: Result): readonly string[] {
  return Object.entries(result.handoff)
    .filter(([, data]) => Object.keys(data).length > 0)
    .map(([step, data]) => `${shownInLine(step, 80)}: ${shownInLine(Object.keys(data).join(", "))}`);
}

const EFFECTS = {
  applied: ["green", "✓"],
  held: ["yellow", "held"],
  failed: ["red", "✗"],
  intended: ["yellow", "?"],
} as const;

function effectLine({ kind, state, detail }: Result["effects"][number], paint: Paint): string {
  const [colour, mark] = EFFECTS[state];
  return `${shownInLine(kind, 40)} ${paint(colour, mark)} ${shownInLine(detail, 600)}`;
}

function worktreeLine({ path, branch, base }: NonNullable<Result["worktree"]>): string {
  return `${shownInLine(path, 400)}, branch ${shownInLine(branch, 80)} from ${shownInLine(base, 80)}`;
}

function usage({ usage, costUsd, knownCostUsd }: Result): string {
  const tokens = usage.inputTokens + usage.outputTokens;
  return [
    count(usage.turns, "turn"),
    ...(tokens === 0 ? [] : [`${usage.inputTokens} tokens in, ${usage.outputTokens} out`]),
    ...(costUsd === null ? [] : [`$${costUsd.toFixed(4)}`]),
    ...(knownCostUsd === undefined
      ? []
      : [`at least $${knownCostUsd.toFixed(4)}, as not all prices are known`]),
  ].join(" · ");
}

/** What to type next. What to change in the flow is said by the reason itself. */
function nextAction(result: Result, resume: string): readonly string[] {
  const { code, run, agent } = result;
  switch (code) {
    case "SCRIPT_EXHAUSTED":
      return [`${resume} --script MORE`];
    case "SCRIPT_MISMATCH":
      return [`correct the script, then: ${resume} --script FILE`];
    case "BUDGET_EXHAUSTED":
      return [`${resume} --max WHAT=N`];
    case "FLOW_INVALID":
      return [`mend the problems, then: lockstep check ${shownInLine(agent)}`];
    case "PARAMETERS_INVALID":
      return [`lockstep run ${shownInLine(agent)} --help`];
    case "PAUSED":
      return [resume.replace("lockstep resume", "lockstep continue")];
    case "PermissionRequired":
    case "AnswerRequired":
      return result.questions.length === 0
        ? [resume]
        : result.questions.map(({ id, choices, free }) => {
            const typed = resume.replace("lockstep resume", "lockstep answer");
            return `${typed} ${id} ${[...choices, ...(free ? ["--text '…'"] : [])].join(" | ")}`;
          });
    case "RUN_OWNED_ELSEWHERE":
      return ["lockstep runs"];
    case "AGENT_MAX_ITERATIONS":
    case "AGENT_VALIDATION_ABORT":
    case "FAILED_STEP_ROUTING":
    case "GATE_INTERPRETATION_ERROR":
      return [`lockstep why ${run}`];
    default:
      return result.resumable && result.code !== "RUNNING" ? [resume] : [];
  }
}
