/**
 * Everything outside of a run, as it was when the run was recorded: the same model, tools, commands, hooks and effects
 * answer again, however often and from wherever the run goes on. It counts what it is asked to do.
 */
import { createScripted } from "../../src/backends/scripted/scripted.ts";
import type { ScriptReply } from "../../src/backends/scripted/script.ts";
import { createLedger } from "../../src/effects/actions/ledger.ts";
import type { ActPort, Ports, TurnResult } from "../../src/engine/ports.ts";
import { addEntry, createReport } from "../../src/story/report.ts";
import { outsideOf } from "../../src/engine/decide/stop.ts";
import type { Entry, Event, Reply } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { isObject, own, type Json } from "../../src/flow/json.ts";
import { composer } from "../../src/prompts/compose.ts";
import { fakeClock } from "../../src/testing/scenario.ts";

/** A run that went to its end without a crash. */
export type Recorded = {
  readonly name: string;
  readonly flow: Flow;
  readonly replies: readonly ScriptReply[];
  readonly entries: readonly Entry[];
  /** Who was asked, and about what. */
  readonly people?: { readonly person: Ports["person"]; readonly wish: Ports["toolbox"]["wish"] };
};

export type Outside = {
  readonly ports: Ports;
  /** What was done in this stretch, by the type of the event that tells of it. */
  readonly done: { [type: string]: number };
};

/** `committed` is asked at every turn: what is on disk by then. `acts` are what was done to the world so far. */
export function outsideFor(
  { flow, replies, entries: recorded, people }: Recorded,
  committed: () => readonly Entry[],
  acts: string[],
): Outside {
  const done: { [type: string]: number } = {};
  const count = (type: string) => (done[type] = (done[type] ?? 0) + 1);
  const of = <T extends Event["type"]>(entries: readonly Entry[], type: T) =>
    entries.flatMap(({ event }) => (event.type === type ? [event as Extract<Event, { type: T }>] : []));
  const [start] = of(recorded, "run.started");
  const marks = of(committed(), "step.answered").flatMap(({ reply }) =>
    "mark" in reply && reply.mark !== undefined ? [reply.mark] : [],
  );
  const scripted = createScripted(replies, marks);

  const results = new Map(
    of(recorded, "step.called").flatMap((event) =>
      event.results.map((result) => [within(result.id), result]),
    ),
  );
  const call = (batch: readonly { readonly id: string }[]) => {
    count("step.called");
    for (const { id } of batch) {
      const told = of(committed(), "step.called").some((event) => event.results.some((one) => one.id === id));
      if (told) throw new Error(`the call ${id} was made again although its result was committed`);
    }
    return batch.map(({ id }) => ({ ...results.get(within(id))!, id }));
  };

  const names = new Set(
    of(recorded, "step.called").flatMap((event) => event.results.map(({ name }) => name)),
  );
  for (const { tools } of Object.values(flow.steps))
    for (const tool of tools.allow) names.add(tool.split("(", 1)[0]!.trim());
  const offer = [...names].map((name) => ({ name, description: "", input: {} }));

  const checked = of(recorded, "step.checked").flatMap((event) => event.results);

  const act: ActPort = async (_due, record) => {
    const report = createReport();
    for (const entry of committed()) addEntry(report, entry);
    const ledger = createLedger({ past: report.effects, record, dryRun: false, signal: never });
    for (const { key, kind, detail } of of(recorded, "effect.intended")) {
      const doing = {
        key,
        kind,
        target: "",
        detail,
        find: () => Promise.resolve(acts.includes(key) ? "found" : null),
        perform: () => {
          acts.push(key);
          return Promise.resolve({ state: "applied", detail: "done" } as const);
        },
      };
      if (!(await ledger.act(doing))) return false;
    }
    return true;
  };
  const hasEffects = of(recorded, "effect.intended").length > 0;

  return {
    done,
    ports: {
      ...(hasEffects && { act }),
      clock: fakeClock(),
      cwd: "/",
      compose: composer,
      person: people?.person ?? { ask: () => Promise.resolve(null), isReachable: false, absent: "deny" },
      backend: {
        ...scripted,
        turn: (request) => {
          count("step.answered");
          const { step, visit, turn } = request.asker;
          if (of(committed(), "step.answered").some((event) => isAnswerTo(event, step, visit, turn)))
            throw new Error(`${step}@${visit}/${turn} was asked again although its answer was committed`);
          return scripted.turn!(request);
        },
      },
      toolbox: {
        offer: () => offer,
        judge: () => null,
        ...(people?.wish !== undefined && { wish: people.wish }),
        call: (_step, batch) => Promise.resolve(call(batch)),
        callGranted: (_step, batch) => Promise.resolve({ kind: "results", results: call(batch) }),
      },
      shell: {
        check: ({ name }) => {
          count("check");
          const before = of(committed(), "step.checked").flatMap((event) => event.results);
          const nth = before.filter((result) => result.name === name).length;
          return Promise.resolve(checked.filter((result) => result.name === name)[nth]!);
        },
        perform: ({ id }) => {
          count("step.answered");
          const nth = answersOf(committed(), id).length;
          return Promise.resolve(toResult(answersOf(recorded, id)[nth]!));
        },
      },
      watch: {
        look: (rule) => {
          count("sight");
          const nth = of(committed(), "step.looked").length;
          const { sights } = of(recorded, "step.looked")[nth]!;
          return Promise.resolve(sights[outsideOf(flow.stop).indexOf(rule)]!);
        },
      },
      ...(flow.hooks !== undefined && {
        hooks: {
          call: ([, hook = ""]: readonly string[], args: readonly Json[]) => {
            count("step.hooked");
            const host = args.at(-1);
            const id = isObject(host) ? own(host, "stageExecutionId") : "";
            const hooked = (entries: readonly Entry[]) =>
              of(entries, "step.hooked").filter(
                (event) => event.hook === hook && `${start!.run}/${event.step}/${event.visit}` === id,
              );
            const { result } = hooked(recorded)[hooked(committed()).length]!;
            if (hook !== "setup" || result.kind !== "gave") return Promise.resolve(result);
            const value = { value: null, changed: result.value };
            return Promise.resolve({ kind: "gave" as const, value });
          },
          close: () => Promise.resolve(),
        },
      }),
    },
  };
}

/** The id of a call without its run: what is on record was imported, and had another id when it was made. */
function within(id: string): string {
  return id.slice(id.indexOf("/") + 1);
}

const never = new AbortController().signal;

function isAnswerTo(event: Event & { type: "step.answered" }, step: string, visit: number, turn: number) {
  const { reply } = event;
  return event.step === step && event.visit === visit && event.turn === turn && reply.kind !== "fault";
}

function answersOf(entries: readonly Entry[], step: string): readonly Reply[] {
  return entries.flatMap(({ event }) =>
    event.type === "step.answered" && event.step === step ? [event.reply] : [],
  );
}

function toResult(reply: Reply): TurnResult {
  if (reply.kind === "said") {
    const { text, calls, output, usage } = reply;
    return { kind: "reply", text, calls, ...(output !== undefined && { output }), usage };
  }
  if (reply.kind === "fault") return { kind: "fault", fault: reply.fault };
  throw new Error(`no command answers ${reply.kind}`);
}
