/** What a person sees while a run goes on: a line for every settled visit, and on a terminal one line that lives. */
import {
  judgedIn,
  type BackendSpec,
  type Call,
  type CallResult,
  type CheckResult,
  type Event,
  type Led,
} from "../../flow/event.ts";
import { laneIn, type AtVisit } from "../../flow/deed.ts";
import { own } from "../../flow/json.ts";
import { denialText } from "../../flow/question.ts";
import { broken, gutter, visible } from "../../flow/text/visible.ts";
import type { DriveOptions } from "../../run/index.ts";
import { deedsOf, type Moment } from "../../story/story.ts";
import { eventWords } from "../../tell/event-words.ts";
import type { Screen } from "../screen.ts";
import { besideEachOther, count, DOING, duration, shownInLine, wrapped, type Paint } from "./text.ts";

type Observe = NonNullable<DriveOptions["observe"]>;
type State = Parameters<Observe>[1];

export type Progress = {
  readonly observe: Observe;
  readonly hear: NonNullable<DriveOptions["onText"]>;
  readonly stop: () => void;
};

export function createProgress(screen: Screen, isVerbose: boolean, now: () => number): Progress {
  // Questions that come before the run are not part of its time.
  let from: number | null = null;
  let since = 0;
  let state: State | null = null;
  let heard = { characters: 0, tail: "" };
  const hearing = () => {
    if (heard.characters === 0) return [];
    return [isVerbose ? `… ${shownInLine(heard.tail)}` : `${count(heard.characters, "character")} heard`];
  };
  const refresh = () => {
    const at = now();
    screen.status(state === null ? null : statusLine(state, at - (from ?? at), hearing(), at - since));
  };
  const timer = screen.isLive ? setInterval(refresh, 200) : null;
  timer?.unref();
  const tell = (line: string) => screen.tell(screen.isLive ? wrapped(line, screen.width) : line);
  return {
    observe: (entry, after, flow, deeds) => {
      const { event } = entry;
      since = now();
      from ??= since;
      const before = state;
      state = after;
      heard = { characters: 0, tail: "" };
      // The person at the terminal is asked, and that shows the question.
      if (event.type !== "step.asked" || !screen.isAnswering)
        for (const line of entryLines({ entry, before, after, deeds }, screen.err, isVerbose)) tell(line);
      if (event.type === "run.started") {
        const { run, backend, worktree } = event;
        const steps = count(Object.keys(flow.steps).length, "step");
        const facts = [shownInLine(flow.agent), `run ${run}`, steps, backendText(backend)];
        tell(screen.err("bold", facts.join(" · ")));
        if (worktree !== undefined)
          tell(
            screen.err(
              "dim",
              `in ${shownInLine(worktree.path, 400)}, branch ${shownInLine(worktree.branch)}`,
            ),
          );
      }
      refresh();
    },
    hear: (_, delta) => {
      heard = { characters: heard.characters + delta.length, tail: (heard.tail + delta).slice(-100) };
    },
    stop: () => {
      if (timer !== null) clearInterval(timer);
      screen.status(null);
    },
  };
}

/** `ai-sdk anthropic/claude-sonnet-5`: the backend with the models that it asks, as far as they are recorded. */
export function backendText({ id, models = [] }: BackendSpec): string {
  return shownInLine([id, models.join(", ")].join(" ").trim());
}

/** `continuation.issue #2 · asking · 12.0 s · iteration 3 · last next · 340 characters heard`: a narrow one is cut. */
export function statusLine(
  state: State,
  elapsedMs: number,
  heard: readonly string[] = [],
  sinceMs = 0,
): string {
  const lanes = state.lanes.map(({ step, visit }) => `${shownInLine(step, 60)} #${visit}`);
  const doing = [...new Set(state.lanes.map(({ command }) => DOING[command.type]))];
  return [
    lanes.length === 0 ? "ending" : lanes.join(" ∥ "),
    ...(doing.length === 0 ? [] : [waitText(state, sinceMs) ?? doing.join(", ")]),
    duration(elapsedMs),
    `iteration ${state.iterations}`,
    ...(state.last === null ? [] : [`last ${shownInLine(state.last.label, 40)}`]),
    ...heard,
  ].join(" · ");
}

