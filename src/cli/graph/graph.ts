/** `lockstep graph NAME`: the flow as a drawing, with what `check` found marked on it. */
import { notWritable, writeWhole } from "../../run/world/write-whole.ts";
import { extname, resolve } from "node:path";
import { EXIT } from "../../flow/verdict.ts";
import { budgetOf } from "../../tell/budget.ts";
import { outlineOf, type Outline } from "../../tell/outline.ts";
import type { Loaded } from "../../run/index.ts";
import { RunnerError } from "../../run/errors.ts";
import { loadNamed } from "../agent.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { tellFindings } from "../commands/check.ts";
import { renderDot } from "./graph-dot.ts";
import { renderMermaid } from "./graph-mermaid.ts";
import { renderSvg } from "./graph-svg.ts";
import { renderText } from "./graph-text.ts";
import { createPaint, jsonLine } from "../text/text.ts";

export async function drawGraph(call: CallOf<"graph">): Promise<number> {
  const { screen } = call;
  const [name = ""] = call.words;
  const file = call.flags.out;
  const format = formatOf(call);
  const loaded = await loadNamed(name, call.cwd);
  if (loaded.flow === null) return tellFindings(call, [loaded], name);
  const plain = outlineOf(loaded.flow, loaded.problems);
  requireSize(plain, format);
  const { coverage } = call.flags;
  const outline =
    coverage === undefined
      ? plain
      : await (
          await import("../coverage/coverage-drawn.ts")
        ).drawnCoverage(call, loaded, loaded.flow, plain, coverage);
  if (outline === null) return EXIT.invalid;
  if (file === undefined) {
    if (format === "json") screen.document(graphDocument(loaded, outline));
    else if (format === "text") screen.print(renderText(outline, screen.width, screen.out));
    else screen.emit(render(format, outline));
    return 0;
  }
  const path = resolve(call.cwd, file);
  const text = format === "json" ? jsonLine(graphDocument(loaded, outline), 2) : render(format, outline);
  try {
    writeWhole(path, `${text}\n`);
  } catch (cause) {
    throw notWritable(`The drawing cannot be written to ${file}`, path, cause);
  }
  screen.tell(`Wrote ${file}.`);
  return 0;
}

/** Lines of a drawing cross every row between two steps, so that their length counts. */
function requireSize(outline: Outline, format: Format): void {
  if ((format !== "text" && format !== "svg") || isDrawable(outline)) return;
  const size = `${outline.nodes.length} steps and ${outline.edges.length} ways between them`;
  throw new RunnerError(
    "USAGE",
    `The flow has ${size}: too large for a drawing. Use --format mermaid, dot or json.`,
  );
}

/** Whether the flow is small enough for a drawing. */
export function isDrawable({ nodes, edges }: Outline): boolean {
  const ranks = new Map(nodes.map(({ id, rank }) => [id, rank]));
  const spots = edges.reduce((sum, { from, to }) => {
    const end = to.kind === "step" ? ranks.get(to.step) : undefined;
    return sum + 1 + (end === undefined ? 0 : Math.abs(end - (ranks.get(from) ?? 0)));
  }, nodes.length);
  return spots <= MOST_SPOTS;
}

const MOST_SPOTS = 30_000;

type Format = NonNullable<CallOf<"graph">["flags"]["format"]>;

const FORMAT_BY_ENDING: ReadonlyMap<string, Format> = new Map([
  [".mmd", "mermaid"],
  [".mermaid", "mermaid"],
  [".dot", "dot"],
  [".gv", "dot"],
  [".svg", "svg"],
  [".json", "json"],
  [".txt", "text"],
]);

/** As it was said; else as the file is called; else for reading. */
function formatOf({ flags: { format, out, json } }: CallOf<"graph">): Format {
  if (format !== undefined) {
    if (json && format !== "json") throw new UsageError(`--json and --format ${format} exclude each other.`);
    return format;
  }
  const ending = extname(out ?? "").toLowerCase();
  const named = ending === "" ? "text" : FORMAT_BY_ENDING.get(ending);
  if (named === undefined)
    throw new UsageError(
      `--out ${out}: there is no format for ${ending}. Name the file ${[...FORMAT_BY_ENDING.keys()].join(", ")}, or choose one with --format text|mermaid|dot|svg|json.`,
    );
  return json ? "json" : named;
}

function render(format: Exclude<Format, "json">, outline: Outline): string {
  switch (format) {
    case "text":
      return renderText(outline, FILE_WIDTH, createPaint(false));
    case "mermaid":
      return renderMermaid(outline);
    case "dot":
      return renderDot(outline);
    case "svg":
      return renderSvg(outline);
  }
}

const FILE_WIDTH = 120;

function graphDocument({ agent, flow, problems }: Loaded, { title, entry, nodes, edges }: Outline) {
  return {
    v: 1,
    agent,
    title,
    dialect: flow?.dialect ?? null,
    entry,
    nodes: nodes.map(({ findings, ...node }) => ({ ...node, findings: findings.map(({ code }) => code) })),
    edges,
    budget: flow === null ? null : budgetOf(flow),
    problems,
  };
}
