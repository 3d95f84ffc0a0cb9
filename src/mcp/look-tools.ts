/** Tools that only look: runs, why they went as they did, and what the agents are. */
import type { JsonObject } from "../flow/json.ts";
import { onlyMembers, required, textMember, wordMember } from "../serve/body.ts";
import { RequestRefusal } from "../serve/refusal.ts";
import { LEVELS } from "../tell/log-line.ts";
import { GRAPH_FORMATS, documentAnswer, type McpGround, type McpTool, type McpAnswer } from "./ground.ts";
import * as looks from "./looks.ts";
import { objectSchema, RUN_PROPERTY } from "./run-tools.ts";

const AGENT_PROPERTY = { type: "string", description: "The name of an agent of this project." } as const;
const FROM_PROPERTY = {
  type: "integer",
  minimum: 0,
  description: "Begin with this line, counted from 0 (default: the newest lines).",
} as const;

export const LOOK_TOOLS: readonly McpTool[] = [
  look("runs", "List runs", "The newest runs of this project: agent, state, arguments, cost.", {
    properties: { agent: AGENT_PROPERTY, limit: { type: "integer", minimum: 1, maximum: looks.MOST_RUNS } },
    answer: async (ground, args) =>
      await looks.runsSeen(ground, {
        agent: textMember(args, "agent"),
        limit: numberMember(args, "limit") ?? 20,
      }),
  }),
  look("show", "Show a run", "The whole report of a run: path, checks, effects, hand-offs, cost by step.", {
    properties: { run: RUN_PROPERTY },
    answer: async (ground, args) => await looks.runSeen(ground, runIn(args)),
  }),
  look("result", "Result of a run", "Only what a run made.", {
    properties: { run: RUN_PROPERTY },
    answer: async (ground, args) => await looks.resultSeen(ground, runIn(args)),
  }),
  look(
    "why",
    "Why a step went this way",
    "The chain behind one decision of a run: prompt, answer, checks, route.",
    {
      properties: {
        run: RUN_PROPERTY,
        step: { type: "string", description: "STEP or STEP@VISIT (default: the last one)." },
      },
      answer: async (ground, args) => await looks.whySeen(ground, runIn(args), textMember(args, "step")),
    },
  ),
  look(
    "logs",
    "Log of a run",
    "What happened in a run, line by line; or with transcript, the conversation.",
    {
      properties: {
        run: RUN_PROPERTY,
        level: { enum: [...LEVELS] },
        transcript: { type: "boolean" },
        from: FROM_PROPERTY,
      },
      answer: async (ground, args) => {
        const from = numberMember(args, "from");
        if (args.transcript === true) return await looks.transcriptSeen(ground, runIn(args), from);
        return await looks.logSeen(ground, runIn(args), { level: wordMember(args, "level", LEVELS), from });
      },
    },
  ),
  look("questions", "Open questions", "What runs wait to have answered by a person.", {
    properties: { run: { ...RUN_PROPERTY, description: `${RUN_PROPERTY.description} Absent: all runs.` } },
    answer: async (ground, args) => await looks.questionsSeen(ground, textMember(args, "run")),
  }),
  look("findings", "Check the agents", "What `lockstep check` finds in the files of one agent, or of all.", {
    properties: { agent: AGENT_PROPERTY },
    answer: async (ground, args) => await looks.findingsSeen(ground, textMember(args, "agent")),
  }),
  look("graph", "Draw an agent", "The steps of an agent and the ways between them.", {
    properties: { agent: AGENT_PROPERTY, format: { enum: [...GRAPH_FORMATS] } },
    needed: ["agent"],
    answer: async (ground, args) => {
      const agent = required(textMember(args, "agent"), "agent");
      return await looks.graphSeen(ground, agent, wordMember(args, "format", GRAPH_FORMATS) ?? "mermaid");
    },
  }),
];

type Looking = {
  readonly properties: JsonObject;
  readonly needed?: readonly string[];
  readonly answer: (ground: McpGround, args: JsonObject) => Promise<object>;
};

/** A tool about a run needs to be given it, unless all runs are meant. */
function look(name: string, title: string, description: string, looking: Looking): McpTool {
  const { properties, answer } = looking;
  const needed = looking.needed ?? ("run" in properties && name !== "questions" ? ["run"] : []);
  return {
    name,
    title,
    description,
    inputSchema: objectSchema(properties, needed),
    isLook: true,
    call: async ({ args }, ground): Promise<McpAnswer> => {
      onlyMembers(args, Object.keys(properties));
      return documentAnswer(await answer(ground, args));
    },
  };
}

function runIn(args: JsonObject): string {
  return required(textMember(args, "run"), "run");
}

function numberMember(args: JsonObject, name: string): number | undefined {
  const { [name]: value } = args;
  if (value === undefined || (typeof value === "number" && Number.isSafeInteger(value) && value >= 0))
    return value;
  throw new RequestRefusal(400, "USAGE", `"${name}" must be a whole number.`, { field: name });
}
