/** The templates of `lockstep init`, as a user chooses among them. */
import { UsageError } from "../args.ts";
import { TEMPLATES, type AgentTemplate } from "../commands.ts";

/** `example`: the arguments with which the script of the template runs. */
type TemplateFacts = { readonly about: string; readonly example: string };

export const TEMPLATE_FACTS: { readonly [T in AgentTemplate]: TemplateFacts } = {
  steps: {
    about: "a small agent to build on: plans a note, drafts it, closes",
    example: '--topic "tides"',
  },
  stages: {
    about: "the same as a stage machine, one Markdown file for each stage",
    example: '--topic "tides"',
  },
  "fix-issue": {
    about: "fixes a GitHub issue on a branch of its own, until the tests pass and a reviewer agrees",
    example: "--issue 12",
  },
  "review-loop": {
    about: "writes a text, has it reviewed by a reader who sees only the text, and revises until both agree",
    example: '--task "announce the first release"',
  },
  "implement-plan": {
    about: "cuts a plan into two parts, builds them side by side, then tests, reviews and commits",
    example: "--plan plan.md",
  },
  triage: {
    about: "reads a GitHub issue, finds the files it is about, and labels it",
    example: "--issue 12",
  },
  "upgrade-dependencies": {
    about: "upgrades packages and adapts the code; what does not pass the tests is set aside",
    example: '--scope "minor versions"',
  },
  "write-docs": {
    about: "writes a page of the documentation from the code, with links that lead somewhere",
    example: '--subject "getting started"',
  },
};

export function listTemplates(): readonly { readonly name: AgentTemplate; readonly about: string }[] {
  return TEMPLATES.map((name) => ({ name, about: TEMPLATE_FACTS[name].about }));
}

/** One line for each template. */
export function templateLines(): readonly string[] {
  const width = Math.max(...TEMPLATES.map((name) => name.length));
  return TEMPLATES.map((name) => `  ${name.padEnd(width)}  ${TEMPLATE_FACTS[name].about}`);
}

/** The template of this name. Anything else, such as `help`, is answered with the list. */
export function templateNamed(word: string): AgentTemplate {
  const found = TEMPLATES.find((name) => name === word);
  if (found !== undefined) return found;
  const begin = word === "help" ? "The templates are" : `There is no template "${word}". The templates are`;
  throw new UsageError(`${begin}:\n${templateLines().join("\n")}\n`);
}
