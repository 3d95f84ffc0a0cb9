/** `lockstep __complete -- WORD…`: what can stand in the place of the last word. Asked by the shells' completions. */
import type { Flow } from "../../flow/flow.ts";
import type { Journal } from "../../run/index.ts";
import { findProject, listAgents } from "../../run/world/project.ts";
import { findRun, flowOf, listRuns } from "../../run/records/runs.ts";
import { loadNamed, parametersOf, toFlags } from "../agent.ts";
import { parseLine, type Flag, type GivenFlags, type Offer } from "../args.ts";
import { COMMANDS, commandsOf, everyFlag, GLOBAL_FLAGS, type CliCommand } from "../commands.ts";
import { withJournal } from "../journal.ts";
import { shownInLine } from "../text/text.ts";

/** `also`: what the shell adds from the disk. */
export type Offered = {
  readonly also: "files" | "folders" | null;
  readonly words: readonly Candidate[];
};

type Candidate = { readonly word: string; readonly about: string };
type Surroundings = { readonly cwd: string; readonly env: NodeJS.ProcessEnv };

const NOTHING: Offered = { also: null, words: [] };
const MOST_RUNS = 50;

/** Loads agents and reads the journal as `check` and `runs` do: nothing is run and nothing is changed. */
export async function complete(typed: readonly string[], around: Surroundings): Promise<Offered> {
  const here = typed.at(-1) ?? "";
  const before = typed.slice(0, -1).map(unquoted);
  const place = await placeOf(before, around);
  const offered = await offersAt(place, before, here);
  const words = offered.words.filter(({ word }) => word.startsWith(here) && isPlain(word));
  return { ...offered, words };
}

/** As the shells' scripts read it. */
export function offeredText({ also, words }: Offered): string {
  return [also ?? "-", ...words.map(({ word, about }) => `${word}\t${shownInLine(about, 100)}`)].join("\n");
}

/** Names come from files of the project: what a shell could take for more than a word is never offered. */
function isPlain(word: string): boolean {
  return /^[A-Za-z0-9@_-][\w@%+=:,./-]*$/.test(word) && word.length <= 200;
}

