/** How a run went, as a person reads it. Pure: the result document in, lines out. */
import { isObject, own, sameJson } from "../../flow/json.ts";
import { answerCommands } from "../../flow/question.ts";
import { broken, visible } from "../../flow/text/visible.ts";
import type { Result, Shown } from "../../run/index.ts";
import { raised } from "../limits.ts";
import { renderedMarkdown } from "./rendered.ts";
import {
  count,
  DOING,
  duration,
  jsonLine,
  shellWord,
  shown,
  shownInLine,
  wrapped,
  type Paint,
} from "./text.ts";

/** `resume`: the command that goes on with the run; null: it is not recorded here, and nothing can. `typed`: commands as the user types them. `width`: of the terminal. */
export function renderReport(
  result: Shown,
  resume: string | null,
  paint: Paint,
  typed: (text: string) => string = (text) => text,
  width = Infinity,
): string {
  const row = (name: string, text: string) => wrapped(`  ${paint("dim", name.padEnd(9))} ${text}`, width, 12);
  const rows = (name: string, texts: readonly string[]) =>
    texts.map((text, place) => row(place === 0 ? name : "", text));
  return [
    wrapped(headline(result, paint), width),
    ...reasonOf({ ...result, reason: besideEffects(result) }, typed)
      .split("\n")
      .map((line) => wrapped(`  ${line}`, width)),
    ...rows("result", resultLines(result, paint, typed)),
    ...(result.forkedFrom === null ? [] : [row("forked", origin(result.forkedFrom))]),
    ...(result.path.length === 0 ? [] : [row("path", chain(result, paint))]),
    ...(result.underWay.length < 2 ? [] : [row("under way", underWay(result))]),
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
      warnings(result, typed).map((text) => paint("yellow", shownInLine(text, 400))),
    ),
    ...rows(
      "next",
      resume === null ? [] : nextAction(result, resume).map((text) => paint("cyan", typed(text))),
    ),
  ].join("\n");
}

/** For `--quiet`: how the run ended, why, and what to type next. */
export function renderBrief(
  result: Shown,
  resume: string,
  paint: Paint,
  typed: (text: string) => string = (text) => text,
): string {
  return [
    headline(result, paint),
    ...reasonOf(result, typed)
      .split("\n")
      .map((line) => `  ${line}`),
    ...nextAction(result, resume).map((text) => `  next: ${typed(text)}`),
  ].join("\n");
}

/** What a run waits for is shown as it would be asked; the commands that answer it come at the end. */
function reasonOf(result: Shown, typed: (text: string) => string): string {
  const { outcome, questions } = result;
  const reason = typed(plainReason(result));
  if (outcome !== "waiting") return [...causeOf(result), shown(reason)].join("\n");
  if (questions.length === 0) return broken(visible(reason));
  return questions.map(({ question }) => broken(visible(question))).join("\n");
}

/** What is not done is the row "effects" to say, and how to go on the row "next". */
function besideEffects(result: Shown): string {
  const { reason, resumable } = result;
  const failed = blockedBy(result);
  if (failed === null || !resumable) return reason;
  return `${reason.slice(0, reason.indexOf(`: ${failed}\nThen `))} (see effects).`;
}

/** Why the work of a run did not get where it was to go, and what repairs that; null: something else ended the run. */
export function blockedBy({ reason, effects }: Pick<Result, "reason" | "effects">): string | null {
  const failed = effects.find(
    ({ state, detail }) => state === "failed" && reason.includes(`: ${detail}\nThen `),
  );
  return failed?.detail ?? null;
}

/** Without the command that the row "next" gives, and without a colon that nothing follows. */
function plainReason({ reason, code, resumable }: Shown): string {
  if (code === "POISONED") return reason.replace(/ To try again: lockstep fleet retry .*$/s, "");
  if (code === "PERMISSION_DENIED") return reason.replace(/:$/, ".");
  if (!resumable && code !== "PAUSED") return reason;
  return reason
    .replace(/(?<!Then|\.)([;\s]+(?:go on|continue) with: lockstep \S+ \S+)$/i, ".")
    .replace(/(?<=\.)\s+(?:go on|continue) with: lockstep \S+ \S+$/i, "");
}

/** Why no way on was found, before the words that the written form fixes for such an end. */
function causeOf({ code, path }: Shown): readonly string[] {
  const last = path.at(-1);
  const notes = code === "FAILED_STEP_ROUTING" && last?.label === null ? (last.notes ?? []) : [];
  if (notes.length === 0) return [];
  return [`Step "${shownInLine(last!.step, 80)}" gave no usable answer: ${shown(notes.join("; "))}`];
}

const MOST_LINES = 20;

