/** `lockstep trust show NAME`, `lockstep trust add NAME`, `lockstep trust list` and `lockstep trust revoke [NAME|DIGEST|DIR|--all]` */
import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { defined } from "../../flow/json.ts";
import { hasErrors } from "../../flow/problem.ts";
import { EXIT } from "../../flow/verdict.ts";
import { broken, visibleInLine } from "../../flow/text/visible.ts";
import { RunnerError } from "../../run/index.ts";
import { findProject } from "../../run/world/project.ts";
import { forgetState, knownStates, type KnownState } from "../../run/trust/state-folders.ts";
import { openTrust, type Trusted, type TrustStore } from "../../run/trust/trust-store.ts";
import { tryGround } from "../../run/boundary.ts";
import { commandLines, requireTrust, trusting, trustState, type TrustState } from "../../run/trust/trust.ts";
import { loadNamed } from "../agent.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { askForTrust } from "../conduct.ts";
import { count } from "../text/text.ts";

const VERBS = { show, add, list, revoke } as const;

export async function trust(call: CallOf<"trust">): Promise<number> {
  const [verb] = call.words;
  if (verb !== "revoke" && call.flags.all) throw new UsageError("--all only works with revoke.");
  if (verb !== "add" && call.flags.trust !== undefined) throw new UsageError("--trust only works with add.");
  return await VERBS[verb as keyof typeof VERBS](call);
}

/** What the agent would ask for. 0: it may run; 3: it needs a yes first. */
async function show(call: CallOf<"trust">): Promise<number> {
  const { flow, asking } = await askingFor(call, "show");
  const { env } = call.host;
  const state = await trustState(flow, asking);
  // As `fleet submit` asks, which does not know the sandbox of a worker.
  const free = asking.confined ? await trustState(flow, trusting(asking.root, false, { env })) : state;
  if (call.flags.json) call.screen.document({ v: 1, ...state, trusted: !isOpen(state) });
  else call.screen.print(stateText(call, state));
  if (free.digest !== state.digest && isOpen(free))
    call.screen.tell(
      `${call.typed("Without a sandbox, and for `lockstep fleet submit`, it needs more trust: lockstep trust show")} ${visibleInLine(flow.agent)} --sandbox off`,
    );
  return isOpen(state) ? EXIT.unavailable : EXIT.completed;
}

/** Asks as a run does, or takes the digest, and starts nothing. 0: it may run; 3: it was not trusted. */
async function add(call: CallOf<"trust">): Promise<number> {
  storeOf(call);
  const { flow, asking } = await askingFor(call, "add");
  const { screen, flags, host } = call;
  const confirm = screen.isAnswering ? askForTrust(call, host.interruption()) : undefined;
  await requireTrust(flow, { ...asking, ...defined({ digest: flags.trust, confirm }) });
  const state = await trustState(flow, asking);
  if (flags.json) screen.document({ v: 1, ...state, trusted: !isOpen(state) });
  else screen.print(stateText(call, state));
  return isOpen(state) ? EXIT.unavailable : EXIT.completed;
}

/** The agent, and what its trust depends on here: its folder, and whether its commands are confined. */
async function askingFor(call: CallOf<"trust">, verb: string) {
  const name = call.words[1];
  if (name === undefined) throw new UsageError(`trust ${verb} needs NAME, the agent.`);
  const { flow, problems, project } = await loadNamed(name, call.cwd);
  if (flow === null || hasErrors(problems)) {
    const { message = "", fix = "" } = problems.find(({ severity }) => severity === "error") ?? {};
    const more = `\`lockstep check ${name}\` lists all problems`;
    throw new RunnerError("FLOW_INVALID", `Agent "${name}" cannot be used; ${more}. ${message} ${fix}`);
  }
  const { env } = call.host;
  const { cwd } = call;
  await using tried = await tryGround(flow, { project, cwd, env, ...defined({ wish: call.flags.sandbox }) });
  const isConfined = tried.sandbox.confined || !tried.sandbox.starts;
  const notify = (text: string) => call.screen.tell(call.typed(text));
  return { flow, asking: trusting(project.root, isConfined, { env, notify }) };
}

/** Whether a run would ask for trust. */
function isOpen({ state }: TrustState): boolean {
  return state === "new" || state === "changed";
}

function stateText({ typed }: CallOf<"trust">, standing: TrustState): string {
  const { agent, root, digest, commands, change, state, at } = standing;
  if (state === "nothing")
    return `${visibleInLine(agent)} needs no trust: its files make Lockstep run nothing here.`;
  const words: { readonly [state in TrustState["state"]]: string } = {
    nothing: "",
    everything: "LOCKSTEP_TRUST=all trusts it, like everything else",
    trusted: `trusted${at === null ? "" : ` since ${at}`}`,
    changed: "not trusted: it changed since you trusted it (+ added, - removed)",
    new: "not trusted",
  };
  return [
    `${visibleInLine(agent)} in ${visibleInLine(root)}: ${words[state]}`,
    ...commandLines(commands, isOpen(standing) ? change : null).map((line) => broken(line)),
    `digest ${digest}`,
    ...(isOpen(standing)
      ? [`${typed("To trust it: lockstep trust add")} ${visibleInLine(agent)} --trust ${digest}`]
      : []),
  ].join("\n");
}

