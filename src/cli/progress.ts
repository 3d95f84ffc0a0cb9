/** What a person sees while a run goes on: a line for every settled visit, and on a terminal one line that lives. */
import { judgedIn, type CheckResult, type Entry, type Led } from "../flow/event.ts";
import { broken, visible } from "../flow/visible.ts";
import type { DriveOptions } from "../run/index.ts";
import type { Screen } from "./screen.ts";
import { count, duration, shownInLine, type Paint } from "./text.ts";

type Observe = NonNullable<DriveOptions["observe"]>;
type State = Parameters<Observe>[1];

export type Progress = {
  readonly observe: Observe;
  readonly hear: NonNullable<DriveOptions["onText"]>;
  readonly stop: () => void;
};

export function createProgress(screen: Screen, isVerbose: boolean, now: () => number): Progress {
  const from = now();
  let state: State | null = null;
  let heard = { characters: 0, tail: "" };
  const hearing = () => {
    if (heard.characters === 0) return [];
    return [isVerbose ? `… ${shownInLine(heard.tail)}` : `${count(heard.characters, "character")} heard`];
  };
  const refresh = () => screen.status(state === null ? null : statusLine(state, now() - from, hearing()));
  const timer = screen.isLive ? setInterval(refresh, 200) : null;
  timer?.unref();
  return {
    observe: (entry, after, flow) => {
      state = after;
      heard = { characters: 0, tail: "" };
      for (const line of entryLines(entry, after, screen.err, isVerbose)) screen.tell(line);
      if (entry.event.type === "run.started") {
        const { run, backend, worktree } = entry.event;
        const steps = count(Object.keys(flow.steps).length, "step");
        screen.tell(screen.err("bold", `${shownInLine(flow.agent)} · run ${run} · ${steps} · ${backend.id}`));
        if (worktree !== undefined)
          screen.tell(
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

/** `continuation.issue #2 · iteration 3 · asking · 12.0 s · last next · 340 characters heard` */
export function statusLine(state: State, elapsedMs: number, heard: readonly string[] = []): string {
  const lanes = state.lanes.map(({ step, visit }) => `${shownInLine(step, 60)} #${visit}`);
  const doing = state.lanes[0]?.command.type;
  return [
    lanes.length === 0 ? "ending" : lanes.join(", "),
    `iteration ${state.iterations}`,
    ...(doing === undefined ? [] : [DOING[doing]]),
    duration(elapsedMs),
    ...(state.last === null ? [] : [`last ${shownInLine(state.last.label, 40)}`]),
    ...heard,
  ].join(" · ");
}

const DOING = {
  ask: "asking",
  call: "using tools",
  check: "checking",
  look: "looking",
  hook: "running a hook",
  question: "waiting for an answer",
  wait: "waiting",
  end: "ending",
} as const;

/** What an entry of the journal has to say to a person; mostly nothing. */
export function entryLines(
  { event, led }: Entry,
  state: State,
  paint: Paint,
  isVerbose: boolean,
): readonly string[] {
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
      lines.push(dim(`went on with the flow ${event.flow.slice(0, 12)}`));
      break;
    case "run.edited":
      lines.push(dim(`handoff edited: ${Object.keys(event.handoff).join(", ")}`));
      break;
    case "step.answered": {
      const { reply, step } = event;
      for (const { name, denied } of judgedIn(reply))
        if (denied !== undefined) lines.push(paint("yellow", `    ${name} denied: ${shownInLine(denied)}`));
      const wait = state.pending.find((command) => command.type === "wait");
      if (reply.kind === "fault" && wait !== undefined) {
        const { next, of } = wait.retry ?? { next: 0, of: 0 };
        const which = of === 0 ? "" : ` (attempt ${next} of ${of})`;
        const said = reply.fault.message.replace(/\.$/, "");
        lines.push(dim(`${step}: ${said}; trying again in ${duration(wait.ms)}${which}`));
      }
      if (reply.kind === "said" && isVerbose) {
        const said = reply.text === "" ? JSON.stringify(reply.output ?? {}) : reply.text;
        lines.push(
          dim(`${step} said: ${said}`),
          ...reply.calls.map((call) => dim(`${step} calls ${call.name}`)),
        );
      }
      const sentBack = state.lanes.flatMap((lane) => lane.say).find((say) => say.kind === "repair");
      if (led === undefined && sentBack !== undefined)
        lines.push(dim(`${step}: sent back, ${sentBack.errors.join("; ")}`));
      break;
    }
    case "step.called":
      for (const { name, ok, denied } of event.results) {
        if (denied !== undefined) lines.push(paint("yellow", `    ${name} denied: ${shownInLine(denied)}`));
        else if (isVerbose) lines.push(dim(`${name} ${ok ? "done" : "failed"}`));
      }
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
    case "step.suspended":
      if (event.id !== undefined) lines.push(dim(`${event.id} waits for an answer`));
      else lines.push(paint("yellow", `    ${shownInLine(event.why)}`));
      break;
    case "run.limited":
      lines.push(paint("yellow", `    ${shownInLine(event.why)}`));
      break;
    case "run.left":
      lines.push(paint("yellow", `    did not stop in time: ${shownInLine(event.still.join(", "))}`));
      break;
    case "effect.held":
      lines.push(paint("yellow", `    ${shownInLine(event.detail, 400)}`));
      break;
    case "effect.failed":
      lines.push(paint("red", `    ${shownInLine(event.detail, 400)}`));
      break;
    case "effect.intended":
      if (isVerbose) lines.push(dim(event.detail));
      break;
    case "effect.applied":
      lines.push(dim(event.detail));
      break;
    case "step.warned":
      lines.push(paint("yellow", `    ${shownInLine(event.text, 400)}`));
      break;
    case "step.asked":
      lines.push(paint("yellow", `    ${event.question.id}: ${broken(visible(event.question.text))}`));
      break;
    case "step.told":
      lines.push(dim(`${event.answer ?? "no answer"}${event.by === undefined ? "" : ` (${event.by})`}`));
      break;
    case "run.paused":
    case "run.stopped":
      lines.push(paint("yellow", `    ${event.type.slice("run.".length)} from outside`));
      break;
    case "run.started":
    case "step.waited":
    case "run.ended":
      break;
  }
  if (led !== undefined) {
    const failed = event.type === "step.checked" ? event.results.find((result) => !result.ok) : undefined;
    lines.push(ledLine(led, failed, paint), ...(led.notes ?? []).map((note) => dim(note)));
  }
  return lines;
}

/** `closure.issue #1 → closing ✗ git-clean (git-dirty) → continuation.issue` */
export function ledLine(led: Led, failed: CheckResult | undefined, paint: Paint): string {
  const { step, visit, label, to, overturned } = led;
  const check =
    failed === undefined ? "" : ` ${shownInLine(failed.name, 80)} (${shownInLine(failed.pattern, 80)})`;
  const word = label === null ? paint("yellow", "no answer") : shownInLine(label, 40);
  const parts = [
    `${shownInLine(step, 80)} ${paint("dim", `#${visit}`)}`,
    overturned ? `${word} ${paint("red", `✗${check}`)}` : word,
    to === null ? paint("dim", "end") : shownInLine(to, 80),
  ];
  return `  ${parts.join(paint("dim", " → "))}`;
}
