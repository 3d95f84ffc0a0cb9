/** `lockstep completion SHELL`: made from the table of commands, so it cannot fall behind. */
import { UsageError, type Flag } from "./args.ts";
import type { Call } from "./call.ts";
import { COMMANDS, GLOBAL_FLAGS, type Command, type Word } from "./commands.ts";

const SHELLS = { bash, zsh, fish } as const;

export function printCompletion({ words: [shell = ""], screen }: Call): Promise<number> {
  if (!Object.hasOwn(SHELLS, shell)) {
    const candidates = Object.keys(SHELLS);
    throw new UsageError(`There is no completion for "${shell}", only for ${candidates.join(", ")}.`, {
      word: shell,
      candidates,
    });
  }
  screen.emit(SHELLS[shell as keyof typeof SHELLS]());
  return Promise.resolve(0);
}

/**
 * What a shell offers. Agents are folders of the project, so no process is started for them; a folder with a strange
 * name is left out, because bash expands the words it is given.
 */
const OFFERS: { readonly [kind in Word["is"]]: string } = {
  agent: "$(_lockstep_agents)",
  run: "@last @failed",
  shell: Object.keys(SHELLS).join(" "),
  command: COMMANDS.map((command) => command.name).join(" "),
  worktrees: "list prune",
  trust: "show list revoke",
  new: "",
  step: "",
  file: "",
};

const AGENTS = `_lockstep_agents() {
  local each
  for each in .agent/*/; do
    [ -f "\${each}agent.json" ] || [ -d "\${each}stages" ] || continue
    each="\${each#.agent/}"
    each="\${each%/}"
    case "$each" in *[!a-z0-9-]*) ;; *) echo "$each" ;; esac
  done
}`;

function bash(): string {
  const cases = COMMANDS.map(({ name, words, flags }) => {
    const [word] = words;
    return `    ${name}) words="${word === undefined ? "" : OFFERS[word.is]}"; flags="${longFlags(flags)}" ;;`;
  });
  return `# lockstep completion for bash
${AGENTS}
_lockstep() {
  local here="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command="" words="" flags="" each
  for each in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$each" in -*) ;; *) command="$each"; break ;; esac
  done
  case "$before" in
    --script|--out|-o) mapfile -t COMPREPLY < <(compgen -f -- "$here"); return ;;
    --cwd|-C|--state) mapfile -t COMPREPLY < <(compgen -d -- "$here"); return ;;
  esac
  case "$command" in
${cases.join("\n")}
    *) words="${OFFERS.command}" ;;
  esac
  case "$here" in -*) words="$flags ${longFlags(GLOBAL_FLAGS)}" ;; esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$here")
}
complete -o default -F _lockstep lockstep`;
}

function zsh(): string {
  const cases = COMMANDS.map(({ name, words, flags }) => {
    const [word] = words;
    const offered = word === undefined ? "" : OFFERS[word.is];
    const offer = word?.is === "file" ? "_files; " : offered === "" ? "" : `compadd -- ${offered}; `;
    return `    ${name}) ${offer}compadd -- ${longFlags(flags)} ;;`;
  });
  return `#compdef lockstep
# lockstep completion for zsh
${AGENTS}
_lockstep() {
  local command="\${words[(r)(${COMMANDS.map(({ name }) => name).join("|")})]}"
  case "\${words[CURRENT-1]}" in
    --script|--out|-o) _files; return ;;
    --cwd|-C|--state) _files -/; return ;;
  esac
  case "$command" in
${cases.join("\n")}
    *) compadd -- ${OFFERS.command} ;;
  esac
  compadd -- ${longFlags(GLOBAL_FLAGS)}
}
compdef _lockstep lockstep`;
}

function fish(): string {
  const none = "not __fish_seen_subcommand_from " + OFFERS.command;
  const flagLine = ({ name, short, takes, help }: Flag, condition: string | null) =>
    [
      "complete -c lockstep",
      ...(condition === null ? [] : [`-n ${quote(condition)}`]),
      ...(short === undefined ? [] : [`-s ${short}`]),
      `-l ${name}`,
      ...(takes === undefined ? [] : [takes === "FILE" || takes === "DIR" ? "-rF" : "-x"]),
      `-d ${quote(help)}`,
    ].join(" ");
  const commandLines = ({ name, summary, words: [word], flags }: Command) => {
    const seen = `__fish_seen_subcommand_from ${name}`;
    const offer =
      word?.is === "agent"
        ? "(for each in .agent/*/; test -f $each/agent.json -o -d $each/stages; and basename $each; end)"
        : word === undefined
          ? ""
          : OFFERS[word.is];
    const takesFile = word?.is === "file" ? [`complete -c lockstep -F -n ${quote(seen)}`] : [];
    return [
      ...takesFile,
      `complete -c lockstep -f -n ${quote(none)} -a ${name} -d ${quote(summary)}`,
      ...(offer === "" ? [] : [`complete -c lockstep -f -n ${quote(seen)} -a ${quote(offer)}`]),
      ...flags.map((flag) => flagLine(flag, seen)),
    ];
  };
  return [
    "# lockstep completion for fish",
    ...GLOBAL_FLAGS.map((flag) => flagLine(flag, null)),
    ...COMMANDS.flatMap(commandLines),
  ].join("\n");
}

function longFlags(flags: readonly Flag[]): string {
  return flags.map((flag) => `--${flag.name}`).join(" ");
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
