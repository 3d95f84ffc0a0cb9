/** A run as one file: its flows and its entries, whole in itself, to be replayed anywhere. */
import { prepareAll, type Prepared, type PreparedFlows } from "../../engine/schema/prepared.ts";
import { RunnerError, type Journal, type RunRow } from "../../engine/ports.ts";
import type { Divergence } from "../../story/replay.ts";
import { inItsOwnRun, retell } from "../../story/reword.ts";
import { adoptions } from "../../flow/adopted.ts";
import type { Entry, Event } from "../../flow/event.ts";
import type { Flow, Flows } from "../../flow/flow.ts";
import { escapedInLine, jsonLine } from "../../flow/text/harmless.ts";
import { FORBIDDEN_NAMES, isObject, own, type JsonObject } from "../../flow/json.ts";
import { isRunId } from "../../flow/recorded.ts";
import { flowDigest } from "../load.ts";
import { createRedaction, type Redacted } from "../../tell/redact-run.ts";
import { timedReplay, type TimedReplay } from "./replay.ts";
import { damageOf, findRun, flowOf, SLICE, slicesOf, untilDamage, type Damage } from "./runs.ts";

export type Bundle = {
  readonly v: 1;
  readonly kind: "lockstep-run";
  /** What made it; nothing is decided by it. */
  readonly meta: JsonObject;
  readonly run: {
    readonly id: string;
    readonly agent: string;
    readonly createdAt: number;
    readonly flow: string;
  };
  /** Whether the words were taken out. */
  readonly redacted: boolean;
  readonly flows: Flows;
  readonly entries: readonly Entry[];
  /** The record was damaged: more entries followed, from `seq` on where that is known. */
  readonly damaged?: Damage;
};

export type ExportOptions = { readonly redact?: boolean; readonly meta?: JsonObject };
export type Exported = { readonly bundle: Bundle; readonly kept: Redacted["kept"] };
export type ImportOptions = { readonly as?: string; readonly cwd: string; readonly now: number };
export type Imported = { readonly run: string; readonly difference: Divergence | null };

/** A run by id, prefix, `@last` or `@failed`. `kept`: where a redacted one still holds words. */
export async function exportRun(
  journal: Journal,
  ref: string,
  options: ExportOptions = {},
): Promise<Exported> {
  const { head, damage, slices, kept } = await openExport(journal, ref, options);
  const entries: Entry[] = [];
  for await (const slice of slices) entries.push(...slice);
  return { bundle: { ...head, entries, ...(damage !== null && { damaged: damage }) }, kept };
}

export type Exporting = {
  /** What stands before the entries. */
  readonly head: Omit<Bundle, "entries" | "damaged">;
  /** What stands behind them. */
  readonly damage: Damage | null;
  readonly events: number;
  readonly slices: AsyncGenerator<readonly Entry[]>;
  /** Grows while the slices are read. */
  readonly kept: Redacted["kept"];
};

/** The same for a run that is written while it is read. It is read twice: its flows come before its entries. */
export async function openExport(
  journal: Journal,
  ref: string,
  { redact: isRedacted = false, meta = {} }: ExportOptions = {},
): Promise<Exporting> {
  const row = await findRun(journal, ref);
  const { id, agent, createdAt, digest } = row;
  const flow = await flowOf(journal, id, digest);
  const { adopted, last, damage } = await flowsIn(journal, row);
  const redaction = isRedacted ? createRedaction(flow, adopted) : null;
  const exported = (entry: Entry) => withoutImport(redaction === null ? entry : redaction.told(entry));
  async function* slices() {
    for (let seq = 0; seq < last;) {
      const slice = await journal.read(id, seq, Math.min(SLICE, last - seq));
      if (slice.length === 0) return;
      seq += slice.length;
      yield slice.map(exported);
    }
  }
  const head = {
    v: 1,
    kind: "lockstep-run",
    meta,
    run: { id, agent, createdAt, flow: digest },
    redacted: isRedacted,
    flows: { [digest]: flow, ...adopted },
  } as const;
  return { head, damage, events: last, slices: slices(), kept: redaction?.kept ?? [] };
}

