/** What the user's config.json may hold: the table behind its JSON Schema, and the keys that are read. */
import { EFFORTS, PROVIDERS } from "../../backends/ai-sdk/providers.ts";
import { LIMIT_FIELDS } from "../../flow/spending.ts";
import { anything, flag, group, list, map, number, object, text } from "../../flow/shape.ts";
import { toJsonSchema } from "../../flow/shape.ts";
import { NOTICE_KINDS } from "../../tell/notice.ts";
import { BACKENDS, type BackendRow } from "./backend-table.ts";

const ADDRESS = "^https?://";

/** How requests to a model are sent. The same keys are read for a provider and for a model, which comes first. */
const WIRE_FIELDS = {
  baseUrl: text("The address of the server, with http:// or https://.", { pattern: ADDRESS }),
  apiKeyEnv: text("The name of an environment variable that holds the key, never the key itself.", {
    pattern: "^\\w+$",
  }),
  maxOutputTokens: number("The maximum length of a response.", { min: 1, integer: true }),
  timeoutMs: number("How long a connection may be silent before a request is aborted.", {
    min: 1,
    integer: true,
  }),
  toolCalling: flag("false: the model cannot call tools, and is not offered any."),
  stream: flag("false: the response is not streamed; timeoutMs must then cover the whole response."),
  temperature: number("Sent unchanged. Many reasoning models reject or ignore it.", { min: 0 }),
  reasoningEffort: text("How much the model reasons before it answers.", { enum: EFFORTS }),
  headers: map(
    "Headers of each request; ${NAME} is a variable of your environment.",
    text("The value of the header."),
  ),
  extraBody: anything("Members that are merged into the JSON body of each request.", { types: ["object"] }),
};

export const WIRE = object("Models of the provider.", WIRE_FIELDS);

export const MODEL = object("A model and its settings.", {
  provider: text("Whose protocol it speaks.", { required: true, enum: Object.keys(PROVIDERS) }),
  model: text("The provider's name for the model.", { required: true, filled: true }),
  ...WIRE_FIELDS,
});

const PRICE = object("A price.", {
  input: number("Dollars for a million tokens of input.", { required: true, min: 0 }),
  output: number("Dollars for a million tokens of output.", { required: true, min: 0 }),
  cacheRead: number("Dollars for a million tokens that are read from the cache.", { min: 0 }),
  cacheWrite: number("Dollars for a million tokens that are written to the cache.", { min: 0 }),
  upTo: number("The input tokens of a request up to which these figures hold.", { min: 0 }),
  maxOutput: number("The longest response of the model, in tokens.", { min: 0 }),
});

const HOSTS = { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] };

/** The programs that backends start, by the id of the backend. */
export const PROGRAMS = Object.fromEntries(
  Object.entries(BACKENDS).flatMap(([id, { program }]) => (program ? [[id, programForm(program)]] : [])),
);

function programForm({ about, timeoutMs }: NonNullable<BackendRow["program"]>) {
  const time = `How long it may take to answer, ${timeoutMs} unless set.`;
  return object(about, {
    command: text("The program.", { required: true, filled: true }),
    args: list("Its arguments.", text("An argument.")),
    pass: list("Additional environment variables for it.", text("A name.")),
    ...(timeoutMs !== undefined && { timeoutMs: number(time, { min: 1, integer: true }) }),
  });
}

export const NOTIFY = object("A target of notices.", {
  webhook: text("The address that a notice is sent to, with https://.", { filled: true }),
  secretEnv: text("The name of an environment variable that holds the key of signatures.", {
    pattern: "^\\w+$",
  }),
  command: list("A program and its arguments; {text}, {kind} and {run} are replaced.", text("A word.")),
  pass: list("Additional environment variables for the command.", text("A name.")),
  on: list("Which notices it gets; all unless set.", text("A kind.", { enum: NOTICE_KINDS })),
});

export const CONFIG = group("Your own settings: lockstep/config.json in your config folder.", {
  models: map(
    "Model names: another name, provider/model, or a model with its settings.",
    anything("A model.", { schema: { anyOf: [{ type: "string", minLength: 1 }, toJsonSchema(MODEL)] } }),
  ),
  providers: anything("Request settings for all models of a provider.", {
    schema: {
      type: "object",
      propertyNames: { enum: Object.keys(PROVIDERS) },
      additionalProperties: toJsonSchema(WIRE),
    },
  }),
  prices: map("Prices by provider/model, before those of Lockstep.", PRICE),
  defaultBackend: text("The default backend of runs.", { default: "ai-sdk" }),
  ...PROGRAMS,
  sandbox: text("Whether commands run in a sandbox.", { enum: ["on", "off", "auto"], default: "auto" }),
  network: anything("What sandboxed commands may connect to: none, usual, all, or a list of hosts.", {
    schema: HOSTS,
  }),
  env: list("Additional environment variables for commands.", text("A name.")),
  limits: object("The maximum that any run may spend.", {
    ...LIMIT_FIELDS,
    unmetered: flag("true: run even if a token or cost limit cannot be enforced."),
  }),
  notify: map("Who is notified of runs, by a name of your choice: a webhook or a command.", NOTIFY),
  fleet: object("What a worker of a fleet does on this machine.", {
    concurrency: number("How many runs it drives at the same time, 10 unless set.", {
      min: 1,
      integer: true,
    }),
    queues: list("The queues that it takes runs from, runs unless set.", text("A name.")),
    work: text("The folder for the files of runs, lockstep-work below your cache folder unless set.", {
      filled: true,
    }),
    leaseSeconds: number(
      "After how many seconds without a sign of life others get its runs: 30, and 10 at least.",
      {
        min: 10,
        integer: true,
      },
    ),
    stretchHours: number("After how many hours a run is given back to the queue, 6 unless set, 20 at most.", {
      min: 0,
    }),
    groups: map(
      "How many runs of a group may be driven at once, over all workers; default: of any other group.",
      number("How many.", { min: 1, integer: true }),
    ),
    repositories: list(
      "Addresses that it fetches files of runs from, with * for any characters but /; any https or ssh address unless set.",
      text("An address."),
    ),
    trust: anything('Whose commands it runs: "submitted" (what a submitter trusted), or a list of digests.', {
      schema: { anyOf: [{ const: "submitted" }, { type: "array", items: { type: "string" } }] },
    }),
  }),
  safeFolders: list("Folders of other users that may contain your projects.", text("A folder.")),
});
