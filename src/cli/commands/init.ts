/** `lockstep init NAME`: an agent of steps, a machine of stages, or one of the ready-made flows. */
import { dirname, join, relative, resolve } from "node:path";
import { RunnerError } from "../../run/errors.ts";
import { findProject } from "../../run/world/project.ts";
import { UsageError } from "../args.ts";
import { TEMPLATES, type AgentTemplate, type CallOf } from "../commands.ts";
import { requireCopies, schemasFrom, wayToCopies, writeSchemas } from "../schemas.ts";
import { hasBlank, initFiles, type Blanks } from "./init-files.ts";
import { projectFacts } from "./init-project.ts";
import { listTemplates, TEMPLATE_FACTS, templateLines, templateNamed } from "./init-templates.ts";
import { requireFree, writeAgent } from "./init-write.ts";
import { shellWord } from "../text/text.ts";

/** It also begins the names of branches and worktrees. */
const LONGEST_NAME = 100;

export async function initAgent(call: CallOf<"init">): Promise<number> {
  const [name] = call.words;
  if (name === undefined) return unnamed(call);
  if (name.length > LONGEST_NAME)
    throw new UsageError(`The name has ${name.length} characters; the limit is ${LONGEST_NAME}.`);
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) {
    throw new UsageError(
      `"${name}" cannot name an agent: use lower-case letters, digits and single dashes, as in my-agent.`,
    );
  }
  const project = findProject(call.cwd);
  const { agentsDir, root } = project;
  const folder = join(agentsDir, name);
  requireFree(project, name);
  const template = wanted(call) ?? (await chosen(call));
  const { tests, blanks } = filledIn(call, template, root);
  const known = schemasFrom(project, folder);
  const isCopied = known === null || known === wayToCopies(project, folder);
  if (isCopied) requireCopies(project);
  const texts = initFiles(name, known ?? wayToCopies(project, folder), template, blanks);
  writeAgent(project, name, texts);
  const schemas = isCopied ? writeSchemas(project) : [];
  const shown = (path: string) => relative(resolve(call.cwd), path);
  const where = call.flags.cwd === undefined ? "" : ` --cwd ${shellWord(call.flags.cwd)}`;
  const next = [
    `lockstep check ${name}${where}`,
    `lockstep test ${name}${where}`,
    `lockstep run ${name} ${TEMPLATE_FACTS[template].example} --script ${shellWord(shown(join(folder, "script.yaml")))}${where}`,
  ];
  const paths = Object.keys(texts).map((path) => shown(join(folder, path)));
  if (call.flags.json)
    call.screen.document({
      v: 1,
      agent: name,
      template,
      tests,
      files: paths,
      schemas: schemas.map(shown),
      next,
    });
  else {
    const about = [...aboutName(name, template), ...aboutTests(tests, paths)];
    const copied = isCopied ? [`${shown(dirname(schemas[0]!))} (JSON Schemas for editors)`] : [];
    const lines = [
      ...paths,
      ...copied,
      "",
      ...about,
      "Next:",
      ...next.map((line) => `  ${call.typed(line)}`),
    ];
    call.screen.print(lines.join("\n"));
  }
  return 0;
}

/** Without a name only the list of templates can be asked for. */
function unnamed({ flags: { template, json }, screen }: CallOf<"init">): number {
  if (template !== "help") {
    if (template !== undefined) templateNamed(template);
    throw new UsageError("init needs NAME, as in: lockstep init notes");
  }
  if (json) screen.document({ v: 1, templates: listTemplates() });
  else screen.print(`The templates are:\n${templateLines().join("\n")}`);
  return 0;
}

/** null: the line does not say which one. */
function wanted({ flags: { template, stages } }: CallOf<"init">): AgentTemplate | null {
  if (template === undefined) return stages ? "stages" : null;
  const named = templateNamed(template);
  if (stages && named !== "stages")
    throw new UsageError(`--stages and --template ${named} create different agents: leave one of them out.`);
  return named;
}

/** At a terminal a person chooses; elsewhere it is the plain one. */
async function chosen(call: CallOf<"init">): Promise<AgentTemplate> {
  if (!call.screen.isAnswering || call.flags.json) return "steps";
  const { askLine } = await import("../conduct.ts");
  const question = ["Which template?", ...templateLines(), "Its name, or Enter for steps:"].join("\n");
  const stopped = call.host.stopped();
  const line = await askLine(call, question, stopped);
  if (stopped.aborted) throw new RunnerError("INTERRUPTED", "Nothing was written.");
  if (line === null) throw new UsageError("No template was chosen. Name one with --template T.");
  return line.trim() === "" ? "steps" : templateNamed(line.trim());
}

/** A command that passes wherever git works: a template has to be changed where no tests were found, and says so. */
const NO_TESTS = "git diff --check";

/** What a check of the agent runs, if it runs the tests of the project. */
type Tests = { readonly command: string; readonly isFound: boolean };

function filledIn(
  { flags: { check } }: CallOf<"init">,
  template: AgentTemplate,
  root: string,
): { readonly tests: Tests | null; readonly blanks: Blanks } {
  const isTested = hasBlank(template, "TESTS");
  if (check !== undefined && !isTested)
    throw new UsageError(
      `--check is for templates that run the tests of the project: ${template} runs none.`,
    );
  if (check?.trim() === "") throw new UsageError("--check needs a command, such as --check 'make test'.");
  const facts = projectFacts(root);
  const found = check ?? facts.tests;
  const command = found ?? NO_TESTS;
  const about =
    found === null
      ? "No test command was found in this project, so this one only looks for conflict marks and white space. Put yours here."
      : "Decides whether the work is good. Change it here.";
  const { outdated, docs } = facts;
  return {
    tests: isTested ? { command, isFound: found !== null } : null,
    blanks: { TESTS: command, ABOUT: about, OUTDATED: outdated, DOCS: docs },
  };
}

/** Who names an agent like a template may have meant the template. */
function aboutName(name: string, template: AgentTemplate): readonly string[] {
  const meant = TEMPLATES.find((one) => one === name);
  if (meant === undefined || meant === template) return [];
  return [
    `This is the template ${template}. The ready-made flow ${meant} is created with: lockstep init NAME --template ${meant}`,
    "",
  ];
}

function aboutTests(tests: Tests | null, paths: readonly string[]): readonly string[] {
  if (tests === null) return [];
  const place = paths.find((path) => /(?:machine\.yaml|steps_registry\.json)$/.test(path));
  return tests.isFound
    ? [`The check "tests" runs ${tests.command}. Change it in ${place}.`, ""]
    : [
        `No test command was found in this project: the check "tests" runs ${tests.command}, which proves little.`,
        `Put your command into ${place}, or create the agent with --check COMMAND.`,
        "",
      ];
}
