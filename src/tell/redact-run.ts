/**
 * A run without what people and models said in it. Letters become x and digits 0, wherever words can stand; what the
 * flow itself names stays, and so does whatever a decision depends on, because the run must still replay.
 */
import type { Prepared, PreparedFlows } from "../engine/schema/prepared.ts";
import { stateAfter } from "../engine/decide/decide.ts";
import { besidesAct, decidedEnd } from "../engine/decide/due.ts";
import { RunnerError } from "../engine/ports.ts";
import { inItsOwnRun, toldAs } from "../story/reword.ts";
import { EMPTY_STATE, type State } from "../engine/decide/state.ts";
import { flowFrom } from "../flow/adopted.ts";
import { judgedIn, type Entry, type Event, type Reply } from "../flow/event.ts";
import type { Flow, Move, Step } from "../flow/flow.ts";
import { isObject, sameJson, type Json, type JsonObject } from "../flow/json.ts";
import { partsOf } from "../flow/rules.ts";
import { TEXTS_OF } from "./event-words.ts";

export type Redacted = {
  readonly entries: readonly Entry[];
  /** Entries in which words were kept because the decision hangs on them. */
  readonly kept: readonly { readonly seq: number; readonly words: number }[];
};

export function redact(began: Prepared, entries: readonly Entry[], adopted: PreparedFlows): Redacted {
  const { told, kept } = createRedaction(began, adopted);
  return { entries: entries.map(told), kept };
}

/** For entries that come one by one. `kept` grows with them. */
export type Redaction = { readonly told: (entry: Entry) => Entry; readonly kept: Redacted["kept"] };

export function createRedaction(began: Prepared, adopted: PreparedFlows): Redaction {
  const hide = hider([began, ...Object.values(adopted)]);
  const kept: Redacted["kept"][number][] = [];
  let flow = began;
  let was = EMPTY_STATE;
  let is = EMPTY_STATE;
  const told = (entry: Entry): Entry => {
    const { seq, event: recorded } = entry;
    flow = flowFrom(flow, recorded, adopted);
    const then = stateAfter(flow, was, recorded);
    const retold = (open: Open) => {
      const event = inItsOwnRun(reworded(recorded, is, hide, open), recorded, was, is);
      return { event, now: stateAfter(flow, is, event) };
    };
    const open = whatMustStay(seq, recorded, (places) => comesToTheSame(then, retold(places).now));
    const { event, now } = retold(open);
    if (open.size > 0) kept.push({ seq, words: open.size });
    was = then;
    is = now;
    return toldAs(entry, event, now);
  };
  return { told, kept };
}

/** Places of strings in an event, counted as they are met. */
type Open = ReadonlySet<number>;

/** As few places as can be: first none, else all of them, taken back one by one as long as nothing changes. */
function whatMustStay(seq: number, event: Event, holds: (open: Open) => boolean): Open {
  if (holds(new Set())) return new Set();
  const open = new Set(Array.from({ length: countStrings(event) }, (_, place) => place));
  if (!holds(open)) {
    const why = `Entry ${seq} comes out another way once the words before it are hidden, so this run cannot be redacted.`;
    throw new RunnerError("EXPORT_INVALID", why);
  }
  for (const place of Array.from(open)) {
    open.delete(place);
    if (!holds(open)) open.add(place);
  }
  return open;
}

function countStrings(event: Event): number {
  let count = 0;
  reworded(event, EMPTY_STATE, () => String((count += 1)), new Set());
  return count;
}

/** The same decision, and the same to be done next; what is said of it may differ. */
function comesToTheSame(a: State, b: State): boolean {
  return sameJson(essence(a), essence(b));
}

function essence(state: State): Json {
  const { settled, verdict } = state;
  // What an answer asks for outside decides nothing.
  const commands = besidesAct(state).map((command): Json => {
    if (command.type === "end") return "end";
    const { type, step, visit } = command;
    const more = command.type === "check" ? command.checks : command.type === "hook" ? command.hook : null;
    return [type, step, visit, more, command.type === "wait" ? command.ms : null];
  });
  const led =
    settled === null
      ? null
      : [
          settled.step,
          settled.visit,
          settled.label,
          settled.to,
          settled.overturned ?? false,
          settled.check?.label ?? null,
        ];
  return [led, commands, verdict === null ? null : [verdict.outcome, verdict.code, verdict.step]];
}

// The words of an event.

type Hide = (text: string) => string;

