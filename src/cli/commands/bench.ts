/** `lockstep bench`: every part in a process of its own, because one warms up the machine for the next. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { CallOf } from "../commands.ts";
import { PARTS, type Part } from "../commands.ts";
import { measure, type Row } from "../bench/measure.ts";
import { table } from "../text/text.ts";

export async function bench({ flags, screen, cwd }: CallOf<"bench">): Promise<number> {
  const isSource = import.meta.url.endsWith(".ts");
  const main = fileURLToPath(new URL(isSource ? "../main.ts" : "main.js", import.meta.url));
  const cli = [process.execPath, main];
  const part = flags.part;
  const rows =
    part === undefined
      ? PARTS.flatMap((each) => inOwnProcess(cli, each, cwd, screen.tell))
      : await measure(part, { cli, folder: cwd });
  const ok = rows.every((row) => row.ok);
  if (flags.json)
    screen.document({ v: 1, ok, node: process.version, build: isSource ? "source" : "package", rows });
  else screen.print(toTable(rows, (head) => screen.out("dim", head)));
  return flags.check && !ok ? 1 : 0;
}

function inOwnProcess(
  [node = "", ...main]: readonly string[],
  part: Part,
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

function toTable(rows: readonly Row[], dim: (text: string) => string): string {
  const cells = rows.map(({ name, value, unit, limit, ok, detail }) => [
    ok ? "ok" : "over",
    name,
    `${value} ${unit}`,
    limit === null ? "-" : `${limit} ${unit}`,
    detail,
  ]);
  const [head = "", ...lines] = table([["", "MEASURE", "VALUE", "LIMIT", "DETAIL"], ...cells]);
  return [dim(head), ...lines].join("\n");
}