/** `attempt 2 of 5 in 12.0 s`, while a failed request waits to be sent again; null: nothing of the kind is waited for. */
function waitText({ lanes }: State, sinceMs: number): string | null {
  for (const { command } of lanes)
    if (command.type === "wait" && command.retry !== undefined) {
      const { next, of } = command.retry;
      return `attempt ${next} of ${of} in ${duration(Math.max(0, command.ms - sinceMs))}`;
    }
  return null;
}

/** Null: what was before is not known. */
type Heard = Pick<Moment, "entry" | "after" | "deeds"> & { readonly before: State | null };

/** What an entry of the journal says to a person; mostly nothing. */
export function entryLines(moment: Heard, paint: Paint, isVerbose: boolean): readonly string[] {
  const { entry, before, after: state } = moment;
  const { event, led, underWay } = entry;
  const dim = (text: string) => paint("dim", `    ${shownInLine(text, 400)}`);
  const lines: string[] = [];
  switch (event.type) {
    case "run.resumed":
      lines.push(
        paint(
          "bold",
          `resumed run ${state.run} at ${state.lanes.map((lane) => lane.step).join(", ") || "its end"}`,
        ),
      );
      break;
    case "run.adopted":
      lines.push(dim(`continues with the flow ${event.flow.slice(0, 12)}`));
      break;
    case "run.edited":
      lines.push(dim(`handoff edited: ${Object.keys(event.handoff).join(", ")}`));
      break;
    case "step.answered": {
      const { reply, step } = event;
      const judged = judgedIn(reply);
      lines.push(...denials(step, judged, paint));
      const used = judged.filter(({ denied }) => denied === undefined).map(({ name }) => name);
      if (used.length > 0) lines.push(dim(`${whose(step, before)}${toolsText(used)}`));
      const [wait] = deedsOf(moment, "waits");
      if (reply.kind === "fault" && wait !== undefined) {
        const { ms, next, of } = wait;
        const said = reply.fault.message.replace(/[\s.;]+$/, "");
        lines.push(dim(`${step}: ${said}; trying again in ${duration(ms)} (attempt ${next} of ${of})`));
      }
      if (reply.kind === "said" && isVerbose) {
        const output = reply.output === undefined ? "" : JSON.stringify(reply.output);
        const said = reply.text === "" ? output : reply.text;
        if (said !== "") lines.push(dim(`${step} said: ${said}`));
        for (const { name, input } of reply.calls)
          lines.push(dim(`${step} calls ${name} ${JSON.stringify(input)}`));
      }
      for (const sent of deedsOf(moment, "sent-back"))
        if (sent.why === "misfit" && sent.calls === 0 && laneIn(state, sent) !== undefined)
          lines.push(dim(`${step}: sent back, ${sent.errors.join("; ")}`));
      break;
    }
    case "step.called":
      lines.push(...denials(event.step, event.results, paint));
      lines.push(...calledLines(moment, isVerbose).map(dim));
      break;
    case "step.checked":
      if (isVerbose)
        lines.push(
          ...event.results.map(({ name, ok, summary }) => dim(`${name}: ${ok ? "passed" : summary}`)),
        );
      break;
    case "step.looked":
      if (isVerbose)
        lines.push(...event.sights.map(({ met, what }) => dim(`${met ? "met" : "not met"}: ${what}`)));
      break;
    case "step.hooked":
      if (event.result.kind === "threw")
        lines.push(paint("yellow", `    ${event.hook} failed: ${shownInLine(event.result.message)}`));
      break;
    case "step.asked":
      lines.push(
        paint("yellow", gutter(`${event.question.id}: ${broken(visible(event.question.text), 72)}`, "    ")),
      );
      break;
    case "step.told":
      lines.push(dim(`${event.answer ?? "no answer"}${event.by === undefined ? "" : ` (${event.by})`}`));
      break;
    default:
      lines.push(...wordsLine(event, paint, isVerbose));
  }
  if (led === undefined) lines.push(...retryLines(moment, paint));
  else {
    const failed = event.type === "step.checked" ? event.results.find((result) => !result.ok) : undefined;
    lines.push(ledLine(led, failed, paint, underWay), ...(led.notes ?? []).map((note) => dim(note)));
  }
  return lines;
}

const TONES = { plain: "dim", warning: "yellow", error: "red" } as const;

/** The line of an event without a report of its own. */
export function wordsLine(event: Event, paint: Paint, isVerbose: boolean): readonly string[] {
  const words = eventWords(event);
  if (words === null || (words.detail && !isVerbose)) return [];
  const { text, line = text, tone } = words;
  return line === null ? [] : [paint(TONES[tone], `    ${shownInLine(line, 400)}`)];
}

