/** Oddities of model servers as data: what is sent, on whose wire, and what the user gets to see. */
import { eventsOf, KEY, type Deed, type Wire } from "../backends/model-server.ts";

export type Oddity = {
  readonly name: string;
  readonly wire: Wire;
  readonly deed: Deed;
  /** More of the model's entry in config.json. */
  readonly entry?: object;
  /** null: the run completes. */
  readonly says: string | null;
  readonly exit: 0 | 1 | 3;
  /** How often the first step was asked. */
  readonly asked: number;
  readonly waits?: readonly number[];
};

type More = Partial<Pick<Oddity, "entry" | "waits" | "exit">>;

const works = (name: string, wire: Wire, deed: Deed, more: More = {}): Oddity => ({
  name,
  wire,
  deed,
  says: null,
  exit: 0,
  asked: 1,
  ...more,
});
/** Not tried again. */
const stops = (name: string, wire: Wire, deed: Deed, says: string, more: More = {}): Oddity => ({
  name,
  wire,
  deed,
  says,
  exit: 1,
  asked: 1,
  ...more,
});
/** Waited out four times. */
const waits = (name: string, wire: Wire, deed: Deed, says: string, more: More = {}): Oddity => ({
  name,
  wire,
  deed,
  says,
  exit: 1,
  asked: 5,
  ...more,
});

const json = (status: number, body: unknown, headers: { readonly [name: string]: string } = {}): Deed => ({
  status,
  body: JSON.stringify(body),
  headers,
});
const text = (status: number, body: string, type = "text/plain"): Deed => ({
  status,
  body,
  headers: { "content-type": type },
});
const events = (...sent: readonly string[]): Deed => ({ events: () => sent });
const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
/** Half of an answer, then this event. */
const amid = (wire: Wire, event: string): Deed => ({
  text: "half of it",
  events: () => [...eventsOf(wire, { text: "half of it" }).slice(0, wire === "anthropic" ? 4 : 2), event],
});

const ANSWER = { stepId: "initial.t", next_action: { action: "next" } };
const SAID = JSON.stringify(ANSWER);
const chat = (message: object, more: object = {}) => ({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop" }],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  ...more,
});
const PAGE = "<!DOCTYPE html><html><head><title>Sign in to Café Wi-Fi</title></head><body>…</body></html>";
const PAGE_SAYS =
  'the answer is an HTML page ("Sign in to Café Wi-Fi"), probably a login or proxy page. Check the base address, and whether you have to sign in to a network first.';
const TOO_LONG =
  "The conversation is too long for this model: use one with a larger context window, or let the step read less.";
const NO_TOOLS =
  'If the model cannot call tools, add "toolCalling": false to it under "models" in your config.json.';
const NAME = "Check the name of the model; the provider lists those that it serves.";
const ollama = { provider: "ollama", model: "qwen3:8b" };

const choice = (delta: object, finish_reason: string | null = null) => ({
  id: "c",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason }],
});

const closing = { stepId: "closure.t", next_action: { action: "closing" } };
/** What follows an oddity that was understood. */
export const CLOSING = {
  streamed: { output: closing },
  whole: json(200, chat({ content: JSON.stringify(closing) })),
};

