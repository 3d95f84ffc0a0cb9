/** How people take part in a run, and what watches over it, as files say it. */
import type { Settings } from "../../flow/settings.ts";
import { group, number, text } from "../text/shape.ts";

const UNITS: { readonly [unit: string]: number } = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

export const IF_INTERRUPTED = text(
  "What happens to a step that was running when its process died: it runs again, a person is asked, or the run fails.",
  { enum: ["retry", "ask", "fail"] },
);

export const PEOPLE_FIELDS = {
  ifInterrupted: IF_INTERRUPTED,
  questions: group("Questions to people.", {
    askUser: text(
      "Who answers AskUserQuestion. auto: askUserAutoResponse. person: a person, if one is available.",
      { enum: ["auto", "person"] },
    ),
    expireAfter: text("How long a question stays open, such as 30m, 24h or 7d; no limit by default.", {
      pattern: "^[1-9]\\d{0,9}(ms|s|m|h|d)$",
    }),
  }),
  watch: group("What ends an attempt or a run that makes no progress.", {
    inactivityMs: number(
      "Milliseconds without output after which a coding agent is stopped; half an hour by default.",
      { min: 1, integer: true },
    ),
    repeats: number(
      "How often in a row a step may make the same calls with the same result before it is warned, and then stopped.",
      { min: 2, integer: true },
    ),
  }),
};

type Written = {
  readonly questions: {
    readonly askUser: "auto" | "person" | undefined;
    readonly expireAfter: string | undefined;
  };
  readonly watch: { readonly inactivityMs: number | undefined; readonly repeats: number | undefined };
};

/** Only what is written. */
export function peopleOf({ questions, watch }: Written): Pick<Settings, "questions" | "watch"> {
  const { askUser, expireAfter } = questions;
  const { inactivityMs, repeats } = watch;
  const asked = {
    ...(askUser !== undefined && { askUser }),
    ...(expireAfter !== undefined && { expireMs: millisecondsOf(expireAfter) }),
  };
  const watched = {
    ...(inactivityMs !== undefined && { inactivityMs }),
    ...(repeats !== undefined && { repeats }),
  };
  return {
    ...(Object.keys(asked).length > 0 && { questions: asked }),
    ...(Object.keys(watched).length > 0 && { watch: watched }),
  };
}

/** The step's own word, else the agent's; what is usual is not written down. */
export function interruptedOf(
  step: "retry" | "ask" | "fail" | undefined,
  agent: "retry" | "ask" | "fail" | undefined,
): { readonly ifInterrupted?: "ask" | "fail" } {
  const wanted = step ?? agent;
  return wanted === undefined || wanted === "retry" ? {} : { ifInterrupted: wanted };
}

function millisecondsOf(text: string): number {
  const [, amount = "0", unit = "ms"] = /^(\d+)(\w+)$/.exec(text) ?? [];
  return Number(amount) * (UNITS[unit] ?? 1);
}
