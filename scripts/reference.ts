/**
 * Writes the pages that are made from the code: docs/registry.md (every key of the files), docs/findings.md (every
 * code that `check` knows), the exit codes in docs/cli.md, schemas/ (the same tables for editors) and AGENTS.md (the
 * first sentence of every source file). A test fails when they are not up to date: `npm run reference` mends that.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { EXIT_MEANINGS } from "../src/flow/verdict.ts";
import { AGENT } from "../src/load/agent-shape.ts";
import { CODES } from "../src/load/codes.ts";
import { COMPLETE_REGISTRY } from "../src/load/complete-shape.ts";
import { CHECK_REGISTRY } from "../src/load/questions-shape.ts";
import { REGISTRY } from "../src/load/registry-shape.ts";
import { MACHINE, STAGE } from "../src/load/stage-shape.ts";
import { toJsonSchema, type Form } from "../src/load/shape.ts";
import { CONFIG } from "../src/run/config-shape.ts";
import { SCRIPT } from "./script-shape.ts";

export function pages(): { readonly [file: string]: string } {
  return {
    "docs/registry.md": [
      "# agent.json, steps_registry.json, stage files and machine.yaml",
      "",
      "Every key that is read, with its default. Unknown keys are warned about. This page is made from the tables that read",
      "the files (`npm run reference`). How a flow behaves is told in [How a run goes](how-a-run-goes.md); a whole example is",
      "[examples/01-fix-a-test](../examples/01-fix-a-test/.agent/fixer/).",
      "",
      "## agent.json",
      "",
      ...table(AGENT),
      "",
      "## steps_registry.json",
      "",
      ...table(REGISTRY),
      "",
      "## steps_registry.json with check prompts",
      "",
      "The form with check prompts; what it means, and how other forms differ: [dialects.md](dialects.md).",
      "",
      ...table(CHECK_REGISTRY),
      "",
      "## stages/*.md",
      "",
      "The front matter of a stage file; what stages are and how they are written: [stages.md](stages.md). Keys that are not",
      "listed are passed over.",
      "",
      ...table(STAGE),
      "",
      "## machine.yaml",
      "",
      ...table(MACHINE),
      "",
    ].join("\n"),
    "docs/findings.md": [
      "# What `lockstep check` finds",
      "",
      "Each finding names the file, the line, a JSON pointer, what is wrong, why it matters and what to do. Errors keep an",
      "agent from running; an error about steps that the selected entry never leads to is shown as a warning. `--strict`",
      "makes warnings errors. This page is made from the rule table (`npm run reference`).",
      "",
      "| code | | finding | why |",
      "|---|---|---|---|",
      ...Object.entries(CODES).map(
        ([code, { severity, title, why }]) => `| \`${code}\` | ${severity} | ${title} | ${cell(why)} |`,
      ),
      "",
    ].join("\n"),
    "docs/cli.md": withExitCodes(readFileSync("docs/cli.md", "utf8")),
    "schemas/agent.schema.json": schemaFile("agent.json of a Lockstep agent", AGENT),
    "schemas/steps_registry.schema.json": schemaFile(
      "steps_registry.json of a Lockstep agent",
      REGISTRY,
      CHECK_REGISTRY,
      COMPLETE_REGISTRY,
    ),
    "schemas/stage.schema.json": schemaFile("Front matter of a Lockstep stage file", STAGE),
    "schemas/machine.schema.json": schemaFile("machine.yaml of a Lockstep agent", MACHINE),
    "schemas/config.schema.json": schemaFile("config.json of a Lockstep user", CONFIG),
    "schemas/script.schema.json": schemaFile("Script for the scripted model of Lockstep", SCRIPT),
    "AGENTS.md": [
      MAP_HEAD,
      ...ROOMS.map(([room, about]) => ["", `### ${room}/`, "", about, "", files(room)].join("\n")),
      "",
    ].join("\n"),
  };
}

/** The table under the heading, up to the next paragraph. */
function withExitCodes(page: string): string {
  const rows = EXIT_MEANINGS.map(([codes, meaning]) => `| ${codes.join(", ")} | ${meaning} |`);
  const table = ["## Exit codes", "", "| code | means |", "|---|---|", ...rows, "", ""].join("\n");
  return page.replace(/## Exit codes\n\n(?:\|.*\n)*\n/, () => table);
}

const root = new URL("../", import.meta.url).pathname;

const ROOMS = [
  ["flow", "The picture. Types and small pure functions; imports nothing."],
  ["load", "Text in, a Flow or Problems out. Imports flow. Pure."],
  ["engine", "The heart. Imports flow. Pure but for the ports it is given."],
  ["prompts", "What is said to the model. Imports flow. Pure."],
  ["backends", "Models, one file each. Imports flow and engine/ports."],
  ["boundaries", "What a step may touch. Imports flow and engine/ports."],
  ["effects", "What we do to the world. Imports flow and engine/ports."],
  ["journal", "Where runs are recorded. Imports flow and engine/ports."],
  ["testing", "The public kit (`lockstep/testing`). Imports all above."],
  ["run", "The composition root and the API (`lockstep`). Imports all above but testing."],
  ["cli", "The command. Imports flow, load, run, testing."],
] as const;

const MAP_HEAD = `# Map of the code

One idea: **prompt → payload → label → move**. A flow is data, \`decide\` is pure, \`drive\` folds the journal, performs what
is pending, appends what happened, and goes round. Follow one run: \`cli/main.ts\` → \`cli/run.ts\` → \`load/agent.ts\` →
\`run/run.ts\` → \`run/stretch.ts\` → \`engine/drive.ts\` → \`engine/decide.ts\` → \`engine/gate.ts\` → \`engine/route.ts\` →
\`engine/perform.ts\` → \`journal/sqlite.ts\` → \`run/result.ts\` → \`cli/report.ts\`.

- \`npm run check\` is the gate: types, lint, format, tests. \`npm run lockstep -- …\` runs the command from source.
- Rooms below import only what their line says; \`test/house.test.ts\` fails otherwise. The pure rooms touch no clock,
  chance, environment, disk, network or process: those arrive as parameters.
- \`test/\` mirrors \`src/\`. \`*.test.ts\` run in one process, \`*.proc.ts\` (they start processes) each in its own.
- A new file starts with one sentence saying what it is; \`npm run reference\` puts it on this map.
- Beside \`src/\`: \`examples/\` (each run by a test), \`docs/\` (by task), \`docs/decisions/\` (why), \`bench/\` (measurements
  that are not part of the product), \`scripts/\` (setup, build, this map).

## src/`;

/** Several forms: a file has one of them. */
function schemaFile(title: string, ...forms: readonly Form[]): string {
  const [only, ...others] = forms.map(toJsonSchema);
  const body = others.length === 0 ? only : { anyOf: [only, ...others] };
  const schema = { $schema: "http://json-schema.org/draft-07/schema#", title, ...body };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/** One line a file: its first sentence. */
function files(room: string): string {
  return globSync(`src/${room}/*.ts`, { cwd: root })
    .toSorted()
    .map((file) => `- \`${file.split("/").at(-1)}\`: ${firstSentence(readFileSync(root + file, "utf8"))}`)
    .join("\n");
}

function firstSentence(code: string): string {
  const comment = /\/\*\*([\s\S]*?)\*\//.exec(code)?.[1] ?? "";
  const text = comment
    .replaceAll(/^\s*\* ?/gm, "")
    .trim()
    .replaceAll(/\s+/g, " ");
  return /^.*?[.:](?= [A-Z]|$)/.exec(text)?.[0].replace(/:$/, ".") ?? text;
}

function table(form: Form): readonly string[] {
  return ["| key | value | default | meaning |", "|---|---|---|---|", ...rows(form, "")];
}

function rows(form: Form, path: string): readonly string[] {
  const below = (key: string) => (path === "" ? key : `${path}.${key}`);
  if (form.kind === "map") return [row(form, path), ...inside(form.of, below("<name>"))];
  if (form.kind === "list") return [row(form, path), ...inside(form.of, `${path}[]`)];
  if (form.kind !== "object") return [row(form, path)];
  const own = path === "" ? [] : [row(form, path)];
  return [...own, ...Object.entries(form.fields).flatMap(([key, field]) => rows(field, below(key)))];
}

function inside(form: Form, path: string): readonly string[] {
  return form.kind === "object" ? rows(form, path).slice(1) : [];
}

function row(form: Form, path: string): string {
  const fallback = form.default === undefined ? "" : `\`${JSON.stringify(form.default)}\``;
  const needed = form.required ? "**required**" : fallback;
  return `| \`${path}\` | ${cell(kindOf(form))} | ${needed} | ${cell(form.doc)} |`;
}

function kindOf(form: Form): string {
  switch (form.kind) {
    case "text":
      return form.enum ? form.enum.map((word) => `\`${word}\``).join(", ") : "text";
    case "number":
      return form.min === undefined ? "number" : `number ≥ ${form.min}`;
    case "flag":
      return "true or false";
    case "list":
      return "list";
    case "map":
    case "object":
      return "object";
    case "any":
      return form.types?.join(" or ") ?? "any value";
  }
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

if (import.meta.main) {
  for (const [file, text] of Object.entries(pages())) writeFileSync(root + file, text);
}
