/** One process in which a defect is planted and tests run until one notices; without a defect it records what each test reaches. */
import { readFileSync } from "node:fs";
import { Session } from "node:inspector";
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import { collected, Failed, ran, stopwatch } from "./mutant-tests.ts";

export interface Job {
  /** The file that is served changed; nothing is ever written into it. */
  readonly mutant: { readonly file: string; readonly source: string } | null;
  /** Test files in the order in which they run, each with the numbers of its tests; null: all of them. */
  readonly files: readonly { readonly file: string; readonly tests: readonly number[] | null }[];
  /** Whether to record which lines of which files each test reaches. */
  readonly isRecorded: boolean;
}

export type Outcome =
  | { readonly is: "passed"; readonly recorded: readonly Recorded[]; readonly read: readonly string[] }
  | { readonly is: "failed"; readonly file: string; readonly test: string; readonly why: string };

export interface Recorded {
  /** Number of the test in its file; -1: what ran when the file was imported. */
  readonly number: number;
  readonly name: string;
  readonly ms: number;
  /** For each file of src/ the lines that ran, as hexadecimal bits. */
  readonly lines: { readonly [file: string]: string };
}

const root = new URL("../", import.meta.url);
const tests = new URL("mutant-tests.ts", import.meta.url).href;

process.once("message", (job: Job) => {
  void carriedOut(job).then(report);
});

let running = { file: "", test: "" };

function report(outcome: Outcome): void {
  process.send!(outcome, () => process.exit(0));
}

// What nothing waits for fails the test that is running, as it does with node:test.
for (const event of ["uncaughtException", "unhandledRejection"])
  process.on(event, (error) => report({ is: "failed", ...running, why: String(error) }));
// Nothing is left that could end the test that is running.
process.on("beforeExit", () => report({ is: "failed", ...running, why: "the test never ended" }));

async function carriedOut({ mutant, files, isRecorded }: Job): Promise<Outcome> {
  const mutated = mutant === null ? null : new URL(mutant.file, root).href;
  const read = new Set<string>();
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === "node:test" ? { url: tests, shortCircuit: true } : next(specifier, context),
    load: (url, context, next) => {
      if (url.startsWith(root.href) && !url.includes("/node_modules/")) read.add(url.slice(root.href.length));
      if (url !== mutated) return next(url, context);
      return { format: "module-typescript", source: mutant!.source, shortCircuit: true };
    },
  });
  const recorder = isRecorded ? startRecording() : null;
  const recorded: Recorded[] = [];
  for (const { file, tests: chosen } of files) {
    running = { file, test: "import" };
    try {
      const took = stopwatch();
      const suite = await collected(() => import(pathToFileURL(new URL(file, root).pathname).href));
      if (recorder !== null) recorded.push({ number: -1, name: "import", ms: took(), lines: recorder() });
      await ran(suite, {
        isChosen: (number) => chosen === null || chosen.includes(number),
        ended: (number, name, ms) => {
          if (recorder !== null) recorded.push({ number, name, ms, lines: recorder() });
        },
      });
    } catch (error) {
      return {
        is: "failed",
        file,
        test: error instanceof Failed ? error.test : "import",
        why: error instanceof Error ? (error.stack ?? error.message) : String(error),
      };
    }
  }
  return { is: "passed", recorded, read: [...read] };
}

/** Counts what runs from now on; each call gives the lines of src/ that ran since the last one. */
function startRecording(): () => Recorded["lines"] {
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  const src = new URL("src/", root).href;
  const sources = new Map<string, readonly number[]>();
  return () => {
    const lines: { [file: string]: string } = {};
    session.post("Profiler.takePreciseCoverage", (error, taken) => {
      if (error !== null) throw error;
      for (const { url, functions } of taken.result) {
        if (!url.startsWith(src)) continue;
        if (!functions.some(({ ranges }) => ranges.some(({ count }) => count > 0))) continue;
        const file = url.slice(root.href.length);
        const starts = sources.get(file) ?? lineStarts(readFileSync(new URL(url), "utf8"));
        sources.set(file, starts);
        lines[file] = bitsOf(
          reached(
            functions.flatMap(({ ranges }) => ranges),
            starts,
          ),
        );
      }
    });
    return lines;
  };
}

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

/** Which lines ran: of the ranges that hold a character the innermost counts, and it comes last. */
function reached(ranges: readonly Range[], starts: readonly number[]): readonly boolean[] {
  const ran = new Uint8Array(starts.at(-1)!);
  for (const { startOffset, endOffset, count } of ranges) ran.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  return starts.slice(0, -1).map((start, line) => ran.subarray(start, starts[line + 1]).includes(1));
}

/** Where each line begins behind its indentation, and the end of the text. */
function lineStarts(source: string): readonly number[] {
  const starts: number[] = [];
  let at = 0;
  for (const line of source.split("\n")) {
    starts.push(at);
    at += line.length + 1;
  }
  return [...starts, at];
}

function bitsOf(lines: readonly boolean[]): string {
  let text = "";
  for (let at = 0; at < lines.length; at += 4) {
    const bits = [0, 1, 2, 3].reduce((sum, bit) => sum + (lines[at + bit] === true ? 1 << bit : 0), 0);
    text += bits.toString(16);
  }
  return text;
}
