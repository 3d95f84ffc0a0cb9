/** What Lockstep reports about a recorded run, by each of its tellers: documents for programs and texts for people. */
import {
  createMemoryJournal,
  drawingOf,
  entriesOf,
  exportRun,
  lockstep,
  progressOf,
  show,
  spansOf,
  type Bundle,
  type Journal,
} from "./doors.ts";

/** The tellers by name. A document is compared without its sentences, a text as it is printed. */
export type Told = {
  readonly documents: { readonly [teller: string]: unknown };
  readonly texts: { readonly [teller: string]: string };
};

/** Where the runs are recorded, and what is around the commands that read them. */
export type Place = { readonly journal: Journal; readonly stateDir: string; readonly env: NodeJS.ProcessEnv };

/** When the commands look: only what is still going on depends on it. */
export const NOW = 1_800_000_000_000;

const DOCUMENTS: { readonly [teller: string]: readonly string[] } = {
  show: ["show", "RUN"],
  why: ["why", "RUN", "--all"],
  logs: ["logs", "RUN", "--level", "debug"],
  transcript: ["logs", "RUN", "--transcript"],
  audit: ["show", "RUN", "--audit"],
};
const TEXTS: { readonly [teller: string]: readonly string[] } = {
  show: ["show", "RUN"],
  why: ["why", "RUN", "--all"],
  "logs-verbose": ["logs", "RUN", "--verbose"],
  transcript: ["logs", "RUN", "--transcript"],
  audit: ["show", "RUN", "--audit"],
};
/** Tellers whose answer follows from one of the others: asked about some runs only, since each call costs time. */
const MORE_DOCUMENTS: typeof DOCUMENTS = { effects: ["effects", "RUN"], replay: ["replay", "RUN"] };
const MORE_TEXTS: typeof TEXTS = {
  result: ["show", "RUN", "--result"],
  "why-full": ["why", "RUN", "--full"],
  logs: ["logs", "RUN"],
  "logs-warnings": ["logs", "RUN", "--level", "warn"],
  effects: ["effects", "RUN"],
  replay: ["replay", "RUN"],
};

/** `isWhole`: by every teller. */
export async function tell(run: string, bundle: Bundle, place: Place, isWhole: boolean): Promise<Told> {
  const documents: { [teller: string]: unknown } = {};
  const texts: { [teller: string]: string } = {};
  for (const [teller, words] of Object.entries({ ...DOCUMENTS, ...(isWhole && MORE_DOCUMENTS) }))
    documents[teller] = await documentOf(named(words, run), place);
  for (const [teller, words] of Object.entries({ ...TEXTS, ...(isWhole && MORE_TEXTS) }))
    texts[teller] = await textOf(named(words, run), place);
  documents.redacted = await exportRun(place.journal, run, { redact: true }).catch(refusal);
  documents.spans = await spansOf(place.journal, run);
  documents.prefixes = await prefixesOf(run, bundle, place);
  const drawings = Object.values(bundle.flows).map(drawingOf);
  documents.outline = drawings.map(({ outline }) => outline);
  texts.graph = drawings.map(({ text }) => text).join("\n");
  texts.progress = await progressOf(place.journal, run, false);
  texts["progress-verbose"] = await progressOf(place.journal, run, true);
  return { documents, texts };
}

/** Runs that were sketched for a test may hold what no file of a flow can. */
function refusal(error: unknown): unknown {
  return { refused: (error as { readonly code?: string }).code };
}

function named(words: readonly string[], run: string): readonly string[] {
  return words.map((word) => (word === "RUN" ? run : word));
}

/** The document of a command, or its lines where it prints one for each thing; with the exit code. */
export async function documentOf(
  words: readonly string[],
  { stateDir, env }: Omit<Place, "journal">,
): Promise<unknown> {
  const { code, out, err } = await lockstep([...words, "--json", "--state", stateDir], env);
  const lines = out.split("\n").filter((line) => line !== "");
  const parsed = lines.map((line) => JSON.parse(line.replaceAll(stateDir, "STATE"), withoutRates) as unknown);
  const document = words[0] === "logs" ? parsed : parsed[0];
  return { code, err: err.replaceAll(stateDir, "STATE"), document };
}

function withoutRates(key: string, value: unknown): unknown {
  return key === "eventsPerSecond" ? undefined : value;
}

/** What a command prints: the result, and below it what it says besides. */
export async function textOf(
  words: readonly string[],
  { stateDir, env }: Omit<Place, "journal">,
): Promise<string> {
  const { code, out, err } = await lockstep([...words, "--state", stateDir], env);
  const besides = err === "" ? "" : `--- stderr\n${err}`;
  return `${out}${besides}--- exit ${code}\n`.replaceAll(stateDir, "STATE");
}

/** What is due after each entry, and what would be shown of a run that had come no further: `2 step.answered: ask | interrupted`. */
async function prefixesOf(run: string, bundle: Bundle, { journal }: Place): Promise<readonly string[]> {
  const [row] = await journal.rows([run]);
  const entries = await journal.read(run);
  const lines: string[] = [];
  for await (const { entry, state } of entriesOf(journal, run)) {
    const part = createMemoryJournal();
    const about = {
      id: run,
      agent: row!.agent,
      at: 0,
      digest: row!.digest,
      flow: bundle.flows[row!.digest]!,
    };
    await (await part.create(about, entries.slice(0, entry.seq), bundle.flows)).release();
    const { outcome, code, resumable, exitCode, iterations } = await show(part, run, NOW);
    const due = state.pending.map((command) =>
      "step" in command ? `${command.type} ${command.step}#${command.visit}` : command.type,
    );
    const stands = [
      outcome,
      code ?? "-",
      exitCode,
      resumable ? "resumable" : "final",
      `${iterations} iterations`,
    ];
    lines.push(`${entry.seq} ${entry.event.type}: ${due.join(", ") || "nothing"} | ${stands.join(" ")}`);
  }
  return lines;
}
