/** A journal with one more run, which is recorded when it is first written to. */
import type { Journal, NewRun, RunHandle, RunRow } from "../engine/ports.ts";
import type { Entry } from "../flow/event.ts";
import type { Flows } from "../flow/flow.ts";
import { own } from "../flow/json.ts";

/** A run that is whole but not recorded yet. */
export type Unrecorded = {
  readonly run: NewRun;
  readonly entries: readonly Entry[];
  readonly adopted: Flows;
};

/**
 * The journal as it is once the draft is recorded. It is recorded when it is first written to: a run that is refused
 * before that (no trust, no sandbox, no model) leaves nothing behind.
 */
export function withUnrecorded(
  journal: Journal,
  { run, entries, adopted }: Unrecorded,
): { readonly journal: Journal; readonly row: RunRow; readonly make: () => Promise<RunHandle> } {
  const { id, agent, digest, at } = run;
  let made: Promise<RunHandle> | null = null;
  const make = () => (made ??= journal.create(run, entries, adopted));
  const row: RunRow = {
    id,
    agent,
    digest,
    createdAt: at,
    events: entries.length,
    last: entries.at(-1) ?? null,
    owned: false,
  };
  const handle: RunHandle = {
    run: id,
    epoch: 1,
    append: async (more, flows) => await (await make()).append(more, flows),
    release: async () => await (await made)?.release(),
  };
  const isDraft = (other: string) => made === null && other === id;
  const drafted: Journal = {
    ...journal,
    list: async (which = {}) => [
      ...(made === null &&
      which.before === undefined &&
      which.owned === undefined &&
      id.startsWith(which.prefix ?? "")
        ? [row]
        : []),
      ...(await journal.list(which)),
    ],
    rows: async (ids) => [
      ...ids.flatMap((other) => (isDraft(other) ? [row] : [])),
      ...(await journal.rows(ids)),
    ],
    read: async (other, after = 0, limit) =>
      isDraft(other) ? entries.slice(after, limit && after + limit) : await journal.read(other, after, limit),
    flow: async (wanted) => own(adopted, wanted) ?? (await journal.flow(wanted)),
    claim: async (other, how) => (isDraft(other) ? handle : await journal.claim(other, how)),
  };
  return { journal: drafted, row, make };
}
