/** Which tools a client is offered: one for each agent that may run, one for those that may not yet, and the fixed ones. */
import { hasErrors } from "../flow/problem.ts";
import { shownInLine } from "../flow/text/harmless.ts";
import { commandLines } from "../run/trust/trust.ts";
import { untrusted } from "../serve/trusting.ts";
import { descriptionOf, whyHeldBack, inputSchemaOf, agentToolNames } from "./agent-tools.ts";
import { plainText } from "./fit.ts";
import { documentAnswer, type McpGround, type McpTool } from "./ground.ts";
import { LOOK_TOOLS } from "./look-tools.ts";
import { callAgent, objectSchema, runTools, trustWords } from "./run-tools.ts";

const TRUST_TOOL = "trust_needed";

/** Also those that are not offered at the moment: the name of an agent's tool must not depend on that. */
const FIXED: ReadonlySet<string> = new Set([
  TRUST_TOOL,
  "run_wait",
  "run_stop",
  "run_resume",
  "answer",
  ...LOOK_TOOLS.map(({ name }) => name),
]);

export async function offeredTools(ground: McpGround, canAsk: boolean): Promise<readonly McpTool[]> {
  const offered: McpTool[] = [];
  const held: string[] = [];
  for (const [name, agent] of agentToolNames(ground.agents.names(), FIXED, ground.redact)) {
    const tool = await agentTool(ground, name, agent);
    if (tool === "untrusted") held.push(agent);
    else if (tool !== null) offered.push(tool);
  }
  const trust = held.length === 0 ? [] : [trustTool(held, ground.redact)];
  return [...offered, ...trust, ...fixedTools(ground, canAsk)];
}

/** One of them, without looking at the others; undefined: it is not offered. */
export async function toolNamed(
  ground: McpGround,
  canAsk: boolean,
  name: string,
): Promise<McpTool | undefined> {
  const agent = agentToolNames(ground.agents.names(), FIXED, ground.redact).get(name);
  if (agent !== undefined) {
    const tool = await agentTool(ground, name, agent);
    return tool === "untrusted" || tool === null ? undefined : tool;
  }
  const tools = name === TRUST_TOOL ? await offeredTools(ground, canAsk) : fixedTools(ground, canAsk);
  return tools.find((tool) => tool.name === name);
}

function fixedTools(ground: McpGround, canAsk: boolean): readonly McpTool[] {
  return [...runTools(ground, canAsk), ...LOOK_TOOLS];
}

/** null: the agent has errors and cannot run; `findings` says why. */
async function agentTool(
  ground: McpGround,
  name: string,
  agent: string,
): Promise<McpTool | "untrusted" | null> {
  const { agents, parametersOf, settings, redact } = ground;
  const { flow, problems } = await agents.load(agent);
  if (flow === null || hasErrors(problems)) return null;
  if ((await untrusted(flow, ground)) !== null) return "untrusted";
  const startable = { flow, parameters: parametersOf(flow) };
  const hidden = whyHeldBack(startable, redact);
  return {
    name,
    title: plainText(shownInLine(redact(flow.title), 80)),
    description: hidden ?? descriptionOf(flow, redact),
    // A call of it is refused with the reason.
    inputSchema: hidden === null ? inputSchemaOf(startable, settings.waitSeconds, redact) : objectSchema({}),
    isLook: false,
    call: async (call) => await callAgent(agent, call, ground),
  };
}

/** It only says what has to be done: trust is given by the user, in a terminal. */
function trustTool(held: readonly string[], redact: McpGround["redact"]): McpTool {
  const names = redact(held)
    .map((agent) => plainText(shownInLine(agent, 80)))
    .join(", ");
  return {
    name: TRUST_TOOL,
    title: "Agents that need trust",
    description:
      `Not offered, because the user has not trusted their files: ${shownInLine(names, 600)}. Lists what these files ` +
      "make Lockstep do, and the command that the user types in a terminal. It cannot be done from here.",
    inputSchema: objectSchema({}),
    isLook: true,
    call: async (_call, ground) => {
      const agents = [];
      for (const agent of held) {
        const { flow } = await ground.agents.load(agent);
        const question = flow === null ? null : await untrusted(flow, ground);
        if (question === null) continue;
        const { root, commands, change } = question;
        agents.push({ agent, root, does: commandLines(commands, change), next: trustWords(agent, ground) });
      }
      const all = "Every agent of this project is trusted now: ask for the list of tools again.";
      return documentAnswer(
        { v: 1, agents },
        agents.length === 0 ? all : agents.map(({ next }) => next).join("\n"),
      );
    },
  };
}