function list(call: CallOf<"trust">): Promise<number> {
  if (call.words.length > 1) throw new UsageError("trust list takes no argument.");
  const entries = storeOf(call).list();
  const states = knownStates(call.host.env);
  if (call.flags.json)
    call.screen.document({ v: 1, trusted: entries.map(trustDocument), states: states.map(stateDocument) });
  else {
    if (entries.length + states.length === 0) call.screen.tell("You trust no project.");
    if (entries.length > 0) call.screen.print(listing(entries));
    if (states.length > 0) call.screen.print(stateListing(states));
  }
  return Promise.resolve(EXIT.completed);
}

function stateDocument({ path, how, since }: KnownState) {
  return { path, how, since };
}

function stateListing(states: readonly KnownState[]): string {
  const words = { made: "made by your runs", accepted: "came from elsewhere, accepted by you" } as const;
  const lines = states.map(({ path, how, since }) => `  ${visibleInLine(path)}  ${since}  ${words[how]}`);
  return ["State folders of your own", ...lines].join("\n");
}

function trustDocument({ lines, ...entry }: Trusted) {
  return { ...entry, counts: entry.at !== null, commands: lines };
}

/** Project by project. */
function listing(entries: readonly Trusted[]): string {
  const projects = [...Map.groupBy(entries, ({ root }) => root)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return projects
    .map(([root, all]) => [visibleInLine(root)].concat(all.map((entry) => entryLine(entry))).join("\n"))
    .join("\n");
}

function entryLine({ agent, digest, lines, at }: Trusted): string {
  const who = visibleInLine(agent) || "(agent not recorded)";
  const when = at ?? "from an older version: you will be asked again";
  return `  ${who}  ${when}  ${count(lines.length, "line")}  ${digest}`;
}

/** An agent of this project, a digest or a beginning of one, the folder of a project, or a state folder. */
function revoke(call: CallOf<"trust">): Promise<number> {
  const store = storeOf(call);
  const { env } = call.host;
  const [, word] = call.words;
  if (call.flags.all) {
    if (word !== undefined) throw new UsageError("Give either --all or a name, not both.");
    store.clear();
    // Those that the user's own runs made were never a matter of trust.
    for (const { id, how } of knownStates(env)) if (how === "accepted") forgetState(env, id);
    if (call.flags.json) call.screen.document({ v: 1, all: true });
    else call.screen.print("All trust is revoked.");
    return Promise.resolve(EXIT.completed);
  }
  if (word === undefined)
    throw new UsageError("trust revoke needs an agent, a digest, a folder, a state folder, or --all.");
  const gone = meant(call, store, word);
  const states = gone.length > 0 ? [] : knownStates(env).filter(({ path }) => path === placeOf(call, word));
  if (gone.length + states.length === 0) {
    const why = `You do not trust anything named "${word}". \`lockstep trust list\` shows what you trust.`;
    throw new UsageError(why);
  }
  for (const entry of gone) store.remove(entry);
  for (const { id } of states) forgetState(env, id);
  if (call.flags.json)
    call.screen.document({
      v: 1,
      all: false,
      revoked: gone.map(trustDocument),
      states: states.map(stateDocument),
    });
  else
    call.screen.print(
      [
        ...gone.map(({ root, agent }) => `Revoked: ${visibleInLine(agent)} in ${visibleInLine(root)}`),
        ...states.map(
          ({ path }) => `Forgotten: ${visibleInLine(path)}, which is read-only until you accept it again`,
        ),
      ].join("\n"),
    );
  return Promise.resolve(EXIT.completed);
}

function meant(call: CallOf<"trust">, store: TrustStore, word: string): readonly Trusted[] {
  const all = store.list();
  const here = realpathSync.native(findProject(call.cwd).root);
  const byAgent = all.filter(({ root, agent }) => root === here && agent === word);
  if (byAgent.length > 0) return byAgent;
  const isDigits = /^[0-9a-f]{8,64}$/i.test(word);
  const byDigest = isDigits ? all.filter(({ digest }) => digest.startsWith(word.toLowerCase())) : [];
  if (new Set(byDigest.map(({ digest }) => digest)).size > 1)
    throw new UsageError(`Several digests begin with ${word}: write more characters.`);
  if (byDigest.length > 0) return byDigest;
  const place = placeOf(call, word);
  return all.filter(({ root }) => root === place);
}

/** A folder that is gone is still known by its path. */
function placeOf({ cwd }: CallOf<"trust">, word: string): string {
  const path = resolve(cwd, word);
  return existsSync(path) ? realpathSync.native(path) : path;
}

function storeOf({ host }: CallOf<"trust">): TrustStore {
  const store = openTrust(host.env);
  if (store !== null) return store;
  throw new RunnerError(
    "CONFIG_INVALID",
    "There is no folder for your settings: HOME and XDG_CONFIG_HOME are not set. Set one of them to a full path.",
  );
}
