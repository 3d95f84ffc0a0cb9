/** Our conversation in the words of the providers' common interface. */
import type {
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderMetadata,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import type { Message, TurnRequest } from "../../engine/ports.ts";
import type { CallResult } from "../../flow/event.ts";
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
  /** Ends what can be cached, where a provider needs a mark. */
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
  const { wire } = toolNames(request);
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
              toolName: wire(call.name),
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
          return toolResult(ids[at]!, wire(call.name), result);
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
export function toTools(request: TurnRequest): LanguageModelV4FunctionTool[] {
  const { tools, output } = request;
  const { wire } = toolNames(request);
  const offered = tools.map(({ name, description, input }) =>
    toTool(wire(name), description, toolSchema(input)),
  );
  if (output?.channel.kind !== "tool") return offered;
  const name = wire(output.channel.name);
  const completion = toTool(
    name,
    "Call this, and nothing beside it, to give your result.",
    toolSchema(output.schema),
  );
  return [...offered.filter((tool) => tool.name !== name), completion];
}

/** The names of tools as every provider takes them, and back: `docs.search/all` → `docs_search_all`. */
export function toolNames({ tools, output }: TurnRequest): {
  readonly wire: (name: string) => string;
  readonly ours: ReadonlyMap<string, string>;
} {
  const names = new Set(tools.map(({ name }) => name));
  if (output?.channel.kind === "tool") names.add(output.channel.name);
  const taken = new Set([...names].filter((name) => TAKEN_BY_ALL.test(name)));
  const mapped = new Map<string, string>();
  for (const name of names) {
    if (TAKEN_BY_ALL.test(name)) continue;
    const plain = plainName(name);
    let wire = plain;
    for (let count = 2; taken.has(wire); count += 1) wire = `${plain.slice(0, 60)}_${count}`;
    taken.add(wire);
    mapped.set(name, wire);
  }
  return {
    // A call of a tool that is not offered any more keeps its place in the conversation.
    wire: (name) => mapped.get(name) ?? (TAKEN_BY_ALL.test(name) ? name : plainName(name)),
    ours: new Map([...mapped].map(([name, wire]) => [wire, name])),
  };
}

/** Google wants a letter or `_` first; the others take up to 64 of these characters. */
const TAKEN_BY_ALL = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

function plainName(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64);
  return TAKEN_BY_ALL.test(plain) ? plain : `_${plain.slice(0, 63)}`;
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
  toolName: string,
  result: CallResult | undefined,
): LanguageModelV4ToolResultPart {
  const value = result === undefined ? "Received; nothing was run." : result.content || "(nothing)";
  const type = result?.ok === false ? "error-text" : "text";
  return { type: "tool-result", toolCallId, toolName, output: { type, value } };
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
