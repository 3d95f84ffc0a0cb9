/**
 * A program of the user's as a model: each request is one call of it, with the request as JSON on its input and the answer
 * as one JSON document on its output. It starts in an empty folder, and none of its arguments is taken from a project.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Backend, Message, TurnRequest, TurnResult } from "../../engine/ports.ts";
import type { Usage } from "../../flow/event.ts";
import { plainUsage } from "../../flow/figure.ts";
import { parseJson, type Json } from "../../flow/json.ts";
import type { AgentProcess, AgentProcesses } from "../../flow/machine/agent-process.ts";
import { shownInLine } from "../../flow/text/harmless.ts";
import { INTERRUPTED, runOf, withPrinted, type AgentChild } from "../agent-child.ts";
import { passOn } from "../environment.ts";
import { readReply } from "../scripted/script.ts";
import { giveReply } from "../scripted/scripted.ts";
import { memberAt, countIn } from "../untyped.ts";

export type CommandModelOptions = {
  /** The program, from the user's own settings: a project must not choose what is started here. */
  readonly command: string;
  readonly args?: readonly string[];
  /** The user's environment, and the names of what the program needs of it beside the usual: its key. */
  readonly env: NodeJS.ProcessEnv;
  readonly pass?: readonly string[];
  /** How it is started, and ended with everything that it started. */
  readonly processes: AgentProcesses<AgentChild>;
  /** How long it may take to answer. */
  readonly timeoutMs: number;
  /** The model that all steps ask, whatever they name. */
  readonly model?: string;
};

export function createCommandModel(options: CommandModelOptions): Backend {
  const { command, args = [], pass = [], processes, timeoutMs, model } = options;
  const env = passOn(options.env, (name) => pass.includes(name));

  async function turn(request: TurnRequest): Promise<TurnResult> {
    const { asker, signal } = request;
    if (signal.aborted) return INTERRUPTED;
    const cwd = await processes.open(runOf(asker));
    const asked = { ...request, model: model ?? request.model };
    const program = processes.start({ file: command, args, cwd, env });
    program.child.stdin.end(JSON.stringify(toDocument(asked)));
    const { out, stopped } = await outputOf(program, timeoutMs, signal);
    if (signal.aborted) return INTERRUPTED;
    const by = { provider: "command", model: asked.model };
    const failed = (kind: "network" | "process", what: string): TurnResult => {
      const message = withPrinted(`The program ${command} ${what}`, program.printed());
      return { kind: "fault", fault: { kind, message }, by };
    };
    if (stopped === "late") return failed("network", `has not answered for ${timeoutMs / 1000} s`);
    if (stopped === "long") return failed("process", `printed more than ${MOST_PRINTED} bytes`);
    if (program.child.exitCode !== 0) return failed("process", await program.gone);
    try {
      return { ...toResult(parseJson(out), request), by };
    } catch (error) {
      return failed(
        "process",
        `ended (0), but its answer${(error as Error).message}: ${shownInLine(out, 200)}`,
      );
    }
  }

  // What is started is never taken from a journal: it lies in the project.
  const spec = { id: "command", options: model === undefined ? null : { model } };
  return { spec, turn, close: processes.close };
}

function toDocument({ asker, model, system, messages, tools, output }: TurnRequest) {
  return {
    v: 1,
    step: asker.step,
    model,
    system,
    prompt: messages.map(textOf).join("\n\n"),
    schema: output === undefined ? null : (output.schema ?? { type: "object" }),
    messages,
    tools,
  };
}

function textOf(message: Message): string {
  if (message.role === "tool") return message.results.map(({ content }) => content).join("\n");
  if (message.role === "user") return message.text;
  const values = [message.output, ...message.calls].filter((value) => value !== undefined);
  return [message.text, ...values.map((value) => JSON.stringify(value))].filter(Boolean).join("\n");
}

type Output = { readonly out: string; readonly stopped: "late" | "long" | null };

/** Resolves when the program has ended with everything that it started. */
async function outputOf(
  { child, gone, kill, end }: AgentProcess<AgentChild>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Output> {
  const parts: Buffer[] = [];
  let size = 0;
  let stopped: Output["stopped"] = null;
  const stop = (why: Output["stopped"]) => {
    stopped ??= why;
    kill();
  };
  const abort = () => stop(null);
  const timer = setTimeout(() => stop("late"), timeoutMs);
  const read = new Promise((resolve) => child.stdout.once("close", resolve));
  child.stdout.on("data", (part: Buffer) => {
    size += part.length;
    if (size > MOST_PRINTED) stop("long");
    else parts.push(part);
  });
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  await gone;
  clearTimeout(timer);
  signal.removeEventListener("abort", abort);
  await end();
  // A process that got away may hold the pipe for ever.
  await Promise.race([read, delay(DRAIN_MS, undefined, { ref: false })]);
  return { out: Buffer.concat(parts).toString("utf8"), stopped };
}

const MOST_PRINTED = 8 * 1024 * 1024;
const DRAIN_MS = 500;

/** Throws what is wrong with the answer, as the end of a sentence about it. */
function toResult(value: Json | undefined, request: TurnRequest): TurnResult {
  if (value === undefined) throw new Error(" is not one JSON document");
  const { error, ...reply } = readReply(value, KEYS, (what) => new Error(what));
  if (error !== undefined) {
    const message = `The program reports: ${shownInLine(error.message ?? error.kind, 500)}`;
    return giveReply({ error: { ...error, message } }, request);
  }
  return { ...giveReply(reply, request), usage: toUsage(memberAt(value, "usage")) } as TurnResult;
}

const KEYS = ["text", "output", "calls", "error", "usage"];

function toUsage(usage: Json | undefined): Usage {
  const cost = memberAt(usage, "costUsd") ?? null;
  return plainUsage({
    turns: 1,
    inputTokens: countIn(memberAt(usage, "inputTokens")),
    outputTokens: countIn(memberAt(usage, "outputTokens")),
    costUsd: cost === null ? null : countIn(cost),
  });
}