/** One line for all tools of a turn, or in full one for each. */
function calledLines(moment: Heard, isVerbose: boolean): readonly string[] {
  return deedsOf(moment, "called").flatMap(({ step, calls, results }) => {
    const done = ran(results).map(({ id, name, ok, content }) => {
      const call = calls.find((other) => other.id === id);
      return { text: `${name}${call === undefined ? "" : objectOf(call)}`, ok, content };
    });
    if (isVerbose)
      return done.map(({ text, ok, content }) => `${step}: ${text} ${ok ? "done" : `failed: ${content}`}`);
    if (done.length === 0) return [];
    const tools = done.map(({ text, ok }) => `${text}${ok ? "" : " (failed)"}`);
    return [`${whose(step, moment.before)}${toolsText(tools)}`];
  });
}

/** Lines of siblings come mixed: each names its step. */
function whose(step: string, before: State | null): string {
  return before === null || before.fork === null ? "" : `${shownInLine(step, 60)}: `;
}

function ran(results: readonly CallResult[]): readonly CallResult[] {
  return results.filter(({ denied }) => denied === undefined);
}

function denials(
  step: string,
  judged: readonly Pick<CallResult, "name" | "denied" | "grant">[],
  paint: Paint,
): readonly string[] {
  return judged.flatMap((one) => {
    const denial = denialText(step, one);
    return denial === null ? [] : [paint("yellow", `    ${shownInLine(denial)}`)];
  });
}

/** `Read a.md, Bash npm test ×2` */
function toolsText(names: readonly string[]): string {
  const times = Map.groupBy(names, (name) => name);
  return [...times].map(([name, all]) => (all.length === 1 ? name : `${name} ×${all.length}`)).join(", ");
}

/** What a call is about, in a few words. */
function objectOf({ input }: Call): string {
  const about = ["command", "file_path", "path", "pattern", "url"]
    .map((key) => own(input, key))
    .find((value) => typeof value === "string");
  return typeof about === "string" ? ` ${shownInLine(about, 60)}` : "";
}

/** `a1 #1 ✗ tests (tests-fail), try 2 of 3`: the stage is tried again in the same visit. */
function retryLines(moment: Heard, paint: Paint): readonly string[] {
  const failed = deedsOf(moment, "checked")[0]?.failed;
  return deedsOf(moment, "judged")
    .filter(({ verdict }) => verdict === "retry")
    .map((one) => `${failedLine(one, failed ?? one.reason, paint)}, try ${one.attempt + 1}`);
}

/** `a1 #1 ✗ tests (tests-fail)` */
export function failedLine({ step, visit }: AtVisit, why: CheckResult | string, paint: Paint): string {
  const words = typeof why === "string" ? shownInLine(why, 200) : checkText(why);
  return `  ${shownInLine(step, 80)} ${paint("dim", `#${visit}`)} ${paint("red", `✗ ${words}`)}`;
}

function checkText({ name, pattern }: CheckResult): string {
  return pattern === name ? shownInLine(name, 80) : `${shownInLine(name, 80)} (${shownInLine(pattern, 80)})`;
}

/**
 * `closure.issue #1 → closing ✗ git-clean (git-dirty) → continuation.issue`, and for siblings
 * `start #1 → ok → (a1 ∥ a2), then end-it` and `a1 #1 → ok → end-it, after a2`.
 */
export function ledLine(
  led: Led,
  failed: CheckResult | undefined,
  paint: Paint,
  underWay: readonly string[] = [],
): string {
  const { step, visit, label, to, overturned, fork } = led;
  const check = failed === undefined ? "" : ` ${checkText(failed)}`;
  const onward = to === null ? paint("dim", "end") : shownInLine(to, 80);
  const isWaiting = led.place !== undefined && underWay.length > 0;
  const word = label === null ? paint("yellow", "no answer") : shownInLine(label, 40);
  const parts = [
    `${shownInLine(step, 80)} ${paint("dim", `#${visit}`)}`,
    overturned ? `${word} ${paint("red", `✗${check}`)}` : word,
    fork !== undefined
      ? `(${besideEachOther(fork)}), then ${onward}`
      : isWaiting
        ? `${onward}, after ${besideEachOther(underWay)}`
        : onward,
  ];
  return `  ${parts.join(paint("dim", " → "))}`;
}
