/** Tools that start, wait for, stop, resume and answer runs. What drives a run is the command, in a process of its own. */
import type { JsonObject } from "../flow/json.ts";
import { hasErrors } from "../flow/problem.ts";
import { RunnerError } from "../run/errors.ts";
import { stopRun } from "../run/people/steer.ts";
import { findRun } from "../run/records/runs.ts";
import { systemClock } from "../run/world/clock.ts";
import { onlyMembers, required, textMember } from "../serve/body.ts";
import { judgeArguments, runLine } from "../serve/command-line.ts";
import { RequestRefusal } from "../serve/refusal.ts";
import { untrusted } from "../serve/trusting.ts";
import { agentArguments, whyHeldBack, LONGEST_WAIT, waitSchema } from "./agent-tools.ts";
import {
  recordsFor,
  documentAnswer,
  type McpGround,
  type McpTool,
  type McpAnswer,
  type McpCall,
} from "./ground.ts";
import { formChoices } from "./form.ts";
import { isForModel } from "./run-document.ts";
import { giveAnswer, resumeDriven, awaitRun } from "./settle.ts";

export const RUN_PROPERTY = {
  type: "string",
  description: "The id of a run, the beginning of one, @last or @failed.",
} as const;

/** Starts a run of the agent; called again with what a person said, it goes on with the same run. */
export async function callAgent(agent: string, call: McpCall, ground: McpGround): Promise<McpAnswer> {
  const { agents, parametersOf } = ground;
  const { flow, problems } = await agents.load(agent);
  if (flow === null || hasErrors(problems))
    throw new RequestRefusal(409, "FLOW_INVALID", `Agent "${agent}" has errors, so it cannot run.`, {
      problems,
    });
  const startable = { flow, parameters: parametersOf(flow) };
  const { args, input, wait } = agentArguments(startable, call.args);
  const seconds = waitOf(wait, ground);
  if (call.said !== null) return await goOnWith(call.said.run, call, ground, seconds);
  const hidden = whyHeldBack(startable, ground.redact);
  if (hidden !== null) throw new RequestRefusal(409, "HIDDEN_TEXT", hidden);
  if (input !== undefined && typeof input !== "string")
    throw new RequestRefusal(400, "USAGE", '"input" must be a text.', { field: "input" });
  const { errors } = judgeArguments(startable, args);
  if (errors.length > 0)
    throw new RequestRefusal(400, "PARAMETERS_INVALID", errors.map(({ message }) => message).join("\n"), {
      field: errors[0]!.field ?? "args",
    });
  // The files may have changed since the list of tools was made. The command judges it again.
  if ((await untrusted(flow, ground)) !== null)
    throw new RequestRefusal(409, "NOT_TRUSTED", trustWords(agent, ground));
  const { settings, driver } = ground;
  const { onPermission } = settings;
  const line = runLine(startable, { agent, args, onPermission, ...(input !== undefined && { input }) });
  const run = await driver.start({
    ...line,
    words: [...line.words, ...settings.starting, ...settings.driving],
  });
  return await awaitRun(ground, await recordsFor(ground, run), run, call, seconds);
}

export function trustWords(agent: string, { typed }: McpGround): string {
  return (
    `The user has to trust agent "${agent}" first: its files make Lockstep run commands. ` +
    `Trust is given in a terminal only: ${typed(`lockstep trust add ${agent}`)}`
  );
}

/** The answer of the person, if this call is about one, and then the run. */
async function goOnWith(ref: string, call: McpCall, ground: McpGround, seconds: number): Promise<McpAnswer> {
  const journal = await recordsFor(ground, ref);
  const { id: run } = await findRun(journal, ref);
  const { said } = call;
  // A person was asked: every question is for them, as far as the form showed it.
  if (typeof said?.answer === "string")
    await giveAnswer(ground, journal, { ...said, answer: said.answer }, formChoices).catch(
      (error: unknown) => {
        // Somebody was faster: how the run stands now is the answer.
        if (!isSettled(error)) throw error;
      },
    );
  return await awaitRun(ground, journal, run, call, seconds);
}

function isSettled(error: unknown): boolean {
  if (error instanceof RequestRefusal) return error.refusal.field === "question";
  return error instanceof RunnerError && /^(?:NO_QUESTION|QUESTION_)/.test(error.code);
}

