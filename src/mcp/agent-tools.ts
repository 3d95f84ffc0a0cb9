/** An agent as a tool: its name, what is said of it, and the schema of what it takes. Pure. */
import { createHash } from "node:crypto";
import type { Flow, Parameter } from "../flow/flow.ts";
import type { Json, JsonObject } from "../flow/json.ts";
import { shownInLine } from "../flow/text/harmless.ts";
import { takesInput, type Startable } from "../serve/command-line.ts";
import { holdsRedacted } from "../flow/text/redacted.ts";
import { plainJson, plainText } from "./fit.ts";

/** Takes secrets out of what is sent. Texts go through it before they are cut: half a secret would not be recognised. */
export type Redact = <T>(value: T) => T;

/** Clients put the name of the server before it, and models take 64 characters at most. */
const LONGEST_NAME = 44;

/**
 * The tool of each agent, by its name. Names hold letters, digits, `_` and `-`; one that is taken, or had to be changed,
 * ends with a digest of the agent's own name, so that it stays the same whatever other agents there are.
 */
export function agentToolNames(
  agents: readonly string[],
  taken: ReadonlySet<string>,
  redact: Redact,
): ReadonlyMap<string, string> {
  return new Map(agents.map((agent) => [toolNameOf(agent, taken, redact), agent]));
}

function toolNameOf(agent: string, taken: ReadonlySet<string>, redact: Redact): string {
  const plain = redact(agent).replaceAll(/[^A-Za-z0-9_-]/g, "_");
  if (plain === agent && agent.length <= LONGEST_NAME && !taken.has(agent)) return agent;
  const digest = createHash("sha256").update(agent).digest("hex").slice(0, 6);
  return `${plain.slice(0, LONGEST_NAME - 7)}-${digest}`;
}

/** What a call of an agent's tool asked for. */
export type AgentArguments = {
  readonly args: JsonObject;
  readonly input?: Json | undefined;
  readonly wait?: Json | undefined;
};

type Special = { readonly input: string | null; readonly wait: string };

/** The names of what is not a parameter; where a parameter has the name, it keeps it. */
function specialNames({ flow, parameters }: Startable): Special {
  const free = (name: string) => (parameters.some((one) => one.name === name) ? `lockstep_${name}` : name);
  return { input: takesInput(flow) ? free("input") : null, wait: free("wait") };
}

export function agentArguments(agent: Startable, given: JsonObject): AgentArguments {
  const { input, wait } = specialNames(agent);
  const args = Object.entries(given).filter(([name]) => name !== input && name !== wait);
  return {
    args: Object.fromEntries(args),
    ...(input !== null && { input: given[input] }),
    wait: given[wait],
  };
}

/** Seconds that a call may ask to be waited for. */
export const LONGEST_WAIT = 86_400;

export function waitSchema(otherwise: number): JsonObject {
  return {
    type: "number",
    minimum: 0,
    maximum: LONGEST_WAIT,
    description:
      `Seconds to wait for the end of the run (default: ${otherwise}). A run that takes longer goes on, and the ` +
      "answer has its id for run_wait. 0: do not wait.",
  };
}

export function inputSchemaOf(agent: Startable, waitSeconds: number, redact: Redact): JsonObject {
  const { input, wait } = specialNames(agent);
  const { flow } = agent;
  const parameters = redact(agent.parameters);
  const needed = parameters.filter(({ required }) => required);
  return {
    type: "object",
    properties: {
      ...Object.fromEntries(parameters.map((parameter) => [parameter.name, schemaOf(parameter)])),
      ...(input !== null && {
        [input]: { type: "string", description: "The text that the agent works on." },
      }),
      [wait]: waitSchema(waitSeconds),
    },
    ...(needed.length > 0 && { required: needed.map(({ name }) => name) }),
    additionalProperties: flow.openArguments === true,
  };
}

function schemaOf({ type, description, default: otherwise, validation = {} }: Parameter): JsonObject {
  const { min, max, pattern, enum: values } = validation;
  return {
    type,
    ...(description !== "" && { description: described(description) }),
    ...(otherwise !== undefined && !isHidden(otherwise) && { default: otherwise }),
    ...(values !== undefined && { enum: values }),
    ...(pattern !== undefined && !isHidden(pattern) && { pattern }),
    ...boundsOf(type, min, max),
  };
}

/** A default that the client does not know is still used, and a pattern is judged again when the run is started. */
function isHidden(value: Json): boolean {
  return holdsRedacted(JSON.stringify(value));
}

/**
 * Why a client is not given this agent; null: nothing in it is hidden. What a call has to repeat exactly cannot be spelled
 * out, so an agent that hides something there does not start.
 */
export function whyHeldBack({ flow, parameters }: Startable, redact: Redact): string | null {
  for (const { name, default: otherwise, validation = {} } of parameters) {
    const exact = { name, default: otherwise, enum: validation.enum, pattern: validation.pattern };
    const hidden = Object.entries(exact).find(
      ([, value]) => value !== undefined && JSON.stringify(plainJson(value)) !== JSON.stringify(value),
    );
    if (hidden === undefined) continue;
    return (
      `The Lockstep agent "${described(redact(flow.agent))}" cannot be started from here: the ${hidden[0]} of its parameter ` +
      `"${described(redact(name))}" holds characters that cannot be seen: ${described(JSON.stringify(redact(hidden[1])))}. ` +
      "Remove them from the files of the agent, or start it in a terminal."
    );
  }
  return null;
}

/** What `min` and `max` bound depends on the type. */
function boundsOf(type: Parameter["type"], min?: number, max?: number): JsonObject {
  const [least, most] =
    type === "string"
      ? ["minLength", "maxLength"]
      : type === "array"
        ? ["minItems", "maxItems"]
        : ["minimum", "maximum"];
  return { ...(min !== undefined && { [least]: min }), ...(max !== undefined && { [most]: max }) };
}

const LONGEST_DESCRIPTION = 800;

/** What a file says, on one line: it is data for the reader of the list of tools. */
function described(text: string): string {
  return plainText(shownInLine(text, LONGEST_DESCRIPTION));
}

export function descriptionOf(flow: Flow, redact: Redact): string {
  const said = described(redact(flow.description));
  return (
    `Starts a run of the Lockstep agent "${described(redact(flow.agent))}" of this project and waits for its end. ` +
    (said === "" ? "" : `Its file describes it as: ${JSON.stringify(said)}`)
  ).trim();
}