/** The text of the file, piece by piece. */
export async function* textOf({ head, damage, slices }: Exporting): AsyncGenerator<string> {
  const within = (value: unknown) => jsonLine(value, 1).replaceAll("\n", "\n  ");
  yield `${jsonLine(head, 1).slice(0, -2)},\n "entries": [`;
  let between = "";
  for await (const slice of slices) {
    yield slice.map((entry, place) => `${place === 0 ? between : ","}\n  ${within(entry)}`).join("");
    between = ",";
  }
  const end = damage === null ? "" : `,\n "damaged": ${jsonLine(damage, 1).replaceAll("\n", "\n ")}`;
  yield `${between === "" ? "]" : "\n ]"}${end}\n}`;
}

/** Which flows a run adopted, and up to which entry it can be read. */
async function flowsIn(
  journal: Journal,
  row: RunRow,
): Promise<{ readonly adopted: PreparedFlows; readonly last: number; readonly damage: Damage | null }> {
  const adopted: { [digest: string]: Prepared } = {};
  let last = 0;
  const met = await untilDamage(async () => {
    for await (const slice of slicesOf(journal, row.id))
      for (const { seq, event } of slice) {
        last = seq;
        if (event.type === "run.adopted") adopted[event.flow] = await flowOf(journal, row.id, event.flow);
      }
  });
  if (met !== null && met.seq <= 1) throw met;
  return { adopted, last, damage: damageOf(row, met) };
}

/** That it was imported here is not part of the run: the file can be imported elsewhere again. */
function withoutImport(entry: Entry): Entry {
  if (entry.event.type !== "run.started" || entry.event.imported === undefined) return entry;
  const { imported: _, ...event } = entry.event;
  return { ...entry, event };
}