export const ODDITIES: readonly Oddity[] = [
  // Refusals, in the shapes that servers give them.
  stops(
    "OpenAI's shape",
    "openai-compatible",
    json(400, { error: { message: "Bad top_p", type: "invalid_request_error", code: null } }),
    "400 Bad top_p.",
  ),
  stops(
    "FastAPI: detail as text",
    "openai-compatible",
    json(422, { detail: "Not enough GPU memory" }),
    "422 Not enough GPU memory.",
  ),
  stops(
    "FastAPI, vLLM, SGLang: detail as a list",
    "openai-compatible",
    json(422, {
      detail: [
        { loc: ["body", "messages", 0], msg: "field required", type: "missing" },
        { loc: ["body"], msg: "odd" },
      ],
    }),
    "422 body.messages.0: field required; body: odd.",
  ),
  stops(
    "LM Studio: error as text",
    "openai-compatible",
    json(400, { error: "The model is loaded with context length of only 4096 tokens, which is not enough." }),
    `400 The model is loaded with context length of only 4096 tokens, which is not enough. ${TOO_LONG}`,
  ),
  stops(
    "TGI: error as text with a type",
    "openai-compatible",
    json(422, { error: "Input validation error: `stop` is too long", error_type: "validation" }),
    "422 Input validation error: `stop` is too long.",
  ),
  stops(
    "old vLLM: a message at the top",
    "openai-compatible",
    json(400, {
      object: "error",
      message: "This model's maximum context length is 4096 tokens.",
      type: "BadRequestError",
      code: 400,
    }),
    `400 This model's maximum context length is 4096 tokens. ${TOO_LONG}`,
  ),
  stops(
    "gateways: error and message",
    "openai-compatible",
    json(400, { statusCode: 400, error: "Bad Request", message: "no route" }),
    "400 Bad Request: no route.",
  ),
  stops(
    "gateways: JSON within a message",
    "openai-compatible",
    json(400, { message: '{"error":{"message":"inner"}}' }),
    "400 inner.",
  ),
  stops(
    "OpenRouter: what the provider behind it said",
    "openai-compatible",
    json(400, {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: { raw: '{"detail":"top_k is not allowed"}' },
      },
    }),
    "400 Provider returned error (top_k is not allowed).",
  ),
  stops(
    "a list of errors",
    "openai-compatible",
    json(400, { errors: [{ message: "one" }, { message: "two" }] }),
    "400 one; two.",
  ),
  stops(
    "Google: a list with one error",
    "google",
    json(400, [{ error: { code: 400, message: "Bad field", status: "INVALID_ARGUMENT" } }]),
    "400 Bad field.",
  ),
  stops("plain text on two lines", "anthropic", text(400, "the proxy\nsaid no"), "400 the proxy said no."),
  stops(
    "text that a terminal would obey",
    "openai",
    text(400, "\u001b[2Jcleared\u0007 \u202egnitirw"),
    "400 \\x1b[2Jcleared\\x07 \\u202egnitirw.",
  ),
  stops("an empty body", "openai-chat", text(400, ""), "400 Bad Request."),
  stops("a status that nobody knows", "openai-chat", text(418, ""), "418 I'm a Teapot."),
  stops(
    "the key is repeated",
    "google",
    json(400, { error: { message: `no ${KEY} here` } }),
    "400 no *** here.",
  ),
  stops("a page with 403", "anthropic", text(403, PAGE, "text/html"), `403 ${PAGE_SAYS}`, { exit: 3 }),
  waits(
    "a page with 502",
    "openai",
    text(502, "<html><body>Bad gateway</body></html>", "text/html"),
    "502 the answer is an HTML page, probably a login or proxy page.",
  ),
  stops(
    "a redirect",
    "anthropic",
    { ...text(308, ""), headers: { location: "https://elsewhere.example/v1?ticket=mine" } },
    "308 Permanent Redirect. Redirects are not followed (this one leads to https://elsewhere.example/v1): correct the base address.",
  ),
  stops(
    "a wrong path",
    "openai-compatible",
    text(404, "404 page not found"),
    '404 404 page not found. Check the name of the model and the base address, which usually ends with "/v1".',
  ),
  stops(
    "a server that only has the chat protocol",
    "openai",
    json(404, { detail: "Not Found" }),
    '404 Not Found. If the server only has the chat protocol, use the provider "openai-chat" or "openai-compatible".',
  ),
  stops(
    "a method that is not allowed",
    "google",
    json(405, { detail: "Method Not Allowed" }),
    '405 Method Not Allowed. Check the name of the model and the base address, which usually ends with "/v1".',
  ),
  waits("500 without a word", "anthropic", text(500, ""), "500 Internal Server Error."),
  waits(
    "an error of their own keeps its status",
    "openai-compatible",
    json(500, { error: { message: "it broke", type: "api_error" } }),
    "500 it broke.",
  ),

  // What cannot succeed is asked once, whatever it is called.
  stops(
    "Ollama: a model that is not there",
    "openai-compatible",
    json(404, {
      error: { message: 'model "qwen3:8b" not found, try pulling it first', type: "api_error", code: null },
    }),
    '404 model "qwen3:8b" not found, try pulling it first. Get the model first: ollama pull qwen3:8b',
    { entry: ollama },
  ),
  stops(
    "Ollama: a name that no shell should get",
    "openai-compatible",
    json(404, { error: { message: "model not found", type: "api_error" } }),
    `404 model not found. ${NAME}`,
    { entry: { provider: "ollama", model: "x; rm -rf ~" } },
  ),
  stops(
    "Ollama: no tools",
    "openai-compatible",
    json(400, {
      error: { message: "registry.ollama.ai/library/gemma:2b does not support tools", type: "api_error" },
    }),
    `400 registry.ollama.ai/library/gemma:2b does not support tools. ${NO_TOOLS}`,
    { entry: ollama },
  ),
  stops(
    "vLLM: no tools",
    "openai-compatible",
    json(400, {
      object: "error",
      message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
      code: 400,
    }),
    `400 "auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set. ${NO_TOOLS}`,
  ),
  stops(
    "OpenAI: no such model",
    "openai",
    json(404, {
      error: {
        message: "The model `gpt-9` does not exist",
        type: "invalid_request_error",
        code: "model_not_found",
      },
    }),
    `404 The model \`gpt-9\` does not exist. ${NAME}`,
  ),
  stops(
    "Anthropic: no such model",
    "anthropic",
    json(404, { type: "error", error: { type: "not_found_error", message: "model: claude-9" } }),
    `404 model: claude-9. ${NAME}`,
  ),
  stops(
    "Anthropic: too long",
    "anthropic",
    json(400, {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" },
    }),
    `400 prompt is too long: 210000 tokens > 200000 maximum. ${TOO_LONG}`,
  ),
  stops(
    "OpenAI: one request above the limit of the account",
    "openai",
    json(429, {
      error: {
        message: "Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 40000.",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
    }),
    "429 Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 40000. A single request is above the limit of this account: use another model, or let the step read less.",
  ),

  stops(
    "Anthropic: a parameter with a name that it refuses",
    "anthropic",
    json(400, {
      type: "error",
      error: {
        type: "invalid_request_error",
        message:
          "tools.3.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
      },
    }),
    "400 tools.3.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'. The parameters of a tool are described in a way that this provider refuses: leave that tool out of the step's allowedTools.",
  ),

  waits(
    "too many tokens for now",
    "openai-compatible",
    json(429, { message: "Too many tokens, please wait before trying again." }),
    "429 Too many tokens, please wait before trying again.",
    { exit: 3 },
  ),

  // Keys, credit and limits.
  stops(
    "a refused key",
    "anthropic",
    json(401, { type: "error", error: { type: "authentication_error", message: "invalid x-api-key" } }),
    "401 invalid x-api-key. The key is the value of SOME_KEY.",
    { exit: 3 },
  ),
  stops(
    "Anthropic: no credit",
    "anthropic",
    json(400, {
      type: "error",
      error: {
        type: "invalid_request_error",
        message: "Your credit balance is too low to access the Anthropic API.",
      },
    }),
    "400 Your credit balance is too low to access the Anthropic API. Add credit to the account of the key in SOME_KEY, or use another model.",
    { exit: 3 },
  ),
  stops(
    "OpenAI: no credit",
    "openai-chat",
    json(429, {
      error: {
        message: "You exceeded your current quota.",
        type: "insufficient_quota",
        code: "insufficient_quota",
      },
    }),
    "429 You exceeded your current quota. Add credit to the account of the key in SOME_KEY, or use another model.",
    { exit: 3 },
  ),
  stops(
    "DeepSeek: no credit",
    "openai-compatible",
    json(402, {
      error: { message: "Insufficient Balance", type: "unknown_error", code: "invalid_request_error" },
    }),
    "402 Insufficient Balance. Add credit to the account of the key in SOME_KEY, or use another model.",
    { exit: 3 },
  ),
  stops(
    "Google: a bad key",
    "google",
    json(400, {
      error: {
        code: 400,
        message: "API key not valid. Please pass a valid API key.",
        status: "INVALID_ARGUMENT",
        details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }],
      },
    }),
    "400 API key not valid. Please pass a valid API key. The key is the value of SOME_KEY.",
    { exit: 3 },
  ),
  waits(
    "Google: when to come back",
    "google",
    json(429, {
      error: {
        code: 429,
        message: "Quota exceeded",
        status: "RESOURCE_EXHAUSTED",
        details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "17.5s" }],
      },
    }),
    "429 Quota exceeded.",
    { exit: 3, waits: [17_500, 17_500, 17_500, 17_500] },
  ),
  stops(
    "Google: come back in an hour",
    "google",
    json(429, {
      error: {
        code: 429,
        message: "Quota exceeded",
        status: "RESOURCE_EXHAUSTED",
        details: [{ retryDelay: "3600s" }],
      },
    }),
    "429 Quota exceeded. It asks to wait 60 minutes, which is longer than a run waits. Resume it then.",
    { exit: 3 },
  ),
  stops(
    "a limit for 17 minutes",
    "openai",
    json(429, { error: { message: "Rate limit reached for requests" } }, { "retry-after": "1000" }),
    "429 Rate limit reached for requests. It asks to wait 17 minutes, which is longer than a run waits. Resume it then.",
    { exit: 3 },
  ),

  // Errors within a stream.
  waits(
    "an error with a status, Anthropic",
    "anthropic",
    events(data({ error: { code: 502, message: "Upstream died" } })),
    "502 Upstream died.",
  ),
  waits(
    "an error with a status, Responses",
    "openai",
    events(data({ error: { code: 502, message: "Upstream died" } })),
    "502 Upstream died.",
  ),
  waits(
    "an error beside no choices, chat",
    "openai-chat",
    events(data({ choices: [], error: { code: 502, message: "Upstream died" } })),
    "502 Upstream died.",
  ),
  waits(
    "OpenRouter: an error amid the answer",
    "openai-compatible",
    amid(
      "openai-compatible",
      data({
        id: "x",
        choices: [],
        error: { code: 502, message: "Upstream died", metadata: { raw: "EOF" } },
      }),
    ),
    "502 Upstream died (EOF).",
  ),
  waits(
    "an error amid the answer, Google",
    "google",
    amid(
      "google",
      data({ error: { code: 503, message: "The model is overloaded.", status: "UNAVAILABLE" } }),
    ),
    "503 The model is overloaded.",
    { exit: 3 },
  ),
  waits(
    "overloaded, Anthropic",
    "anthropic",
    amid(
      "anthropic",
      `event: error\n${data({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } })}`,
    ),
    "529 Overloaded.",
    { exit: 3 },
  ),
  waits(
    "a failed response, Responses",
    "openai",
    amid(
      "openai",
      data({
        type: "response.failed",
        sequence_number: 3,
        response: {
          id: "r",
          status: "failed",
          error: { code: "server_error", message: "It fell over" },
          usage: null,
        },
      }),
    ),
    "500 It fell over.",
  ),
  stops(
    "a text in the place of an error, chat",
    "openai-compatible",
    events(data({ error: "the worker died" })),
    "the worker died.",
  ),
  stops(
    "a refused key amid the answer, chat",
    "openai-compatible",
    amid("openai-compatible", data({ error: { code: 401, message: "key revoked" } })),
    "401 key revoked. The key is the value of SOME_KEY.",
    { exit: 3 },
  ),
  stops(
    "an event that is not JSON",
    "openai",
    events("data: {oops\n\n"),
    "the server sent something that is not in the provider's format: {oops.",
  ),
  stops(
    "an event of another protocol",
    "google",
    events(data({ candidates: "none" })),
    'the server sent something that is not in the provider\'s format: {"candidates":"none"}.',
  ),

  stops(
    "a refusal that is sent as an event",
    "openai-compatible",
    text(400, ': ping\n\nevent: error\ndata: {"error":{"message":"no such voice"}}\n\n', "text/event-stream"),
    "400 no such voice.",
  ),

  // Documents where a stream was asked for.
  stops("a page with 200", "openai-compatible", text(200, PAGE, "text/html"), PAGE_SAYS),
  stops("a page that says it is a stream", "google", events(PAGE), PAGE_SAYS),
  stops(
    "LM Studio: a wrong path with 200",
    "openai-compatible",
    json(200, { error: "Unexpected endpoint or method. (POST /chat/completions)" }),
    "Unexpected endpoint or method. (POST /chat/completions).",
  ),
  stops(
    "JSON lines",
    "openai-compatible",
    text(200, '{"message":{"content":"a"}}\n{"message":{"content":"b"}}', "application/x-ndjson"),
    'the server sent something that is not in the provider\'s format: {"message":{"content":"a"}} {"message":{"content":"b"}}.',
  ),
  stops(
    "another document",
    "openai-chat",
    json(200, { ok: true }),
    'the server sent something that is not in the provider\'s format: {"ok":true}.',
  ),
  works("no streaming, chat", "openai-compatible", json(200, chat({ content: SAID }))),
  works(
    "no streaming, and a word of success beside the answer",
    "openai-compatible",
    json(200, chat({ content: SAID }, { code: 0, message: "success", error: "" })),
  ),
  works("no streaming, OpenAI's chat", "openai-chat", json(200, chat({ content: SAID }))),
  works(
    "no streaming, Responses",
    "openai",
    json(200, {
      id: "r",
      created_at: 1,
      model: "m",
      output: [
        {
          type: "message",
          role: "assistant",
          id: "m1",
          content: [{ type: "output_text", text: SAID, annotations: [] }],
        },
      ],
      usage: { input_tokens: 10, output_tokens: 5 },
    }),
  ),
  works(
    "no streaming, Anthropic",
    "anthropic",
    json(200, {
      id: "m",
      type: "message",
      role: "assistant",
      model: "m",
      content: [{ type: "text", text: SAID }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 5 },
    }),
  ),
  works(
    "no streaming, Google",
    "google",
    json(200, {
      candidates: [{ content: { role: "model", parts: [{ text: SAID }] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5 },
    }),
  ),
  works("asked not to stream", "openai-compatible", json(200, chat({ content: SAID })), {
    entry: { stream: false },
  }),
  stops(
    "asked not to stream, and a page comes",
    "openai-compatible",
    text(200, PAGE, "text/html"),
    PAGE_SAYS,
    { entry: { stream: false } },
  ),
  stops(
    "asked not to stream, and an error comes with 200",
    "openai-compatible",
    json(200, { error: "no such route" }),
    "no such route.",
    { entry: { stream: false } },
  ),

  // How a response ends.
  stops(
    "Anthropic: the context window is full",
    "anthropic",
    {
      events: () =>
        eventsOf("anthropic", { text: "half", stop: "length" }).map((event) =>
          event.replace('"max_tokens"', '"model_context_window_exceeded"'),
        ),
    },
    "the conversation and the response fill the context window of the model. Use a model with a larger one, or let the step read less.",
  ),
  stops(
    "cut off at its length",
    "openai-chat",
    { text: "half", stop: "length" },
    'the response was cut off at 20 tokens. Raise "maxOutputTokens" of this model in your config.json, or ask for less at once.',
  ),
  stops(
    "a refusal",
    "anthropic",
    { text: "I will not.", stop: "refusal" },
    "the model refused to answer (refusal). I will not.",
  ),
  stops(
    "Google: blocked for safety",
    "google",
    { text: "", stop: "refusal" },
    "the model refused to answer (SAFETY).",
  ),
  stops(
    "Google: recitation",
    "google",
    {
      events: () => [
        data({ candidates: [{ content: { role: "model", parts: [] }, finishReason: "RECITATION" }] }),
      ],
    },
    "the model refused to answer (RECITATION).",
  ),
  waits(
    "chat: no reason for the end, and no end",
    "openai-compatible",
    events(data(choice({ content: SAID }))),
    "the response broke off.",
  ),
  works(
    "chat: no reason for the end, but an end",
    "openai-compatible",
    events(data(choice({ content: SAID })), "data: [DONE]\n\n"),
  ),
  waits(
    "an end without an answer",
    "openai-compatible",
    events("data: [DONE]\n\n"),
    "the response broke off.",
  ),
  waits("nothing at all", "openai-compatible", events("\n"), "the response broke off."),

  // Odd, and understood.
  works(
    "comments to keep the connection alive",
    "openai-compatible",
    events(
      ": ping\n\n",
      ": OPENROUTER PROCESSING\n\n",
      data(choice({ content: SAID })),
      data(choice({}, "stop")),
      "data: [DONE]\n\n",
    ),
  ),
  works("lines that end with CRLF", "openai-chat", {
    output: ANSWER,
    events: (all) => all.map((event) => event.replaceAll("\n", "\r\n")),
  }),
  works("empty lines first", "openai-compatible", {
    output: ANSWER,
    events: (all) => ["\n\n", "  \n", ...all],
  }),
  works("a byte order mark first", "openai-compatible", {
    output: ANSWER,
    events: (all) => ["\uFEFF", ...all],
  }),
  works("a byte at a time", "google", { output: ANSWER, events: (all) => Array.from(all.join("")) }),
  works("a stream that says it is JSON", "openai-compatible", {
    output: ANSWER,
    headers: { "content-type": "application/json" },
  }),
  works("no end mark", "openai-compatible", {
    output: ANSWER,
    events: (all) => all.filter((event) => !event.includes("[DONE]")),
  }),
  works("no usage", "openai-compatible", {
    output: ANSWER,
    events: (all) => all.filter((event) => !event.includes('"usage"')),
  }),
  works("an empty list of choices first", "openai-chat", {
    output: ANSWER,
    events: (all) => [
      data({ id: "c", created: 1, model: "", choices: [], prompt_filter_results: [] }),
      ...all,
    ],
  }),
  works("thoughts under another name", "openai-compatible", {
    output: ANSWER,
    events: (all) => [data(choice({ reasoning: "hm" })), ...all],
  }),
  works("pings and unknown events", "anthropic", {
    output: ANSWER,
    events: (all) => all.flatMap((event) => [event, `event: ping\n${data({ type: "ping" })}`]),
  }),
];
