/** Help texts, made from the table of commands. */
import type { Parameter } from "../flow/flow.ts";
import { EXIT } from "../flow/verdict.ts";
import { BACKEND_IDS } from "../run/world/backend-table.ts";
import type { Flag } from "./args.ts";
import type { CommandCall } from "./call.ts";
import { commandNamed, COMMANDS, commandsOf, GLOBAL_FLAGS, type CliCommand } from "./commands.ts";
import { shownInLine, table, type Paint } from "./text/text.ts";
import { asTyped } from "./text/typed.ts";

/** What the exit codes mean, as the help and the docs say it. */
export const EXIT_MEANINGS: readonly (readonly [codes: readonly number[], meaning: string])[] = [
  [[EXIT.completed], "completed"],
  [[EXIT.failed], "the run failed or was aborted, or something that belongs to it could not be done outside"],
  [[EXIT.invalid], "usage error or invalid flow"],
  [[EXIT.unavailable], "configuration, backend, sandbox, trust, worktree or state folder unavailable"],
  [[EXIT.limit], "limit reached"],
  [[EXIT.waiting], "waiting for a person, or paused"],
  [[EXIT.unchecked], "checks never passed"],
  [[EXIT.testsFailed], "a test of a flow failed, or a threshold was missed"],
  [[EXIT.hungUp, EXIT.interrupted, EXIT.terminated], "stopped by SIGHUP, Ctrl-C or SIGTERM"],
];

/** `lockstep help [COMMAND]` */
export function printHelp({ words, flags, screen, host: { program } }: CommandCall): Promise<number> {
  const [name = "", verb] = words;
  const family = verb === undefined ? commandsOf(name) : [];
  const listed = name === "" ? COMMANDS : family.length > 0 ? family : [commandNamed(name, verb)];
  if (flags.json) screen.document(describe(listed));
  else if (name === "") screen.print(mainHelp(screen.out, program));
  else if (family.length > 0) screen.print(familyHelp(name, family, screen.out, program));
  else screen.print(listed.map((command) => commandHelp(command, screen.out, null, program)).join("\n\n"));
  return Promise.resolve(0);
}

/** The commands that share a first word. */
function familyHelp(word: string, family: readonly CliCommand[], paint: Paint, program: string): string {
  return [
    `${paint("bold", "Usage")}  ${program} ${word} COMMAND [flags]`,
    "",
    paint("bold", "Commands"),
    ...indent(table(family.map(rowOf))),
    "",
    asTyped(`\`lockstep ${family[0]!.name} --help\` shows the flags of one.`, program),
  ].join("\n");
}

function rowOf(command: CliCommand): readonly string[] {
  return [[command.name, ...command.words.map(wordText)].join(" "), command.summary];
}

export function mainHelp(paint: Paint, program = "lockstep"): string {
  const typed = (text: string) => asTyped(text, program);
  const commands = COMMANDS.map(rowOf);
  return [
    "Runs LLM agents as declared step flows. An agent is a folder .agent/NAME/.",
    "",
    `${paint("bold", "Usage")}  ${program} COMMAND [flags]`,
    "",
    paint("bold", "Commands"),
    ...indent(table(commands)),
    "",
    paint("bold", "Flags for every command"),
    ...indent(flagRows(GLOBAL_FLAGS, typed)),
    "",
    paint("bold", "Begin with"),
    ...indent(["lockstep init notes", "lockstep check notes", "lockstep help run"].map(typed)),
    "",
    paint("bold", "Exit codes"),
    ...indent(table(EXIT_MEANINGS.map(([codes, meaning]) => [codes.join(", "), meaning]))),
  ].join("\n");
}

/** `parameters`: those of the agent, where it is known. */
export function commandHelp(
  command: CliCommand,
  paint: Paint,
  parameters: readonly Parameter[] | null = null,
  program = "lockstep",
): string {
  const flags = parameters === null ? command.flags : command.flags.map((flag) => besides(flag, parameters));
  const typed = (text: string) => asTyped(text, program);
  const section = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : ["", paint("bold", title), ...indent(lines)];
  return [
    typed(`lockstep ${command.name}: ${command.summary}`),
    "",
    `${paint("bold", "Usage")}  ${[program, command.name, ...command.words.map(wordText), "[flags]"].join(" ")}`,
    ...section("Parameters of the agent", parameters === null ? [] : parameterRows(parameters)),
    ...section("Flags", flagRows(flags, typed)),
    ...section(
      "Flags for every command",
      flagRows(
        GLOBAL_FLAGS.map((flag) => besides(flag, parameters ?? [])),
        typed,
      ),
    ),
    ...section("Notes", (command.details ?? []).map(typed)),
    ...section("Examples", command.examples.map(typed)),
  ].join("\n");
}

function parameterRows(parameters: readonly Parameter[]): readonly string[] {
  if (parameters.length === 0) return ["none"];
  return table(parameters.map((parameter) => [parameterUse(parameter), parameterAbout(parameter)]));
}

function parameterUse({ flag, type }: Parameter): string {
  if (type === "boolean") return `${flag}, --no-${flag.slice(2)}`;
  return type === "array" ? `${flag} VALUE …` : `${flag} ${type.toUpperCase()}`;
}

function parameterAbout({ type, description, required, default: fallback, validation }: Parameter): string {
  const { min, max, pattern, enum: values } = validation ?? {};
  const facts = [
    type,
    required ? "required" : fallback === undefined ? "optional" : `default ${JSON.stringify(fallback)}`,
    ...(type === "array" ? ["may be repeated"] : []),
    ...(min === undefined ? [] : [`min ${min}`]),
    ...(max === undefined ? [] : [`max ${max}`]),
    ...(pattern === undefined ? [] : [`matches ${pattern}`]),
    ...(values === undefined ? [] : [`one of ${values.map((value) => JSON.stringify(value)).join(", ")}`]),
  ];
  return shownInLine(`${description === "" ? "" : `${description} `}(${facts.join(", ")})`, 400);
}

/** How a flag is written beside the agent's parameters. */
function besides(flag: Flag, parameters: readonly Parameter[]): Flag {
  return parameters.some((parameter) => parameter.flag === `--${flag.name}`)
    ? { ...flag, name: `ls-${flag.name}` }
    : flag;
}

function flagRows(flags: readonly Flag[], typed: (text: string) => string): readonly string[] {
  return table(
    flags.map(({ name, short, takes, help, offers }) => {
      const long = `--${name}${takes === undefined ? "" : ` ${takes}`}`;
      const more = offers === "backend" ? `: ${BACKEND_IDS.join(", ")}` : "";
      return [short === undefined ? `    ${long}` : `-${short}, ${long}`, typed(help + more)];
    }),
  );
}

function wordText({ name, optional, repeats }: CliCommand["words"][number]): string {
  const text = repeats === undefined ? name : `${name} …`;
  return optional === undefined ? text : `[${text}]`;
}

function indent(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `  ${line}`);
}

/** The same for machines. */
function describe(commands: readonly CliCommand[]): unknown {
  return {
    v: 1,
    commands: commands.map(({ name, summary, words, flags, examples }) => {
      return { name, summary, words, flags: flags.map(described), examples };
    }),
    flags: GLOBAL_FLAGS.map(described),
  };
}

function described(flag: Flag): object {
  return flag.yields ? flag : { ...flag, reserved: true };
}
