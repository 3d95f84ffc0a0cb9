/** Asks ripgrep which files need not be read. It only ever spares work: what it does not name is read all the same. */
import { literalsOf } from "./literals.ts";
import type { ToolSurroundings } from "./tool.ts";

export type Sparing = {
  /** A file is spared when it holds nothing that this JavaScript pattern could match. */
  readonly pattern: string;
  readonly ignoreCase: boolean;
  /** Absolute and real. */
  readonly folder: string;
  /** Hints: files and folders that are not of interest. */
  readonly glob: string | undefined;
  readonly skip: readonly string[];
  readonly maxBytes: number;
};

/**
 * Paths below the folder of files that were searched from end to end, cannot match, and hold no NUL, so that they are not
 * binary either. Patterns mean other things to ripgrep, so it looks for the texts that every match has. Empty when there
 * are none, where there is no ripgrep, or where it fails.
 */
export async function filesWithout(
  sparing: Sparing,
  { env, exec, search = exec, programs }: Pick<ToolSurroundings, "env" | "exec" | "search" | "programs">,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const texts = literalsOf(sparing.pattern, sparing.ignoreCase);
  const program = programs?.rg ?? null;
  if (texts === null || program === null) return new Set();
  const seen = env();
  const command = [program, ...argumentsFor(texts, sparing)];
  const limits = { timeoutMs: TIMEOUT_MS, maxOutputBytes: MAX_OUTPUT_BYTES, signal };
  const result = await search({ command, cwd: sparing.folder, env: seen, ...limits }).catch(() => null);
  // With 2 it could not read some files; those are not in its list.
  const isWhole = result !== null && !result.timedOut && [0, 1, 2].includes(result.exitCode ?? -1);
  return new Set(isWhole ? pathsIn(result.stdout) : []);
}

const TIMEOUT_MS = 20_000;
const MAX_OUTPUT_BYTES = 32 * 1024 * 1024;

function argumentsFor(
  texts: readonly string[],
  { ignoreCase, glob, skip, maxBytes }: Sparing,
): readonly string[] {
  return [
    ...FLAGS,
    `--max-filesize=${maxBytes}`,
    ...(ignoreCase ? ["--ignore-case"] : []),
    ...(glob === undefined ? [] : [`--glob=${glob}`]),
    ...skip.map((name) => `--glob=!${name}/`),
    ...texts.map((text) => `--regexp=${escaped(text)}`),
    "--regexp=\\x00",
    "--",
    ".",
  ];
}

/** Every file, as bytes, whatever an ignore file, a configuration or a mark at its start says. */
const FLAGS = [
  "--no-config --files-without-match --null --text --encoding=none --no-mmap --no-messages --color=never",
  "--no-ignore --hidden --no-follow --no-pre --no-search-zip --engine=default",
].flatMap((flags) => flags.split(" "));

function escaped(text: string): string {
  return text.replace(
    /[^\w\u0080-\uffff]/g,
    (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

/** A name that is not UTF-8 looks like others that are not. */
function pathsIn(stdout: string): readonly string[] {
  const paths = stdout.split("\0").filter((path) => !path.includes("\ufffd"));
  return paths.map((path) => path.replace(/^\.\//, ""));
}