/** What the run made; of a long text the beginning. */
function resultLines(
  { result, run }: Shown,
  paint: Paint,
  typed: (text: string) => string,
): readonly string[] {
  const lines = result === null ? [] : renderedMarkdown(resultText(result), paint).split("\n");
  if (lines.length <= MOST_LINES) return lines;
  const more = lines.length - MOST_LINES + 1;
  return [
    ...lines.slice(0, MOST_LINES - 1),
    `… ${more} more lines: ${typed(`lockstep show ${shellWord(run ?? "@last")} --result`)}`,
  ];
}

/** A text as it is, also where it is the only member; several members each under its name. */
export function resultText(result: Result["result"]): string {
  if (typeof result === "string") return shown(result.trimEnd());
  if (!isObject(result)) return jsonLine(result);
  const members = Object.entries(result);
  const [first] = members;
  if (members.length === 1 && typeof first?.[1] === "string") return resultText(first[1]);
  return members
    .map(([name, value]) => {
      const text = typeof value === "string" ? shown(value.trimEnd()) : jsonLine(value);
      return text.includes("\n")
        ? `${shownInLine(name, 80)}:\n  ${text.replaceAll("\n", "\n  ")}`
        : `${shownInLine(name, 80)}: ${text}`;
    })
    .join("\n");
}

const NOWHERE: Pick<Result["path"][number], "step" | "visit" | "notes"> = { step: "", visit: 0 };

/** What `check` found is named in one line: it was there before the run, and is not why the run ended as it did. */
function warnings(result: Shown, typed: (text: string) => string): readonly string[] {
  const { warnings: all, problems, agent, path } = result;
  const { step, visit, notes = [] } = causeOf(result).length === 0 ? NOWHERE : path.at(-1)!;
  const found = problems.filter(({ severity }) => severity === "warning");
  const known = new Set([
    ...found.map(({ message }) => message),
    ...notes.map((note) => `${step}@${visit}: ${note}`),
  ]);
  const others = all.filter((text) => !known.has(text));
  if (found.length === 0) return others;
  const seen = `shown by: ${typed(`lockstep check ${shellWord(shownInLine(agent))}`)}`;
  return [...others, `${count(found.length, "warning")} from check, ${seen}`];
}

function origin({ run, seq, edits = [] }: NonNullable<Result["forkedFrom"]>): string {
  const edited = edits.length === 0 ? "" : `, with another ${edits.join(", ")}`;
  return shownInLine(`from run ${run} after entry ${seq}${edited}`, 400);
}

const MARKS = {
  completed: "✓",
  failed: "✗",
  waiting: "…",
  interrupted: "■",
  running: "▶",
  queued: "●",
  poisoned: "✗",
  damaged: "✗",
} as const;

function headline({ outcome, code, agent, run, iterations, durationMs }: Shown, paint: Paint): string {
  const colour =
    outcome === "completed"
      ? "green"
      : ["failed", "damaged", "poisoned"].includes(outcome)
        ? "red"
        : "yellow";
  const facts = [
    shownInLine(agent),
    ...(run === null
      ? []
      : [`run ${shownInLine(run, 80)}`, count(iterations, "iteration"), duration(durationMs)]),
  ].filter((fact) => fact !== "");
  const isPaused = code === "PAUSED";
  const isPlain = isPaused || ["interrupted", "running", "queued", "poisoned"].includes(outcome);
  const why = code === null || isPlain ? "" : ` ${code}`;
  return `${paint(colour, `${MARKS[outcome]} ${isPaused ? "paused" : outcome}${why}`)}  ${facts.join(" · ")}`.trimEnd();
}

const MOST_LINKS = 12;