function reworded(event: Event, is: State, hide: Hide, open: Open): Event {
  let place = 0;
  const word = (text: string): string => {
    const here = place++;
    return open.has(here) ? text : hide(text);
  };
  const words = (value: Json): Json => {
    if (typeof value === "string") return word(value);
    if (Array.isArray(value)) return (value as readonly Json[]).map(words);
    return isObject(value) ? members(value) : value;
  };
  const members = (value: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(value).map(([name, member]) => [name, words(member)]));

  switch (event.type) {
    case "run.started":
      return {
        ...event,
        args: members(event.args),
        input: word(event.input),
        cwd: word(event.cwd),
        backend: NOBODY,
      };
    case "run.resumed":
      return {
        ...event,
        ...(event.backend !== undefined && { backend: NOBODY }),
        ...(event.strays !== undefined && { strays: event.strays.map(word) }),
      };
    case "run.edited":
      return { ...event, handoff: members(event.handoff) as typeof event.handoff };
    case "step.answered":
      return { ...event, reply: replyIn(event.reply, word, members) };
    case "step.called":
      return {
        ...event,
        results: event.results.map(({ denied, grant, ...result }) => ({
          ...result,
          content: word(result.content),
          ...(denied !== undefined && { denied: word(denied) }),
          ...(grant !== undefined && { grant: { ...grant, argsDigest: word(grant.argsDigest) } }),
        })),
      };
    case "step.checked":
      return {
        ...event,
        results: event.results.map(({ note, ...result }) => ({
          ...result,
          summary: word(result.summary),
          params: members(result.params),
          ...(note !== undefined && { note: word(note) }),
        })),
      };
    case "step.looked":
      return { ...event, sights: event.sights.map(({ met, what }) => ({ met, what: word(what) })) };
    case "step.hooked": {
      const { result } = event;
      if (result.kind === "gave") return { ...event, result: { ...result, value: words(result.value) } };
      return result.kind === "threw"
        ? { ...event, result: { ...result, message: word(result.message) } }
        : event;
    }
    case "step.asked": {
      const { pattern, ...question } = event.question;
      const choices = question.choices.map(word);
      const said = { ...question, text: word(question.text), choices };
      return {
        ...event,
        question: pattern === undefined ? said : { ...said, pattern: word(pattern) },
        ...(event.ruled !== undefined && {
          ruled: event.ruled.map((one) => ({
            ...one,
            answer: one.answer === null ? null : word(one.answer),
          })),
        }),
      };
    }
    case "step.told":
      return event.answer === null ? event : { ...event, answer: word(event.answer) };
    case "run.ended": {
      const verdict = decidedEnd(is);
      return verdict === null ? event : { ...event, verdict };
    }
    default: {
      const texts: readonly string[] = TEXTS_OF[event.type];
      const said: { readonly [name: string]: unknown } = event;
      return { ...event, ...Object.fromEntries(texts.map((name) => [name, word(said[name] as string)])) };
    }
  }
}

function replyIn(reply: Reply, word: Hide, members: (value: JsonObject) => JsonObject): Reply {
  const judged = judgedIn(reply).map(({ name, denied }) =>
    denied === undefined ? { name } : { name, denied: word(denied) },
  );
  const rest = judged.length > 0 && { judged };
  switch (reply.kind) {
    case "said": {
      const { text, calls, output, usage } = reply;
      return {
        kind: "said",
        text: word(text),
        calls: calls.map(({ id, name, input }) => ({ id, name, input: members(input) })),
        ...(output !== undefined && { output: members(output) }),
        usage,
        ...rest,
      };
    }
    case "fault":
      return { kind: "fault", fault: { ...reply.fault, message: word(reply.fault.message) }, ...rest };
    case "oversized":
      return { kind: "oversized", why: reply.why, ...rest };
    case "unaskable":
      return { ...reply, why: word(reply.why) };
  }
}

/** The backend that answered: its options may hold answers, addresses and names. */
const NOBODY = { id: "redacted", options: null };

// What the flow itself says, and so may stay.

function hider(flows: readonly Flow[]): Hide {
  const known = flows.map(ownWords);
  const listenedFor = flows.flatMap(({ stop }) =>
    partsOf(stop).flatMap((part) =>
      part.kind === "keyword" ? [part.text] : part.kind === "signal" ? [part.type] : [],
    ),
  );
  return (text) => (known.some((words) => words.has(text)) ? text : around(text, listenedFor));
}

const wordsOf = new WeakMap<Flow, ReadonlySet<string>>();

function ownWords(flow: Flow): ReadonlySet<string> {
  const ready = wordsOf.get(flow);
  if (ready !== undefined) return ready;
  const words = new Set([
    ...Object.values(flow.steps).flatMap(vocabulary),
    ...Object.values(flow.checks).flatMap(({ name, pattern }) => [name, pattern]),
  ]);
  wordsOf.set(flow, words);
  return words;
}

function around(text: string, phrases: readonly string[]): string {
  const [phrase, ...rest] = phrases;
  if (phrase === undefined || phrase === "") return masked(text);
  return text
    .split(phrase)
    .map((part) => around(part, rest))
    .join(phrase);
}

function masked(text: string): string {
  return text.replaceAll(/\p{L}|[^\0-\x7f]/gu, "x").replaceAll(/\d/g, "0");
}

function vocabulary({ id, edges, decide, answer }: Step): readonly string[] {
  const labels =
    decide.by === "const"
      ? [decide.label]
      : [...decide.allow, ...decide.always, ...Object.entries(decide.alias).flat()];
  const schema =
    answer.kind === "object" && answer.schema.kind === "schema" ? valuesIn(answer.schema.schema) : [];
  return [id, ...Object.keys(edges), ...Object.values(edges).flatMap(casesOf), ...labels, ...schema];
}

/** Every value that a switch tells apart. */
function casesOf(move: Move): readonly string[] {
  if (move.kind === "times") return [...casesOf(move.move), ...casesOf(move.after)];
  if (move.kind !== "switch") return [];
  return [...Object.keys(move.cases), ...Object.values(move.cases).flatMap(casesOf)];
}

/** The words that a schema lists. */
function valuesIn(schema: Json): readonly string[] {
  if (Array.isArray(schema)) return (schema as readonly Json[]).flatMap(valuesIn);
  if (!isObject(schema)) return [];
  return Object.entries(schema).flatMap(([key, value]) => {
    if (key === "const") return typeof value === "string" ? [value] : [];
    if (key === "enum" && Array.isArray(value))
      return (value as readonly Json[]).filter((item): item is string => typeof item === "string");
    return valuesIn(value);
  });
}
