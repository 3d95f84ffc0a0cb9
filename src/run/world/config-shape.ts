/** What the user's config.json may hold: the table behind its JSON Schema, and the keys that are read. */
import { EFFORTS, PROVIDERS } from "../../backends/ai-sdk/providers.ts";
import { LIMIT_FIELDS } from "../../load/agent/spending.ts";
import {
  anything,
  flag,
  group,
  list,
  map,
  number,
  object,
  text,
  toJsonSchema,
} from "../../load/text/shape.ts";

const ADDRESS = "^https?://";

/** How requests to a model are sent. The same keys are read for a provider and for a model, which comes first. */
const WIRE_FIELDS = {
  baseUrl: text("The address of the server, with http:// or https://.", { pattern: ADDRESS }),
  apiKeyEnv: text("The environment variable that holds the key; never the key itself.", {
    pattern: "^\\w+$",
  }),
  maxOutputTokens: number("The longest response that is asked for.", { min: 1, integer: true }),
  timeoutMs: number("Silence on the connection after which a request is given up.", {
    min: 1,
    integer: true,
  }),
  toolCalling: flag("false: the model cannot call tools, and is not offered any."),
  stream: flag(
    "false: the whole response is asked for at once; timeoutMs then has to be long enough for all of it.",
  ),
  temperature: number("Sent as it is. Many reasoning models refuse or ignore it.", { min: 0 }),
  reasoningEffort: text("How much the model reasons before it answers.", { enum: EFFORTS }),
  headers: map(
    "Headers of each request; ${NAME} stands for a variable of your environment.",
    text("The value of the header."),
  ),
  extraBody: anything("Members that are merged into the JSON body of each request.", { types: ["object"] }),
};

const MODEL_FIELDS = {
  provider: text("Whose protocol it speaks.", { required: true, enum: Object.keys(PROVIDERS) }),
  model: text("The provider's own name of the model.", { required: true, filled: true }),
  ...WIRE_FIELDS,
};
const MODEL = object("A model and how it is asked.", MODEL_FIELDS);

const PRICE_FIELDS = {
  input: number("Dollars for a million tokens of input.", { required: true, min: 0 }),
  output: number("Dollars for a million tokens of output.", { required: true, min: 0 }),
  cacheRead: number("Dollars for a million tokens that are read from the cache.", { min: 0 }),
  cacheWrite: number("Dollars for a million tokens that are written to the cache.", { min: 0 }),
  upTo: number("The input tokens of a request up to which these figures hold.", { min: 0 }),
  maxOutput: number("The longest response of the model, in tokens.", { min: 0 }),
};

const HOSTS = { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] };

const CONFIG_FIELDS = {
  models: map(
    "Names of models: another name, provider/model, or how the model is asked.",
    anything("A model.", { schema: { anyOf: [{ type: "string", minLength: 1 }, toJsonSchema(MODEL)] } }),
  ),
  providers: anything("How requests are sent to all models of a provider.", {
    schema: {
      type: "object",
      propertyNames: { enum: Object.keys(PROVIDERS) },
      additionalProperties: toJsonSchema(object("Models of the provider.", WIRE_FIELDS)),
    },
  }),
  prices: map("Prices by provider/model, before those of Lockstep.", object("A price.", PRICE_FIELDS)),
  defaultBackend: text("The backend of runs that name none.", { default: "ai-sdk" }),
  acp: object("The coding agent that the backend acp starts.", {
    command: text("The program.", { required: true, filled: true }),
    args: list("Its arguments.", text("An argument.")),
    pass: list("Environment variables that it gets beside the usual ones.", text("A name.")),
  }),
  sandbox: text("Whether commands are confined.", { enum: ["on", "off", "auto"], default: "auto" }),
  network: anything("What confined commands may reach: none, usual, all, or a list of hosts.", {
    schema: HOSTS,
  }),
  env: list("Environment variables that commands get beside the usual ones.", text("A name.")),
  limits: object("What any run may spend at the most.", {
    ...LIMIT_FIELDS,
    unmetered: flag("true: runs go on although a limit on tokens or cost cannot be checked."),
  }),
  safeFolders: list("Folders of other users that may hold your projects.", text("A folder.")),
};

export const CONFIG = group("Your own settings: lockstep/config.json in your config folder.", CONFIG_FIELDS);

export const CONFIG_KEYS = Object.keys(CONFIG_FIELDS);
export const MODEL_KEYS = Object.keys(MODEL_FIELDS);
export const WIRE_KEYS = Object.keys(WIRE_FIELDS);
export const FIGURES = Object.keys(PRICE_FIELDS);
