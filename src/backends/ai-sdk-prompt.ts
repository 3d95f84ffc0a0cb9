/** Our conversation in the words of the providers' common interface. */
import type {
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderMetadata,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import type { Message, TurnRequest } from "../engine/ports.ts";
import type { Call, CallResult } from "../flow/event.ts";
import { toolSchema } from "./wire-schema.ts";

/** What a model wants back with the calls it made: its thoughts, and the marks it put on each call. */
export type Keepsake = {
  /** `provider/model`: no other model can read it. */
  readonly by: string;
  readonly thoughts: readonly { readonly text: string; readonly marks: SharedV4ProviderMetadata }[];
  readonly calls: { readonly [id: string]: SharedV4ProviderMetadata };
};

export type Remembered = {
  readonly by: string;
  /** By the id of the first call of a response. */
  readonly kept: ReadonlyMap<string, Keepsake>;
  /** Ends what can be cached, where a provider has to be told. */
  readonly cacheMark?: SharedV4ProviderOptions;
};

/**
 * Every call is answered exactly once, right after it, whatever became of it: providers refuse a conversation where one
 * is not. Ids that a provider could not have given (of another model, of a script) are replaced.
 */
export function toPrompt(
  request: TurnRequest,
  { by, kept, cacheMark }: Remembered,
): LanguageModelV4Message[] {
  const { system, messages, tools } = request;
  const prompt: LanguageModelV4Message[] = [];
  if (system.trim() !== "") prompt.push({ role: "system", content: system, ...marked(cacheMark) });
  const used = new Set<string>();
  const answered = new Set<CallResult>();
  for (const [place, message] of messages.entries()) {
    switch (message.role) {
      case "user":
        prompt.push({ role: "user", content: [text(message.text)] });
        break;
      case "tool":
        for (const result of message.results) {
          if (answered.has(result)) continue;
          prompt.push({ role: "user", content: [text(`${result.name} gave: ${result.content}`)] });
        }
        break;
      case "assistant": {
        const { calls } = message;
        const keepsake = calls[0] === undefined ? undefined : kept.get(calls[0].id);
        const memory = keepsake?.by === by ? keepsake : undefined;
        const ids = calls.map(({ id }) => wireId(id, used));
        prompt.push({
          role: "assistant",
          content: [
            ...(memory?.thoughts ?? []).map((thought) => ({
              type: "reasoning" as const,
              text: thought.text,
              providerOptions: thought.marks,
            })),
            ...spoken(message),
            ...calls.map((call, at) => ({
              type: "tool-call" as const,
              toolCallId: ids[at]!,
              toolName: call.name,
              input: call.input,
              ...marked(memory?.calls[call.id]),
            })),
          ],
        });
        if (calls.length === 0) break;
        const results = resultsAfter(messages, place);
        const content = calls.map((call, at) => {
          const result = results.get(call.id);
          if (result !== undefined) answered.add(result);
          return toolResult(ids[at]!, call, result);
        });
        prompt.push({ role: "tool", content });
        break;
      }
    }
  }
  // What was said so far begins the next request too; a single question without tools has no next one.
  const goesOn = tools.length > 0 || messages.length > 1;
  const last = prompt.at(-1);
  if (cacheMark !== undefined && goesOn && last !== undefined)
    prompt[prompt.length - 1] = { ...last, ...marked(cacheMark) };
  return prompt;
}

/** The tools of the step and, last, the one that its result is given with. */
export function toTools({ tools, output }: TurnRequest): LanguageModelV4FunctionTool[] {
  const offered = tools.map(({ name, description, input }) => toTool(name, description, toolSchema(input)));
  if (output?.channel.kind !== "tool") return offered;
  const { name } = output.channel;
  const completion = toTool(
    name,
    "Call this, and nothing beside it, to give your result.",
    toolSchema(output.schema),
  );
  return [...offered.filter((tool) => tool.name !== name), completion];
}

function toTool(name: string, description: string, schema: unknown): LanguageModelV4FunctionTool {
  return {
    type: "function",
    name,
    description,
    inputSchema: schema as LanguageModelV4FunctionTool["inputSchema"],
  };
}

function spoken(message: Message & { role: "assistant" }): { type: "text"; text: string }[] {
  if (message.text.trim() !== "") return [text(message.text)];
  if (message.output !== undefined) return [text(JSON.stringify(message.output))];
  return message.calls.length > 0 ? [] : [text("")];
}

/** No provider takes a text without words. */
function text(words: string): { type: "text"; text: string } {
  return { type: "text", text: words.trim() === "" ? "(nothing)" : words };
}

/** The results of the calls made at `place`; a later response may use the same ids again. */
function resultsAfter(messages: readonly Message[], place: number): ReadonlyMap<string, CallResult> {
  const at = messages[place]!;
  const wanted = new Set(at.role === "assistant" ? at.calls.map(({ id }) => id) : []);
  const found = new Map<string, CallResult>();
  for (const message of messages.slice(place + 1)) {
    if (message.role === "assistant" && message.calls.some(({ id }) => wanted.has(id))) break;
    if (message.role !== "tool") continue;
    for (const result of message.results)
      if (wanted.has(result.id) && !found.has(result.id)) found.set(result.id, result);
    if (found.size === wanted.size) break;
  }
  return found;
}

function toolResult(
  toolCallId: string,
  { name }: Call,
  result: CallResult | undefined,
): LanguageModelV4ToolResultPart {
  const value = result === undefined ? "Received; nothing was run." : result.content || "(nothing)";
  const type = result?.ok === false ? "error-text" : "text";
  return { type: "tool-result", toolCallId, toolName: name, output: { type, value } };
}

function wireId(id: string, used: Set<string>): string {
  const wire = /^[A-Za-z0-9_-]{1,64}$/.test(id) && !used.has(id) ? id : `lockstep_${used.size + 1}`;
  used.add(wire);
  return wire;
}

function marked(providerOptions: SharedV4ProviderOptions | undefined): {
  providerOptions?: SharedV4ProviderOptions;
} {
  return providerOptions === undefined ? {} : { providerOptions };
}
