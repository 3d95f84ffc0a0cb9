/** What events without a report of their own say: in one line while a run goes on, and as a row of `why`. Each kind once. */
import { effectOf } from "../flow/due.ts";
import type { Event } from "../flow/event.ts";

export type EventWords = {
  /** The heading in `why`, and the name of the row below it. */
  readonly title: string;
  readonly name: string;
  readonly text: string;
  /** What progress prints where that differs from `text`; null: nothing. */
  readonly line?: string | null;
  readonly tone: "plain" | "warning" | "error";
  /** Progress prints it only with `--verbose`. */
  readonly detail?: boolean;
  /** Worth knowing afterwards: `show` and `logs` print it too. */
  readonly lasting?: true;
};

/** Members that hold words of people, models or files: an export with `--redact` hides them. */
export const TEXTS_OF = {
  "run.paused": [],
  "run.yielded": [],
  "run.stopped": [],
  "run.limited": [],
  "run.adopted": [],
  "run.left": [],
  "run.noted": ["text"],
  "step.warned": [],
  "step.waited": [],
  "step.cut": [],
  "step.suspended": ["why"],
  "effect.intended": ["detail"],
  "effect.held": ["detail"],
  "effect.applied": ["detail"],
  "effect.failed": ["detail"],
} as const satisfies { readonly [kind in Event["type"]]?: readonly string[] };

/** null: the reader has its own words for it, or none. */
export function eventWords(event: Event): EventWords | null {
  switch (event.type) {
    case "run.paused": {
      const line = "paused from another process";
      return {
        title: "paused",
        name: "by",
        text: "lockstep pause, from another process",
        line,
        tone: "warning",
      };
    }
    case "run.yielded": {
      const { waits = [] } = event;
      const until = Math.min(...waits.map((wait) => wait.until));
      const text =
        waits.length === 0
          ? "its process stopped between two steps"
          : `it waits until ${new Date(until).toISOString()}`;
      return { title: "put down", name: "because", text, line: `put down: ${text}`, tone: "plain" };
    }
    case "run.stopped": {
      const isSignal = event.by === "signal";
      const text = isSignal ? "a signal, such as Ctrl-C" : "lockstep stop, from another process";
      const line = isSignal ? null : "stopped from another process";
      return { title: "stopped", name: "by", text, line, tone: "warning" };
    }
    case "run.limited":
      return { title: "limit", name: "reached", text: event.why, tone: "warning" };
    case "run.left": {
      const text = event.still.join(", ");
      const line = `did not stop in time: ${text}`;
      return { title: "left", name: "still running", text, line, tone: "warning" };
    }
    case "run.noted": {
      const line = `note: ${event.text}`;
      return { title: "note", name: "by a person", text: event.text, line, tone: "warning", lasting: true };
    }
    case "step.warned":
      return { title: "limit", name: "near", text: event.text, tone: "warning" };
    case "step.cut": {
      const { turns, inputTokens, outputTokens } = event.usage;
      const text = `${turns} responses, ${inputTokens} tokens in, ${outputTokens} out`;
      const line = `    ${event.step}: interrupted after ${turns} responses`;
      return { title: "interrupted", name: "spent", text, line, tone: "plain" };
    }
    case "step.suspended": {
      const { code, why, id } = event;
      const words = { title: "suspended", name: code, text: why };
      if (id === undefined) return { ...words, tone: "warning" };
      return { ...words, line: `${id} waits for an answer`, tone: "plain" };
    }
    case "effect.intended":
      return { title: "effect", name: "intended", text: event.detail, tone: "plain", detail: true };
    case "effect.applied":
      return { title: "effect", name: "applied", text: event.detail, tone: "plain" };
    case "effect.held":
      return { title: "effect", name: "held", text: event.detail, tone: "warning" };
    case "effect.failed": {
      // A run stops at any other, and its report says so.
      const detail = typeof effectOf(event) !== "object";
      return { title: "effect", name: "failed", text: event.detail, tone: "error", detail };
    }
    case "run.started":
    case "run.resumed":
    case "run.adopted":
    case "run.edited":
    case "run.ended":
    case "step.answered":
    case "step.called":
    case "step.checked":
    case "step.waited":
    case "step.looked":
    case "step.hooked":
    case "step.asked":
    case "step.told":
      return null;
  }
}
