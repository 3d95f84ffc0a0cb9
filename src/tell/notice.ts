/** What people are notified of: a question that opens, the end of a run, a limit that is near. */
import type { Moment } from "../story/story.ts";

export const NOTICE_KINDS = ["question", "end", "limit"] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** The document that a webhook or a command gets. */
export type Notice = {
  readonly v: 1;
  readonly kind: NoticeKind;
  readonly run: string;
  readonly agent: string;
  /** The entry that it is about: with the run, it names the notice. */
  readonly seq: number;
  /** ISO 8601. */
  readonly at: string;
  readonly step: string | null;
  /** One line for a person. */
  readonly text: string;
  readonly question?: { readonly id: string; readonly choices: readonly string[]; readonly free: boolean };
  readonly outcome?: string;
  readonly code?: string | null;
  readonly limit?: string;
  /** What to type, where something can be done. */
  readonly command?: string;
};

/** Mostly none. A delivery is known by its run and entry, so an entry has one notice of each kind at the most. */
export function noticesOf({ entry, after, deeds }: Moment, agent: string): readonly Notice[] {
  const { seq, at, event } = entry;
  const { run } = after;
  const about = { v: 1, run, agent, seq, at: new Date(at).toISOString() } as const;
  const near = deeds.find((deed) => deed.kind === "noted");
  const notices: Notice[] = [];
  if (near !== undefined) {
    const { step, limit } = near;
    notices.push({
      ...about,
      kind: "limit",
      step,
      text: `Run ${run} of ${agent} is near its limit ${limit}.`,
      limit,
    });
  }
  if (event.type === "step.asked") {
    const { id, text, choices, free = false } = event.question;
    const command = `lockstep answer ${run} ${id}`;
    const question = { id, choices, free };
    notices.push({ ...about, kind: "question", step: event.step, text, question, command });
  }
  // A run that waits has asked before.
  if (event.type === "run.ended" && event.verdict.outcome !== "waiting") {
    const { outcome, code, reason, step } = event.verdict;
    const command = outcome === "completed" ? {} : { command: `lockstep why ${run}` };
    notices.push({ ...about, kind: "end", step, text: reason, outcome, code, ...command });
  }
  return notices;
}
