/** `lockstep run NAME`: the agent is loaded first, because it declares flags of its own. */
import { existsSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import type { Flow, Parameter } from "../../flow/flow.ts";
import { defined, type JsonObject } from "../../flow/json.ts";
import { hasErrors } from "../../flow/problem.ts";
import { INPUT_TEXT, readsInput } from "../../flow/text/template.ts";
import type { Loaded, Result, WorktreeOptions } from "../../run/index.ts";
import { runLoaded } from "../../run/open.ts";
import { findProject, listAgents } from "../../run/world/project.ts";
import { toFailure } from "../../tell/result.ts";
import { loadNamed, parametersOf, strictly, toFlags } from "../agent.ts";
import { UsageError } from "../args.ts";
import type { CommandCall } from "../call.ts";
import type { CallOf, StartFlags } from "../commands.ts";
import { conduct } from "../conduct.ts";
import { shellWord, shownInLine, wrapped } from "../text/text.ts";
import { versionText } from "../version.ts";

export async function runAgent(first: CallOf<"run">): Promise<number> {
  const name = nameOf(first);
  if (name === undefined) return await withoutAgent(first);
  if (name === "") throw new UsageError('run needs NAME, and "" was given.');
  const { call, loaded } = await loadFor(first, name);
  if (call.flags.version) {
    call.screen.print(versionText(call.flags.json));
    return 0;
  }
  const parameters = parametersOf(loaded.flow);
  if (call.flags.help) {
    if (isMissing(loaded)) return (await import("./check.ts")).tellFindings(call, [loaded], name);
    const { commandHelp } = await import("../help.ts");
    const known = loaded.flow === null ? null : parameters;
    call.screen.print(commandHelp(call.command, call.screen.out, known, call.host.program));
    if (known === null)
      call.screen.complain(
        call.typed(
          `The parameters of ${shownInLine(name)} are unknown because it has errors. See: lockstep check ${shellWord(name)}`,
        ),
      );
    return 0;
  }
  if (call.flags.validate) return (await import("./check.ts")).tellFindings(call, [loaded], name);
  refuseUnused(call);
  if (isBatch(call, loaded)) return await (await import("./batch.ts")).runIssues(call, loaded);
  return await conduct(call, async (options) => {
    const flow = hasErrors(loaded.problems) ? null : loaded.flow;
    const input = flow === null ? "" : await readInput(call, flow, options.signal);
    if (input === null) return toFailure(name, "INTERRUPTED", "");
    const args = {
      ...argsOf(call, parameters),
      ...(flow === null ? {} : await fieldsOf(call, flow, parameters)),
    };
    const where = flow === null ? {} : worktreeOf(call, flow);
    const bound = flow === null ? null : await boundOf(call, flow);
    const onBegin = () => {
      if (bound !== null) tellWrapped(call, bound);
      options.onBegin?.();
    };
    const result = await runLoaded(loaded, { ...options, ...where, args, input, onBegin });
    return result.code === "NO_BACKEND" ? namingScript(result, call, loaded) : result;
  });
}

function tellWrapped({ screen }: CallOf<"run">, text: string): void {
  const fold = (line: string) => (screen.isLive ? wrapped(line, screen.width) : line);
  screen.tell(text.split("\n").map(fold).join("\n"));
}

function isMissing({ problems }: Loaded): boolean {
  return problems.some(({ code }) => code === "AC-SERVICE-001");
}

/** Flags about many runs mean nothing for one. */
function refuseUnused({ flags }: CallOf<"run">): void {
  const { issues, label, limit, concurrency } = flags;
  if (limit !== undefined && label === undefined) throw new UsageError("--limit only works with --label.");
  if (concurrency !== undefined && (issues ?? label) === undefined)
    throw new UsageError("--concurrency only works with --issues or --label.");
}

/** An agent that cannot run is reported once, however many runs were wanted. */
function isBatch(call: CallOf<"run">, { problems }: Loaded): boolean {
  return !hasErrors(problems) && (call.flags.issues ?? call.flags.label) !== undefined;
}

/** What a run can cost; in money only where every detail is wanted, as most runs cost a small part of it. */
export async function boundOf(call: CallOf<"run">, flow: Flow): Promise<string | null> {
  if (call.flags.json || call.flags.events) return null;
  const { costLine } = await import("../../tell/budget.ts");
  if (!call.flags.verbose || call.flags.script !== undefined) return costLine(flow);
  const { moneyLine } = await import("../../run/world/money.ts");
  const money = moneyLine(flow, call.host.env, call.flags.model);
  return money === null ? costLine(flow) : `${costLine(flow)}\n${money}`;
}

/** The word after `run`, unless that is the value of a flag which only the agent knows and its name comes later. */
export function nameOf(call: CommandCall): string | undefined {
  const { words } = call;
  if (words.length < 2) return words[0];
  const agents = new Set(existsSync(call.cwd) ? listAgents(findProject(call.cwd)) : []);
  return words.find((word) => agents.has(word)) ?? words[0];
}

export async function withoutAgent(first: CommandCall): Promise<number> {
  const call = first.declare([]);
  const { commandHelp } = await import("../help.ts");
  call.screen.print(commandHelp(call.command, call.screen.out, null, call.host.program));
  return 0;
}

/** The agent, and the line read again with its flags. Where its parameters cannot be known, the line stays as it is. */
export async function loadFor<Flags extends StartFlags>(
  first: CommandCall<Flags>,
  name: string,
): Promise<{ readonly call: CommandCall<Flags>; readonly loaded: Loaded }> {
  const loaded = await loadNamed(name, first.cwd);
  if (loaded.flow === null) return { call: first, loaded };
  const call = first.declare(toFlags(parametersOf(loaded.flow)));
  const [said] = call.words;
  if (said !== name && !call.flags.help) {
    throw new UsageError(
      `Is "${name}" the agent, or "${said}"? Put the agent's name right after ${call.command.name}.`,
    );
  }
  const project = findProject(call.cwd, call.stateDir);
  return { call, loaded: { ...(call.flags.strict ? strictly(loaded) : loaded), project } };
}

/** By parameter name, as text: the declared type is looked at where the run starts. */
export function argsOf(
  call: CommandCall,
  parameters: readonly Parameter[],
): { readonly [name: string]: string | readonly string[] } {
  const given = parameters.flatMap(({ name, flag, type }) => {
    const values = call.declared.get(flag.slice(2));
    if (values === undefined) return [];
    return [[name, values.length === 1 && type !== "array" ? values[0]! : values] as const];
  });
  return Object.fromEntries(given);
}

/** Flags that say something about the worktree make no sense without one. */
export function worktreeOf({ flags, written }: CommandCall<StartFlags>, flow: Flow): WorktreeOptions {
  const worktree = flags.worktree ?? flow.settings.worktree.enabled;
  const stray = OF_WORKTREE.find((flag) => written[flag].length > 0);
  if (!worktree && stray !== undefined)
    throw new UsageError(`--${stray} only works with a worktree. Pass --worktree as well.`);
  return {
    worktree,
    dryRun: flags["dry-run"],
    ...defined({ branch: flags.branch, baseBranch: flags["base-branch"] }),
    finalize: defined({
      autoMerge: flags.merge,
      push: flags.push,
      createPr: flags["create-pr"],
      remote: flags["push-remote"],
      prTarget: flags["pr-target"],
    }),
  };
}

const OF_WORKTREE = [
  "branch",
  "base-branch",
  "merge",
  "push",
  "push-remote",
  "create-pr",
  "pr-target",
] as const;

/** What `--input` gives a run of stages. */
export async function fieldsOf(
  call: CommandCall<StartFlags>,
  flow: Flow,
  parameters: readonly Parameter[],
): Promise<JsonObject> {
  if (!hasStages(flow)) {
    if (call.flags.input.length > 1) throw new UsageError("--input is given more than once.");
    return {};
  }
  if (call.flags.input.length === 0) return {};
  const { readFields } = await import("../fields.ts");
  const fields = readFields(call);
  const twice = parameters.find(
    ({ name, flag }) => Object.hasOwn(fields, name) && call.declared.has(flag.slice(2)),
  );
  if (twice === undefined) return fields;
  throw new UsageError(`"${twice.name}" is given both with ${twice.flag} and with --input.`);
}

function hasStages({ steps }: Flow): boolean {
  return Object.values(steps).some(({ stage }) => stage !== undefined);
}

/** stdin is read when it was asked for, or when it is not a terminal and a prompt of the flow wants it. null: stopped. */
export async function readInput(
  call: CommandCall<StartFlags>,
  flow: Flow,
  signal: AbortSignal | undefined,
): Promise<string | null> {
  if (hasStages(flow)) return "";
  const given = call.flags.input.at(-1);
  if (given !== undefined && given !== "-") return given;
  const { stdin } = call.host;
  const isWanted = given === "-" || (wantsInput(flow) && !stdin.isTTY);
  return isWanted ? await call.host.interruptible(async () => await readStdin(call, signal)) : "";
}

async function readStdin(
  call: CommandCall<StartFlags>,
  signal: AbortSignal | undefined,
): Promise<string | null> {
  const { stdin } = call.host;
  if (stdin.isTTY) call.screen.tell("Reading the input; end it with Ctrl-D.");
  else if (call.flags.verbose) call.screen.tell("Reading the input from stdin.");
  const stream = stdin.open();
  const { addAbortSignal } = await import("node:stream");
  const { text: readAll } = await import("node:stream/consumers");
  if (signal !== undefined) addAbortSignal(signal, stream);
  try {
    return await readAll(stream);
  } catch (error) {
    if (signal?.aborted) return null;
    throw error;
  }
}

function wantsInput(flow: Flow): boolean {
  return Object.values(flow.steps).some(
    ({ prompt }) => prompt.variables.includes(INPUT_TEXT) || readsInput(flow, prompt.text),
  );
}

/** A script answers in the place of a model, and goes with neither of these flags. */
function withoutModel(argv: readonly string[]): readonly string[] {
  const isFlag = (word: string | undefined) => word === "--model" || word === "--backend";
  return argv.filter(
    (word, place) => !isFlag(word) && !isFlag(argv[place - 1]) && !/^--(?:model|backend)=/.test(word),
  );
}

/** An agent that brings a script along can be run with it. */
function namingScript(result: Result, call: CallOf<"run">, { agent, project }: Loaded): Result {
  const script = ["script.yaml", "script.json"]
    .map((file) => join(project.agentsDir, agent, file))
    .find((file) => existsSync(file));
  if (script === undefined) return result;
  const command = ["lockstep", ...withoutModel(call.argv), "--script", relative(resolve(call.cwd), script)]
    .map(shellWord)
    .join(" ");
  const reason = `${result.reason}\nWithout a model, the agent can be run with its own script: ${command}`;
  return { ...result, reason, completionReason: reason };
}
