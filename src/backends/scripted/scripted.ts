/**
 * A model that answers from a script. Deterministic, offline, and strict: a request that the script did not
 * foresee is an error, so that a script is also a test.
 */
import type { Backend, TurnRequest, TurnResult } from "../../engine/ports.ts";
import type { Fault, Usage } from "../../flow/event.ts";
import { isObject, type Json } from "../../flow/json.ts";
import { createCallIds } from "../call-ids.ts";
import type { MeteredReply } from "./script.ts";

/**
 * `used` are the marks of the replies that were given before: a resumed run does not hear them again. `more`: what a person
 * does who has more replies.
 */
export function createScripted(
  replies: readonly MeteredReply[],
  used: readonly Json[] = [],
  more: (run: string) => string = (run) => `Continue with: lockstep resume ${run} --script MORE`,
): Backend {
  const spent = new Set<number>(used.filter((mark) => typeof mark === "number"));
  let first = 0;

  function turn(request: TurnRequest): Promise<TurnResult> {
    while (spent.has(first)) first += 1;
    for (let index = first; index < replies.length; index++) {
      const reply = replies[index]!;
      if (spent.has(index)) continue;
      const { step } = reply;
      if (step === undefined || step === request.asker.step)
        return Promise.resolve(give(reply, index, request));
      if (!request.asker.beside.includes(step))
        return Promise.resolve(mismatch(request, `reply ${index + 1} is for "${step}"`));
    }
    const message =
      `The script has no reply left for step "${request.asker.step}" (visit ${request.asker.visit}). ` +
      more(request.asker.key.split("/", 1)[0]!);
    return Promise.resolve(fault({ kind: "script", code: "SCRIPT_EXHAUSTED", message }));
  }

  function give(reply: MeteredReply, index: number, request: TurnRequest): TurnResult {
    const wrong = unexpected(reply, request);
    if (wrong !== null) return mismatch(request, `reply ${index + 1} ${wrong}`);
    spent.add(index);
    return { ...giveReply(reply, request), mark: index };
  }

  return {
    spec: { id: "scripted", options: { replies: replies as unknown as Json } },
    turn,
    free: true,
    leftovers: () => unused(replies.flatMap((reply, index) => (spent.has(index) ? [] : [{ reply, index }]))),
  };
}

/** What a model answers that gives this reply. A payload is a call where the step wants it as one. */
export function giveReply(reply: MeteredReply, { asker, output: wanted }: TurnRequest): TurnResult {
  if (reply.error !== undefined) {
    const { kind, message = `scripted ${kind}`, ...extra } = reply.error;
    return fault({ kind, message, ...extra });
  }
  const idOf = createCallIds(asker.key);
  const calls = (reply.calls ?? []).map(({ id, name, input }, place) => {
    return { id: idOf(id, place), name, input };
  });
  const { output } = reply;
  const channel = wanted?.channel;
  const isCall = isObject(output) && channel?.kind === "tool";
  if (isCall) calls.push({ id: idOf(`${asker.key}#done`, calls.length), name: channel.name, input: output });
  return {
    kind: "reply",
    text: reply.text ?? (isObject(output) || output === undefined ? "" : JSON.stringify(output)),
    calls,
    ...(isObject(output) && !isCall && { output }),
    usage: reply.usage === undefined ? USAGE : usageOf(reply.usage),
  };
}

/** In one line, however many they are. */
function unused(
  left: readonly { readonly reply: MeteredReply; readonly index: number }[],
): readonly string[] {
  const names = left.map(
    ({ reply, index }) => `${index + 1}${reply.step === undefined ? "" : ` for "${reply.step}"`}`,
  );
  if (names.length === 0) return [];
  if (names.length === 1) return [`script: reply ${names[0]} was not used`];
  const [some, more] = [names.slice(0, MOST_NAMED), names.length - MOST_NAMED];
  const rest = more > 0 ? ` and ${more} more` : "";
  return [`script: ${names.length} replies were not used: ${some.join(", ")}${rest}`];
}

const MOST_NAMED = 3;

const USAGE: Usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };

function usageOf(taken: NonNullable<MeteredReply["usage"]>): Usage {
  const { in: inputTokens = 0, out: outputTokens = 0, usd: costUsd = null, turns = 1 } = taken;
  return { turns, inputTokens, outputTokens, costUsd };
}

function unexpected(reply: MeteredReply, request: TurnRequest): string | null {
  if (reply.saw === undefined && reply.unseen === undefined) return null;
  const seen = [request.system, ...request.messages.map(textOf)].join("\n");
  const missing = reply.saw?.find((word) => !occurs(word, seen));
  if (missing !== undefined)
    return `expected the request to hold ${JSON.stringify(missing)}, and it does not`;
  const present = reply.unseen?.find((word) => occurs(word, seen));
  return present === undefined
    ? null
    : `expected the request not to hold ${JSON.stringify(present)}, and it does`;
}

function textOf(message: TurnRequest["messages"][number]): string {
  if (message.role === "tool") return message.results.map((result) => result.content).join("\n");
  const payload =
    message.role === "assistant" && message.output !== undefined ? JSON.stringify(message.output) : "";
  return message.text + payload;
}

function occurs(word: string, text: string): boolean {
  return word.startsWith("re:") ? new RegExp(word.slice(3)).test(text) : text.includes(word);
}

function mismatch(request: TurnRequest, what: string): TurnResult {
  const { step, visit, turn } = request.asker;
  const message = `Step "${step}" asks (visit ${visit}, turn ${turn}), but ${what}.`;
  return fault({ kind: "script", code: "SCRIPT_MISMATCH", message });
}

function fault(fault: Fault): TurnResult & { kind: "fault" } {
  return { kind: "fault", fault };
}
