/** `lockstep bench`: every part in a process of its own, because one warms up the machine for the next. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { PARTS, type CallOf, type BenchPart } from "../commands.ts";
import { packageFile } from "../../flow/package-file.ts";
import { headed, type Paint } from "../text/text.ts";

/** What bench/measure.ts exports. It is not part of src/: only this command loads it, as a file of the package. */
export type Bench = {
  readonly measure: (part: BenchPart, options: BenchOptions) => Promise<readonly Row[]>;
};

export type BenchOptions = {
  /** How this program is started, for what has to be measured in a process of its own. */
  readonly cli: readonly string[];
  /** The folder whose disk is measured. */
  readonly folder: string;
};

export type Row = {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The value must not be above it; null: for information only. */
  readonly limit: number | null;
  readonly ok: boolean;
  readonly detail: string;
};

export async function bench({ flags, screen, cwd }: CallOf<"bench">): Promise<number> {
  const isSource = import.meta.url.endsWith(".ts");
  const [main, code] = isSource
    ? ["src/cli/main.ts", "bench/measure.ts"]
    : ["dist/bin/main.js", "dist/bin/bench.js"];
  const cli = [process.execPath, fileURLToPath(packageFile(main))];
  const { part } = flags;
  const rows =
    part === undefined
      ? PARTS.flatMap((each) => inOwnProcess(cli, each, cwd, screen.tell))
      : await ((await import(packageFile(code).href)) as Bench).measure(part, { cli, folder: cwd });
  const ok = rows.every((row) => row.ok);
  if (flags.json)
    screen.document({ v: 1, ok, node: process.version, build: isSource ? "source" : "package", rows });
  else screen.print(toTable(rows, screen.out));
  return flags.check && !ok ? 1 : 0;
}

function inOwnProcess(
  [node = "", ...main]: readonly string[],
  part: BenchPart,
  cwd: string,
  log: (line: string) => void,
): readonly Row[] {
  log(`measuring ${part} …`);
  const { stdout, stderr, status } = spawnSync(node, [...main, "bench", "--part", part, "--json"], {
    cwd,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`Measuring ${part} failed: ${stderr}`);
  return (JSON.parse(stdout) as { readonly rows: readonly Row[] }).rows;
}

function toTable(rows: readonly Row[], paint: Paint): string {
  const cells = rows.map(({ name, value, unit, limit, ok, detail }) => [
    ok ? "ok" : "over",
    name,
    `${value} ${unit}`,
    limit === null ? "-" : `${limit} ${unit}`,
    detail,
  ]);
  return headed(paint, [["", "MEASURE", "VALUE", "LIMIT", "DETAIL"], ...cells]).join("\n");
}
