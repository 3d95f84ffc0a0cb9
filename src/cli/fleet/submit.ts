/** `lockstep fleet submit NAME`: what `run` does until a run begins, and then it is handed to the workers. */
import type { Flow } from "../../flow/flow.ts";
import { defined } from "../../flow/json.ts";
import { hasErrors } from "../../flow/problem.ts";
import { EXIT } from "../../flow/verdict.ts";
import { groupOf, lackingWorkers, submitRuns, type Submission, type Submitted } from "../../fleet/submit.ts";
import { openServerClock } from "../../fleet/clock.ts";
import { withFleet } from "../../fleet/open.ts";
import type { Loaded } from "../../run/index.ts";
import { findSource } from "../../run/source.ts";
import { prepareLoaded, type PrepareOptions } from "../../run/submit.ts";
import { parametersOf } from "../agent.ts";
import { readDuration, UsageError } from "../args.ts";
import { issuesOf, requireIssue } from "../commands/batch.ts";
import { argsOf, fieldsOf, loadFor, nameOf, readInput, withoutAgent, worktreeOf } from "../commands/run.ts";
import type { CallOf } from "../commands.ts";
import { askForTrust } from "../conduct.ts";
import { fleetAddress, requireQueue, requireNamed } from "./address.ts";
import { readGiven } from "../given-file.ts";
import { spending } from "../limits.ts";
import { errorText } from "../../flow/text/harmless.ts";
import { shellWord, shownInLine } from "../text/text.ts";
import { versionText } from "../version.ts";

type SubmitCall = CallOf<"fleet submit">;

export async function fleetSubmit(first: SubmitCall): Promise<number> {
  const name = nameOf(first);
  if (name === undefined) return await withoutAgent(first);
  const { call, loaded } = await loadFor(first, name);
  if (call.flags.version) {
    call.screen.print(versionText(call.flags.json));
    return EXIT.completed;
  }
  if (call.flags.help) {
    const { commandHelp } = await import("../help.ts");
    const parameters = loaded.flow === null ? null : parametersOf(loaded.flow);
    call.screen.print(commandHelp(call.command, call.screen.out, parameters, call.host.program));
    return EXIT.completed;
  }
  const { flow, problems } = loaded;
  if (flow === null || hasErrors(problems))
    return (await import("../commands/check.ts")).tellFindings(call, [loaded], name);
  return await submit(call, loaded, flow);
}

async function submit(call: SubmitCall, loaded: Loaded, flow: Flow): Promise<number> {
  const { flags, screen, host } = call;
  const address = fleetAddress(call);
  const wanted = wantedOf(call);
  const signal = host.stopped();
  const items = await itemsOf(call, flow, signal);
  const options = await optionsOf(call, flow, signal);
  const kind = flags.bundle ? "bundle" : flags.files === false ? "none" : "git";
  const found = await findSource(kind, call.cwd, options, { env: host.env, signal });
  const submissions: Submission[] = [];
  for (const { name, args } of items) {
    const prepared = await prepareLoaded(loaded, { ...options, args: { ...options.args, ...args }, found });
    const key = flags.key === undefined ? undefined : items.length === 1 ? flags.key : `${flags.key} ${name}`;
    submissions.push({ name, prepared, ...defined({ key }) });
  }
  const group = flags.group ?? groupOf(found.source);
  const runs = await withFleet(address, host.env, async (postgres) => {
    const { queue, priority } = wanted;
    const notBefore = wanted.notBefore?.((await openServerClock(postgres)).clock.now());
    const how = { queue, priority, group, bundle: found.bundle, ...defined({ notBefore }) };
    const submitted = await submitRuns(postgres, submissions, how);
    // They are recorded: whatever fails from here on, the user has their ids.
    tellSubmitted(call, submitted);
    const lacking = await lackingWorkers(postgres, flow, wanted.queue).catch((error: unknown) => [
      `It is not known whether a worker takes it: ${errorText(error)}`,
    ]);
    for (const text of lacking) screen.tell(shownInLine(text, 1000));
    return submitted;
  });
  const warnings = new Set(submissions.flatMap(({ prepared }) => prepared.warnings));
  for (const text of warnings) screen.tell(shownInLine(text, 1000));
  if (flags.follow) return await (await import("./follow.ts")).followSubmitted(call, runs);
  return EXIT.completed;
}