function waitOf(given: unknown, { settings }: McpGround): number {
  if (given === undefined || given === null) return settings.waitSeconds;
  if (typeof given === "number" && given >= 0 && given <= LONGEST_WAIT) return given;
  throw new RequestRefusal(400, "USAGE", `"wait" must be a number of seconds from 0 to ${LONGEST_WAIT}.`, {
    field: "wait",
  });
}

function refOf(args: JsonObject): string {
  return required(textMember(args, "run"), "run");
}

/** `canAsk`: the person at the client can be asked, so no model has to pass their words on. */
export function runTools({ settings }: Pick<McpGround, "settings">, canAsk: boolean): readonly McpTool[] {
  const wait = waitSchema(settings.waitSeconds);
  const tools: readonly McpTool[] = [
    {
      name: "run_wait",
      title: "Wait for a run",
      description:
        "How a run stands, after waiting for its end, and its result. Also for runs that were started earlier or by others.",
      inputSchema: objectSchema({ run: RUN_PROPERTY, wait }, ["run"]),
      isLook: false,
      call: async (call, ground) => {
        onlyMembers(call.args, ["run", "wait"]);
        return await goOnWith(refOf(call.args), watching(call), ground, waitOf(call.args.wait, ground));
      },
    },
    {
      name: "run_stop",
      title: "Stop a run",
      description:
        "Stops a run that is going on. What it finished is kept, and run_resume goes on from there.",
      inputSchema: objectSchema({ run: RUN_PROPERTY }, ["run"]),
      isLook: false,
      call: async ({ args }, ground) => {
        onlyMembers(args, ["run"]);
        const journal = await recordsFor(ground, refOf(args));
        const { project, env } = ground;
        const stopped = await stopRun(journal, project.stateDir, refOf(args), systemClock, env);
        return documentAnswer({ v: 1, ...stopped }, `Run ${stopped.run}: ${stopped.state}.`);
      },
    },
    {
      name: "run_resume",
      title: "Resume a run",
      description: "Goes on with a run that was stopped, interrupted or failed, from its last finished step.",
      inputSchema: objectSchema({ run: RUN_PROPERTY, wait }, ["run"]),
      isLook: false,
      call: async (call, ground) => {
        onlyMembers(call.args, ["run", "wait"]);
        const seconds = waitOf(call.args.wait, ground);
        const journal = await recordsFor(ground, refOf(call.args));
        if (call.said !== null) return await goOnWith(call.said.run, call, ground, seconds);
        const run = await resumeDriven(ground, journal, refOf(call.args));
        return await awaitRun(ground, journal, run, call, seconds);
      },
    },
    {
      name: "answer",
      title: "Answer a question",
      description:
        "Passes on what the user said to an open question of a run. Ask the user first: the question is for them, not " +
        "for you. Permissions for tool calls, gates and steps that were interrupted are not decided this way.",
      inputSchema: objectSchema(
        {
          run: RUN_PROPERTY,
          question: { type: "string", description: "Its id; needed where several are open." },
          answer: {
            type: "string",
            description: "One of its choices, or the user's words where it takes them.",
          },
          wait,
        },
        ["run", "answer"],
      ),
      isLook: false,
      call: async (call, ground) => {
        const { args } = call;
        onlyMembers(args, ["run", "question", "answer", "wait"]);
        const seconds = waitOf(args.wait, ground);
        const journal = await recordsFor(ground, refOf(args));
        const given = {
          run: refOf(args),
          question: textMember(args, "question"),
          answer: required(textMember(args, "answer"), "answer"),
        };
        const run = await giveAnswer(ground, journal, given, (open) =>
          isForModel(open) ? open.choices : null,
        );
        return await awaitRun(ground, journal, run, call, seconds);
      },
    },
  ];
  return tools.filter(({ name }) => name !== "answer" || !canAsk);
}

/** Who only looks on does not stop a run by looking away. */
function watching(call: McpCall): McpCall {
  return { ...call, isCancelled: () => false };
}

export function objectSchema(properties: JsonObject, needed: readonly string[] = []): JsonObject {
  return {
    type: "object",
    properties,
    ...(needed.length > 0 && { required: needed }),
    additionalProperties: false,
  };
}
