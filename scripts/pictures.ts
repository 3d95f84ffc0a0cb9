/** Writes docs/pictures/: flows of the examples and of the pages, as `lockstep graph` draws them. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { renderSvg } from "../src/cli/graph/graph-svg.ts";
import { outlineOf } from "../src/tell/outline.ts";
import { load } from "../src/run/load.ts";
import { TEMPLATES, type AgentTemplate } from "../src/cli/commands.ts";
import { initFiles } from "../src/cli/commands/init-files.ts";
import { stepsOf, write } from "./pages.ts";

const root = new URL("../", import.meta.url).pathname;

/** An agent of an example, or the one that a page has built at the end of a section. */
const PICTURES: {
  readonly [name: string]: { readonly agent: string } & (
    | { readonly example: string }
    | { readonly page: string; readonly heading: string }
    | { readonly template: AgentTemplate }
  );
} = {
  fixer: { example: "01-fix-a-test", agent: "fixer" },
  ship: { example: "06-stage-machine", agent: "ship" },
  "registry-conditions": { page: "docs/registry-flows.md", heading: "5. Conditions", agent: "tour" },
  "registry-verification": {
    page: "docs/registry-flows.md",
    heading: "7. Verification and escalation",
    agent: "tour",
  },
  ...Object.fromEntries(
    TEMPLATES.filter((name) => name !== "steps" && name !== "stages").map((template) => [
      `template-${template}`,
      { template, agent: template },
    ]),
  ),
};

export async function pictures(): Promise<{ readonly [file: string]: string }> {
  const drawn = Object.entries(PICTURES).map(async ([name, from]) => {
    const svg =
      "example" in from
        ? await drawingOf(from.agent, join(root, "examples", from.example))
        : "template" in from
          ? await drawingOfTemplate(from.template)
          : await drawingOnPage(from.agent, from.page, from.heading);
    return [`docs/pictures/${name}.svg`, svg] as const;
  });
  return Object.fromEntries(await Promise.all(drawn));
}

async function drawingOf(agent: string, cwd: string): Promise<string> {
  const { flow, problems } = await load(agent, { cwd });
  if (flow === null)
    throw new Error(`${agent} in ${cwd}: ${problems.map(({ message }) => message).join(" ")}`);
  return `${renderSvg(outlineOf(flow, problems))}\n`;
}

async function drawingOfTemplate(template: AgentTemplate): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-picture-"));
  try {
    for (const [path, text] of Object.entries(initFiles(template, undefined, template))) {
      const file = join(folder, ".agent", template, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
    return await drawingOf(template, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function drawingOnPage(agent: string, page: string, heading: string): Promise<string> {
  const steps = stepsOf(readFileSync(join(root, page), "utf8"));
  const last = steps.findLastIndex((step) => step.heading === heading);
  if (last === -1) throw new Error(`${page} has nothing below "${heading}".`);
  const folder = mkdtempSync(join(tmpdir(), "lockstep-picture-"));
  try {
    for (const step of steps.slice(0, last)) if (step.kind !== "typed") write(folder, step);
    return await drawingOf(agent, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  mkdirSync(join(root, "docs/pictures"), { recursive: true });
  for (const [file, text] of Object.entries(await pictures())) writeFileSync(join(root, file), text);
}
