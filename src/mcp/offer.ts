/** Which tools a client is offered: one for each agent that may run, one for those that may not yet, and the fixed ones. */
import { hasErrors } from "../flow/problem.ts";
import { shownInLine } from "../flow/text/harmless.ts";
import { commandLines } from "../run/trust/trust.ts";
import { untrusted } from "../studio/trusting.ts";
import { descriptionOf, inputSchemaOf, agentToolNames } from "./agent-tools.ts";
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
  const { agents, parametersOf, settings } = ground;
  const offered: McpTool[] = [];
  const held: string[] = [];
  for (const [name, agent] of agentToolNames(agents.names(), FIXED)) {
    const { flow, problems } = await agents.load(agent);
    // An agent with errors cannot run: `findings` says why.
    if (flow === null || hasErrors(problems)) continue;
    if ((await untrusted(flow, ground)) !== null) {
      held.push(agent);
      continue;
    }
    const startable = { flow, parameters: parametersOf(flow) };
    offered.push({
      name,
      title: plainText(shownInLine(flow.title, 80)),
      description: descriptionOf(flow),
      inputSchema: inputSchemaOf(startable, settings.waitSeconds),
      isLook: false,
      call: async (call) => await callAgent(agent, call, ground),
    });
  }
  const trust = held.length === 0 ? [] : [trustTool(held)];
  return [...offered, ...trust, ...runTools(ground, canAsk), ...LOOK_TOOLS];
}

/** It only says what has to be done: trust is given by the user, in a terminal. */
function trustTool(held: readonly string[]): McpTool {
  const names = held.map((agent) => plainText(shownInLine(agent, 80))).join(", ");
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
