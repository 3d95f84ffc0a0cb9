/** Rules about commands: lists with entries that are as good as any command, and values that could be options. */
import { openEntries } from "../../flow/open-commands.ts";
import { atPart, atStep, type LoadedFlow, type Registered } from "./loaded.ts";
import { warning, type Codes, type Rules, type Tell } from "./rule.ts";

export const rules: Rules = { all: [checkCommandList], gated: [checkArguments] };

export const codes = {
  "BASH-LIST-OPEN": warning(
    "command list that can be bypassed",
    "A command list only compares how commands begin. Many programs can run or write anything through their options, so the list guides a cooperative model but does not stop any other.",
  ),
  "ARGUMENT-OPTION": warning(
    "value that could be an option",
    "Handoff values come from a model. A program reads a value that begins with a dash as an option, and options can run or write anything.",
  ),
} satisfies Codes;

function checkCommandList(loaded: LoadedFlow, tell: Tell): void {
  const open = openEntries(loaded.agent.runner.boundaries.allowedTools);
  // Where any command is allowed anyway, no list is taken for a limit.
  if (open === "any") return;
  const [first] = open;
  if (first === undefined) return;
  const entries = open.slice(0, MOST_NAMED).map(({ tool, how }) => `"${tool}": ${how}`);
  const more = open.length > MOST_NAMED ? [`and ${open.length - MOST_NAMED} more`] : [];
  tell({
    code: "BASH-LIST-OPEN",
    ...atPart(loaded, "settings", "runner", "boundaries", "allowedTools", String(first.index)),
    message: `${open.length === 1 ? "An entry" : `${open.length} entries`} of allowedTools can run or write anything. ${[...entries, ...more].join("; ")}.`,
    fix: `${first.instead} If the entry is to stay, let the sandbox be the limit, not the list.`,
  });
}

const MOST_NAMED = 5;

/** Values that are an argument of their own, where the program would take one with a dash for an option. */
function checkArguments(loaded: Registered, tell: Tell): void {
  const { steps } = loaded.sources.registry;
  for (const id of steps.keys()) {
    const { command, args = [] } = steps.get(id)!.runner ?? {};
    if (command === undefined || !TAKES_DASHES.has(command.replace(/^.*\//, ""))) continue;
    const end = args.indexOf("--");
    const index = args.findIndex((arg, place) => arg.startsWith("${context.") && (end === -1 || place < end));
    // `--message ${context.text}`: the value belongs to the option before it.
    if (index === -1 || /^--?[A-Za-z][\w-]*$/.test(args[index - 1] ?? "")) continue;
    const { document, pointer } = atStep(loaded, id, "runner");
    tell({
      code: "ARGUMENT-OPTION",
      document,
      pointer: `${pointer}/args/${index}`,
      message: `The step "${id}" gives "${args[index]!}" to ${command}, which takes it for an option where it begins with a dash.`,
      fix: 'Put "--" before it in args.',
    });
  }
}

/** Programs that know `--`, and of which some option is dangerous. */
const TAKES_DASHES: ReadonlySet<string> = new Set(
  "git gh rg grep sort rm cp mv ln cat ls mkdir touch tar sed rsync diff head tail wc".split(" "),
);