/** Siblings in brackets, `…` behind those that are not done; equal neighbours once with their number; the middle of a long way is left out. */
function chain({ path, outcome, underWay: open }: Shown, paint: Paint): string {
  const links: { text: string; times: number }[] = [];
  for (const group of groupsOf(path, open)) {
    const words = group.map(
      ({ step, mark }) => `${shownInLine(step, 80)}${mark === "✗" ? paint("red", " ✗") : mark}`,
    );
    const text = words.length === 1 ? words[0]! : `(${words.join(" ∥ ")})`;
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

type Link = { readonly step: string; readonly mark: "" | "✗" | "…" };

/** The visits of a path; those that ran at the same time together, with their siblings that are still under way. */
function groupsOf(path: Result["path"], open: Result["underWay"]): readonly (readonly Link[])[] {
  const groups: Link[][] = [];
  for (const [at, led] of path.entries()) {
    const link: Link = { step: led.step, mark: led.overturned ? "✗" : "" };
    const isBeside = (led.place ?? -1) >= 0 && (path[at - 1]?.place ?? -1) >= 0;
    if (isBeside) groups.at(-1)!.push(link);
    else groups.push([link]);
  }
  const forked = path.findLast(({ place }) => (place ?? -1) < 0)?.fork;
  if (forked === undefined) return groups;
  const isNew = (path.at(-1)?.place ?? -1) < 0;
  const done = isNew ? [] : groups.pop()!;
  const all = forked.flatMap((step): readonly Link[] => {
    const settled = done.find((link) => link.step === step);
    if (settled !== undefined) return [settled];
    return open.some((visit) => visit.step === step) ? [{ step, mark: "…" }] : [];
  });
  return all.length === 0 ? groups : [...groups, all];
}

/** `a2 #1 asking, a3 #1 checking` */
function underWay(result: Shown): string {
  return result.underWay
    .map(({ step, visit, doing }) => `${shownInLine(step, 60)} #${visit} ${DOING[doing]}`)
    .join(", ");
}

/** One line for each check, its tries in order. */
function checks(result: Shown, paint: Paint): readonly string[] {
  const byName = Map.groupBy(result.checks, (check) => check.name);
  return [...byName].map(([name, tries]) => {
    const marks = tries.map(({ ok, pattern }) =>
      ok ? paint("green", "✓") : paint("red", pattern === name ? "✗" : `✗ ${shownInLine(pattern, 80)}`),
    );
    return `${shownInLine(name, 80)}: ${marks.slice(-8).join(", ")}`;
  });
}

/** The names of what each step handed on, or a stage completed with, unless it is the result itself. */
function handoff({ handoff: all, flow, result }: Shown): readonly string[] {
  return Object.entries(all).flatMap(([step, data]) => {
    const parsed = flow?.dialect === "stage" ? own(data, "parsed") : data;
    const isShown = result !== null && parsed !== undefined && sameJson(parsed, result);
    const names = isObject(parsed) && !isShown ? Object.keys(parsed) : [];
    return names.length === 0 ? [] : [`${shownInLine(step, 80)}: ${shownInLine(names.join(", "))}`];
  });
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

function usage({ usage, costUsd, knownCostUsd }: Shown): string {
  const tokens = usage.inputTokens + usage.outputTokens;
  const { unknown = [] } = usage;
  const isPart = unknown.includes("tokens");
  return [
    count(usage.turns, "turn"),
    ...(tokens === 0
      ? []
      : [`${isPart ? "at least " : ""}${usage.inputTokens} tokens in, ${usage.outputTokens} out`]),
    ...(tokens === 0 && isPart ? ["tokens unknown"] : []),
    ...(costUsd === null ? [] : [`$${costUsd.toFixed(4)}`]),
    ...(knownCostUsd === undefined ? [] : [`at least $${knownCostUsd.toFixed(4)}, some costs are unknown`]),
    ...(costUsd === null && knownCostUsd === undefined && unknown.includes("costUsd")
      ? ["cost unknown"]
      : []),
  ].join(" · ");
}

/** What to type next. What to change in the flow is said by the reason itself. */
export function nextAction(result: Shown, resume: string): readonly string[] {
  const { code, run, agent } = result;
  switch (code) {
    case "SCRIPT_EXHAUSTED":
      return [`${resume} --script MORE`];
    case "SCRIPT_MISMATCH":
      return [`correct the script, then: ${resume} --script FILE`];
    case "BUDGET_EXHAUSTED":
      return [
        `${resume} ${result.limit === undefined ? "--max-time TIME" : shownInLine(raised(result.limit), 200)}`,
      ];
    case "LIMIT_UNMETERED":
      return run === null ? [] : [`${resume} --allow-unmetered`];
    case "FLOW_INVALID":
      return [`fix the problems, then: lockstep check ${shellWord(shownInLine(agent))}`];
    case "PARAMETERS_INVALID":
      return [`lockstep run ${shellWord(shownInLine(agent))} --help`];
    case "PAUSED":
      return [resume.replace("lockstep resume", "lockstep continue")];
    case "POISONED":
      return [resume.replace("lockstep resume", "lockstep fleet retry")];
    case "PermissionRequired":
    case "AnswerRequired":
      return result.questions.length === 0
        ? [resume]
        : result.questions.flatMap((question) =>
            answerCommands(resume.replace("lockstep resume", "lockstep answer"), question),
          );
    case "RUN_OWNED_ELSEWHERE":
      return ["lockstep runs"];
    case "AGENT_MAX_ITERATIONS":
    case "AGENT_VALIDATION_ABORT":
    case "FAILED_STEP_ROUTING":
    case "GATE_INTERPRETATION_ERROR":
      return [`lockstep why ${shellWord(run ?? "@last")}`];
    default:
      return result.resumable ? [resume] : [];
  }
}
