/**
 * Writes the pages that are made from tables: docs/registry.md (every key of the two files) and docs/findings.md (every
 * code that `check` knows). A test fails when they are not up to date: `npm run reference` mends that.
 */
import { writeFileSync } from "node:fs";
import { AGENT } from "../src/load/agent-shape.ts";
import { CODES } from "../src/load/codes.ts";
import { REGISTRY } from "../src/load/registry-shape.ts";
import type { Form } from "../src/load/shape.ts";

export function pages(): { readonly [file: string]: string } {
  return {
    "docs/registry.md": [
      "# agent.json and steps_registry.json",
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
  };
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
  for (const [file, text] of Object.entries(pages())) writeFileSync(new URL(`../${file}`, import.meta.url), text);
}