/** EXPORT_INVALID unless it is a bundle that is whole. `file` is named in messages. */
export function parseBundle(text: string, file: string): Bundle {
  const refuse = (why: string): RunnerError => new RunnerError("EXPORT_INVALID", `${file} ${why}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new RunnerError("EXPORT_INVALID", `${file} is not valid JSON, or was cut off.`, { cause });
  }
  if (!isObject(value) || own(value, "kind") !== "lockstep-run") throw refuse("is not an exported run.");
  if (own(value, "v") !== 1)
    throw refuse(`has version ${JSON.stringify(own(value, "v"))}, but this Lockstep only reads version 1.`);
  const { run, flows, entries } = value as unknown as Partial<Bundle>;
  const isWhole =
    isObject(run) &&
    [run.id, run.agent, run.flow].every((member) => typeof member === "string") &&
    typeof run.createdAt === "number" &&
    isObject(flows) &&
    Array.isArray(entries) &&
    entries.every(
      (entry) => isObject(entry) && isObject(own(entry, "event")) && typeof own(entry, "at") === "number",
    );
  if (!isWhole) throw refuse("lacks parts of a run.");
  const bundle = value as unknown as Bundle;
  return foreignData(file, () => {
    for (const digest of [bundle.run.flow, ...adoptions(bundle.entries)]) {
      const flow = own(bundle.flows, digest);
      if (flow === undefined) throw refuse(`lacks the flow ${digest}.`);
      const fault = flowFault(flow);
      if (fault !== null) throw refuse(`has a flow that Lockstep cannot have made: ${fault}.`);
      if (flowDigest(flow) !== digest)
        throw refuse(`was changed: its flow is not the one with the digest ${digest}.`);
    }
    // Only the flows that the run went by have been looked at.
    const known = new Set([bundle.run.flow, ...adoptions(bundle.entries)]);
    const flows = Object.fromEntries(Object.entries(bundle.flows).filter(([digest]) => known.has(digest)));
    return { ...bundle, flows };
  });
}

/** What everything else takes for granted about a flow. */
function flowFault(flow: unknown): string | null {
  if (!isObject(flow)) return "it is not an object";
  for (const key of ["steps", "checks", "settings"])
    if (!isObject(own(flow, key))) return `"${key}" is not an object`;
  if (typeof own(flow, "agent") !== "string") return '"agent" is not a text';
  const steps = Object.entries(own(flow, "steps") as JsonObject);
  const odd = steps.find(
    ([id, step]) => FORBIDDEN_NAMES.has(id) || !isObject(step) || own(step, "id") !== id,
  );
  return odd === undefined ? null : `step ${JSON.stringify(odd[0].slice(0, 80))} is not a step`;
}

/** A file from elsewhere may hold anything: what its data makes impossible is a fault of the file. */
function foreignData<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw asInvalid(what, cause);
  }
}

export function asInvalid(what: string, cause: unknown): RunnerError {
  if (cause instanceof RunnerError) return cause;
  const why = cause instanceof Error ? cause.message : String(cause);
  return new RunnerError("EXPORT_INVALID", `${what} is not a record of a run: ${why}`, { cause });
}

/** A journal that holds nothing but the exported run, to be looked at like any other. */
export async function journalOf({ run, flows, entries }: Bundle): Promise<Journal> {
  const { createMemoryJournal } = await import("../../journal/memory.ts");
  const journal = createMemoryJournal();
  const about = { id: run.id, agent: run.agent, at: run.createdAt, digest: run.flow, flow: flows[run.flow]! };
  const handle = await journal.create(about, entries, flows);
  await handle.release();
  return journal;
}

/** Works out every decision of an exported run again. */
export async function replayBundle({ run, flows, entries }: Bundle): Promise<TimedReplay> {
  try {
    return await timedReplay(flows[run.flow]!, entries, flows);
  } catch (cause) {
    throw asInvalid(`Run ${run.id}`, cause);
  }
}

/**
 * Makes an exported run one of this journal, all or nothing, with its old id or another. RUN_EXISTS if that is taken.
 * Its working directory is `cwd` from now on. `difference`: the first decision that comes out another way here.
 */
export async function importRun(journal: Journal, bundle: Bundle, options: ImportOptions): Promise<Imported> {
  const { run, flows, entries } = bundle;
  const id = options.as ?? run.id;
  if (!isRunId(id))
    throw new RunnerError(
      "USAGE",
      `"${escapedInLine(id, 100)}" is not a valid run id: letters, digits, - and _ only, at most 64.`,
    );
  if (bundle.damaged !== undefined)
    throw new RunnerError(
      "EXPORT_INVALID",
      `Run ${run.id} was exported from a damaged record and is incomplete: resuming it could repeat its effects. Inspect the file with "lockstep replay".`,
    );
  const { difference } = await replayBundle(bundle);
  if (difference?.about === "entry") {
    const why = `Entry ${difference.seq} of run ${run.id} cannot follow the entries before it, so this is not a valid run.`;
    throw new RunnerError("EXPORT_INVALID", why);
  }
  const flow = flows[run.flow]!;
  const adopted = Object.fromEntries(
    adoptions(entries).map((digest): readonly [string, Flow] => [digest, flows[digest]!]),
  );
  const ready = await prepareAll(flows);
  const here = foreignData(`Run ${run.id}`, () => inThisPlace(bundle, ready, id, options.cwd));
  const about = { id, agent: run.agent, at: options.now, digest: run.flow, flow };
  try {
    const handle = await journal.create(about, here, adopted);
    await handle.release();
  } catch (error) {
    if (!(error instanceof RunnerError) || error.code !== "RUN_EXISTS") throw error;
    throw new RunnerError(
      "RUN_EXISTS",
      `There is a run ${id} here already. Give it another id with --as ID.`,
    );
  }
  return { run: id, difference };
}

/** It works in the folder it is imported to: a worktree that its record names is not its own, and nobody here has trusted it. */
function startedHere(
  started: Extract<Event, { type: "run.started" }>,
  run: string,
  cwd: string,
  entries: number,
): Event {
  const { worktree: _worktree, source: _source, trusted: _trusted, ...event } = started;
  return { ...event, run, cwd, imported: { entries } };
}

/** The recorded decisions stay as they are recorded: a replay reports where they differ. */
function inThisPlace(
  { run, entries }: Bundle,
  flows: PreparedFlows,
  id: string,
  cwd: string,
): readonly Entry[] {
  const moved = retell({
    flow: flows[run.flow]!,
    adopted: flows,
    entries,
    change: (event, { was, is }) =>
      event.type === "run.started"
        ? startedHere(event, id, cwd, entries.length)
        : inItsOwnRun(event, event, was, is),
  });
  return entries.map((entry, place) => ({ ...entry, event: moved[place]!.event }));
}