function unquoted(word: string): string {
  return /^(['"])(.*)\1$/s.exec(word)?.[2] ?? word.replaceAll(/\\(.)/g, "$1");
}

/** The line so far: which command it is, what it has, and which flags may follow. */
type Place = {
  readonly command: CliCommand | null;
  /** After the command. */
  readonly words: readonly string[];
  /** The word that several commands begin with, where the next one is not written yet. */
  readonly family: string | null;
  readonly given: readonly GivenFlags[];
  readonly flags: readonly Flag[];
  readonly declared: readonly Flag[];
  readonly around: Surroundings;
  readonly stateDir: string | undefined;
};

async function placeOf(before: readonly string[], around: Surroundings): Promise<Place> {
  const first = parseLine(before, { flags: everyFlag(), lenient: true });
  const [word, verb] = first.words;
  const command = COMMANDS.find(({ name }) => name === word || name === `${word} ${verb}`) ?? null;
  const taken = command?.name.split(" ").length ?? 1;
  const flags = [...(command?.flags ?? []), ...GLOBAL_FLAGS];
  const cwd = first.flags.get("cwd")?.at(-1) ?? around.cwd;
  const name = first.words[taken];
  const declared =
    command?.takesParameters === true && name !== undefined
      ? toOffers(parametersOf((await loadNamed(name, cwd)).flow))
      : [];
  const line = parseLine(before, { flags, declared, lenient: true });
  return {
    command,
    words: line.words.slice(taken),
    family: command === null ? (word ?? null) : null,
    given: [line.flags, line.declared],
    flags,
    declared,
    around: { ...around, cwd },
    stateDir: line.flags.get("state")?.at(-1),
  };
}

/** A parameter that knows its values offers them. */
function toOffers(parameters: ReturnType<typeof parametersOf>): readonly Flag[] {
  return toFlags(parameters).map((flag, place) => {
    const { type, validation } = parameters[place]!;
    return Object.assign(
      {},
      flag,
      validation?.enum !== undefined && { offers: validation.enum.map(String) },
      type === "array" && { repeats: true },
    );
  });
}

async function offersAt(place: Place, before: readonly string[], here: string): Promise<Offered> {
  const { command, flags, declared } = place;
  if (before.includes("--")) return NOTHING;
  const all = [...declared, ...flags];
  const pending = takingFlag(before.at(-1) ?? "", all);
  if (pending !== null) return await offersOf(pending.offers ?? "new", place);
  const [, name, value] = /^--([^=]+)=(.*)$/s.exec(here) ?? [];
  if (name !== undefined && value !== undefined) {
    const { also, words } = await offersOf(all.find((flag) => flag.name === name)?.offers ?? "new", place);
    return { also, words: words.map(({ word, about }) => ({ word: `--${name}=${word}`, about })) };
  }
  if (here.startsWith("-")) return { also: null, words: flagsOf(place) };
  if (command === null) return await offersOf("command", place);
  const last = command.words.at(-1);
  const next = command.words[place.words.length] ?? (last?.repeats === true ? last : undefined);
  const offered = next === undefined ? NOTHING : await offersOf(next.is, place);
  const isMeant = next !== undefined && next.is !== "new" && next.optional === undefined;
  if (isMeant || here !== "") return offered;
  return { also: offered.also, words: [...offered.words, ...flagsOf(place)] };
}

/** The flag whose value comes next. */
function takingFlag(token: string, flags: readonly Flag[]): Flag | null {
  const flag = flags.find(({ name, short }) => token === `--${name}` || token === `-${short ?? ""}`);
  return flag?.takes === undefined ? null : flag;
}

/** Parameters of the agent first; what was given already only where it may be repeated. */
function flagsOf({ flags, declared, given }: Place): readonly Candidate[] {
  const own = declared.filter(({ name }) => /^[A-Za-z][\w-]*$/.test(name));
  return [...own, ...flags]
    .filter(({ name, repeats }) => repeats === true || given.every((map) => !map.has(name)))
    .map(({ name, help }) => ({ word: `--${name}`, about: help }));
}

/** Names come from files of the project: one that begins with - would be a flag on the line. */
async function offersOf(offer: Offer, place: Place): Promise<Offered> {
  const { also, words } = await everyOffer(offer, place);
  return { also, words: words.filter(({ word }) => !word.startsWith("-")) };
}

async function everyOffer(offer: Offer, place: Place): Promise<Offered> {
  const { around, words } = place;
  const named = (list: readonly string[], about = ""): Offered => ({
    also: null,
    words: list.map((word) => ({ word, about })),
  });
  if (typeof offer !== "string") return named(offer);
  switch (offer) {
    case "new":
      return NOTHING;
    case "file":
      return { also: "files", words: [] };
    case "folder":
      return { also: "folders", words: [] };
    case "command":
      return { also: null, words: commandWords(place.family) };
    case "agent":
      return named(listAgents(findProject(around.cwd)), "agent");
    case "model":
      return await models(around.env);
    case "backend": {
      const { BACKEND_IDS } = await import("../../run/world/backend-table.ts");
      return named(BACKEND_IDS);
    }
    case "run":
      return { also: place.command?.name === "replay" ? "files" : null, words: await runs(place) };
    case "step":
      return named(Object.keys((await flowAt(place, words[0] ?? ""))?.steps ?? {}), "step");
    case "question":
      return named(await questions(place, words[0] ?? ""));
  }
}

/** The first words of commands; after one that several begin with, the words that follow it. */
function commandWords(family: string | null): readonly Candidate[] {
  if (family !== null)
    return commandsOf(family).map(({ name, summary }) => ({
      word: name.slice(family.length + 1),
      about: summary,
    }));
  const firsts = COMMANDS.map(({ name, summary }) => ({ word: name.split(" ")[0]!, about: summary }));
  return firsts.filter(({ word }, at) => firsts.findIndex((other) => other.word === word) === at);
}

async function models(env: NodeJS.ProcessEnv): Promise<Offered> {
  const { surveyModels } = await import("../../run/world/model-survey.ts");
  return { also: null, words: surveyModels(env).rows.map(({ name, ref }) => ({ word: name, about: ref })) };
}

async function runs(place: Place): Promise<readonly Candidate[]> {
  const recorded = await fromJournal(
    place,
    [],
    async (journal) => await listRuns(journal, { limit: MOST_RUNS }),
  );
  return [
    { word: "@last", about: "the newest run" },
    { word: "@failed", about: "the newest run that failed" },
    ...recorded.map(({ run, agent, state }) => ({
      word: run,
      about: `${agent}, ${state}`,
    })),
  ];
}

/** The first word of the command names an agent or a run. */
async function flowAt(place: Place, name: string): Promise<Flow | null> {
  if (name === "") return null;
  if (place.command?.words[0]?.is === "agent") return (await loadNamed(name, place.around.cwd)).flow;
  return await fromJournal(place, null, async (journal) => {
    const { id, digest } = await findRun(journal, name);
    return await flowOf(journal, id, digest);
  });
}

/** The ids of open questions, and where there is only one, what can be answered to it. */
async function questions(place: Place, run: string): Promise<readonly string[]> {
  const { questionsOf } = await import("../../run/people/answer.ts");
  return await fromJournal(place, [], async (journal) => {
    const { questions: open } = await questionsOf(journal, run);
    const asked = place.words[1] === undefined ? open : open.filter(({ id }) => id === place.words[1]);
    const choices = asked.length === 1 ? asked[0]!.choices : [];
    return [...choices, ...(place.words[1] === undefined ? open.map(({ id }) => id) : [])];
  });
}

async function fromJournal<T>(
  { around: { cwd, env }, stateDir }: Place,
  none: T,
  use: (journal: Journal) => Promise<T>,
): Promise<T> {
  const read = async (journal: Journal | null) => (journal === null ? none : await use(journal));
  return await withJournal({ cwd, stateDir, host: { env } }, read);
}
