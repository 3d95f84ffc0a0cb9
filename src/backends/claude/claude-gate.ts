/**
 * Our gate in front of the tools of Claude Code. Closed unless it opens: a call is answered once the whole response it
 * belongs to is known, and whatever goes wrong on the way is a no.
 */
import type { Gate } from "../../engine/ports.ts";
import { isObject, type JsonObject } from "../../flow/json.ts";
import { ANSWER_TOOL } from "./claude-read.ts";
import { ourName } from "./claude-tools.ts";
import { textIn } from "../untyped.ts";
import { errorText } from "../../flow/text/harmless.ts";

/** The calls of each response, known when it has been streamed to its end. */
export type Batches = {
  readonly hear: (message: JsonObject) => void;
  /** The names in the response with this call; null: it broke off, and will not be known. */
  readonly whole: (id: string) => Promise<readonly string[] | null>;
  /** Nothing more is coming. */
  readonly end: () => void;
};

export function createBatches(): Batches {
  let open: { readonly name: string; readonly id: string }[] = [];
  let ended = false;
  const calls = new Map<string, PromiseWithResolvers<readonly string[] | null>>();

  /** Somebody may ask about a call before it is heard of. */
  function find(id: string): PromiseWithResolvers<readonly string[] | null> {
    const known = calls.get(id) ?? Promise.withResolvers<readonly string[] | null>();
    calls.set(id, known);
    return known;
  }

  /** What was heard of an open response counts, or does not if it broke off. */
  function shut(batch: readonly string[] | null): void {
    for (const { id } of open) find(id).resolve(batch);
    open = [];
  }

  function hear({ type, event }: JsonObject): void {
    if (type !== "stream_event" || !isObject(event)) return;
    const { type: kind, content_block: block } = event;
    if (kind === "message_start") shut(null);
    if (kind === "content_block_start" && isObject(block) && block.type === "tool_use") {
      open.push({ id: textIn(block.id), name: textIn(block.name) });
    }
    if (kind === "message_stop") shut(open.map(({ name }) => name));
  }

  return {
    hear,
    whole: (id) => {
      const { promise, resolve } = find(id);
      if (ended) resolve(null);
      return promise;
    },
    end: () => {
      ended = true;
      for (const { resolve } of calls.values()) resolve(null);
    },
  };
}

export type HookInput = {
  readonly tool_name: string;
  readonly tool_input: unknown;
  readonly tool_use_id: string;
  /** Present in a sub-agent, whose responses are not streamed to us. */
  readonly agent_id?: string;
};

export type HookOutput = {
  readonly hookSpecificOutput: {
    readonly hookEventName: "PreToolUse";
    readonly permissionDecision: "allow" | "deny";
    readonly permissionDecisionReason?: string;
  };
};

/**
 * `completion`: the name under which the flow knows the tool that takes the answer; null if it has no name for it.
 * `denied` hears of what is denied without the gate.
 */
export function createHook(
  gate: Gate,
  batches: Batches,
  completion: string | null,
  denied: (name: string, why: string) => void = () => undefined,
): (input: HookInput) => Promise<HookOutput> {
  const inOurWords = (name: string) => (name === ANSWER_TOOL ? (completion ?? name) : ourName(name));

  async function decide({ tool_name, tool_input, tool_use_id, agent_id }: HookInput): Promise<HookOutput> {
    const refuse = (why: string) => {
      denied(inOurWords(tool_name), why);
      return deny(why);
    };
    if (agent_id !== undefined) return refuse("Sub-agents are not offered.");
    if (!isObject(tool_input)) return refuse("The input is not an object.");
    const batch = await batches.whole(tool_use_id);
    if (batch === null) return refuse("The response broke off; nothing of it was run.");
    const names = batch.map(inOurWords);
    const isAnswer = tool_name === ANSWER_TOOL;
    if (names.length > 1 && names.includes(completion ?? ANSWER_TOOL)) {
      return refuse(
        `${completion ?? ANSWER_TOOL} must be the only tool call in its response; nothing of this response was run.`,
      );
    }
    if (isAnswer && completion === null) return allow();
    const verdict = await gate({ name: inOurWords(tool_name), input: tool_input }, names);
    return verdict.allow ? allow() : deny(verdict.reason);
  }

  return async (input) => {
    try {
      return await decide(input);
    } catch (error) {
      return deny(`The gate failed: ${errorText(error)}`);
    }
  };
}

function allow(): HookOutput {
  return answer({ permissionDecision: "allow" });
}

function deny(reason: string): HookOutput {
  return answer({ permissionDecision: "deny", permissionDecisionReason: reason });
}

function answer(decision: Omit<HookOutput["hookSpecificOutput"], "hookEventName">): HookOutput {
  return { hookSpecificOutput: { hookEventName: "PreToolUse", ...decision } };
}