/** The id alone on stdout where there is one, so that it can be used in a command. */
function tellSubmitted({ flags, screen, typed }: SubmitCall, runs: readonly Submitted[]): void {
  if (flags.follow) {
    // Its document and its table come at the end.
    for (const { name, run } of runs)
      screen.tell(`Submitted ${shownInLine(name, 80)} as run ${shownInLine(run, 80)}.`);
    return;
  }
  if (flags.json) {
    screen.document({ v: 1, runs });
    return;
  }
  const known = runs.filter(({ isNew }) => !isNew).length;
  if (known > 0) screen.tell(`${known} of ${runs.length} had been submitted with this key before.`);
  for (const { name, run } of runs)
    screen.print(runs.length === 1 ? shownInLine(run) : `${shownInLine(run)}  ${shownInLine(name, 80)}`);
  screen.tell(
    typed(
      `To see how it goes: lockstep ${runs.length === 1 ? `show ${shellWord(shownInLine(runs[0]!.run))} --follow` : "runs"}`,
    ),
  );
}

function wantedOf({ flags }: SubmitCall) {
  const { queue = "runs", priority = "0" } = flags;
  const level = /^[+-]?\d{1,4}$/.test(priority) ? Number(priority) : Number.NaN;
  if (!(Math.abs(level) <= 1000))
    throw new UsageError(`--priority needs a whole number from -1000 to 1000, not "${priority}".`);
  requireQueue(queue);
  requireNamed("group", flags.group);
  requireNamed("key", flags.key);
  if (flags.bundle && flags.files === false)
    throw new UsageError("--bundle and --no-files cannot be used together.");
  return { queue, priority: level, ...defined({ notBefore: momentOf(flags["not-before"]) }) };
}

/** A time of day and date, or a span from `now` on, which is the time of the server. */
function momentOf(text: string | undefined): ((now: number) => number) | undefined {
  if (text === undefined) return undefined;
  const span = readDuration(text);
  const at = span ?? Date.parse(text);
  if (/^\d{4}-\d\d-\d\d|^\d+[a-z]+$/.test(text) && !Number.isNaN(at))
    return (now) => (span === null ? at : now + span);
  throw new UsageError(`--not-before needs a time such as 2030-01-31T02:00, or 90m, not "${text}".`);
}

type Item = { readonly name: string; readonly args: { readonly [name: string]: string } };

async function itemsOf(call: SubmitCall, flow: Flow, signal: AbortSignal): Promise<readonly Item[]> {
  const { flags, host, screen } = call;
  if (flags.limit !== undefined && flags.label === undefined)
    throw new UsageError("--limit only works with --label.");
  if ((flags.issues ?? flags.label) === undefined) {
    const parameter = flow.parameters.find(({ name }) => name === "issue");
    const issue = parameter === undefined ? undefined : call.declared.get(parameter.flag.slice(2))?.[0];
    return [{ name: issue === undefined ? flow.agent : `#${issue}`, args: {} }];
  }
  requireIssue(call, flow);
  if (flags.branch !== undefined)
    throw new UsageError("--branch cannot be used with several issues: each run gets its own branch.");
  const { numbers, left } = await host.interruptible(async () => await issuesOf(call, signal));
  if (left > 0) screen.tell(`${left} more open issues have the label; include them with --limit.`);
  return numbers.map((issue) => ({ name: `#${issue}`, args: { issue: String(issue) } }));
}

async function optionsOf(call: SubmitCall, flow: Flow, signal: AbortSignal): Promise<PrepareOptions> {
  const { flags, host } = call;
  const { script, model, backend, trust } = flags;
  if (script !== undefined && (model ?? backend) !== undefined)
    throw new UsageError("--script replaces the model: leave out --model and --backend.");
  const parameters = parametersOf(flow);
  const input = await readInput(call, flow, signal);
  const confirm = call.screen.isAnswering ? askForTrust(call, signal) : undefined;
  return {
    cwd: call.cwd,
    env: host.env,
    signal,
    ...worktreeOf(call, flow),
    args: { ...argsOf(call, parameters), ...(await fieldsOf(call, flow, parameters)) },
    input: input ?? "",
    trust: defined({ digest: trust, confirm }),
    notify: (text) => call.screen.tell(text),
    ...spending(call),
    ...defined({
      script:
        script === undefined ? undefined : { text: readGiven(call, script, "SCRIPT_INVALID"), file: script },
      model,
      use: backend,
      onPermission: flags["on-permission"],
      expireMs: flags.expire,
    }),
  };
}
