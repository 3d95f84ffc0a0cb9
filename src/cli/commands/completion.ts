/** `lockstep completion SHELL`: a script that asks `lockstep __complete` what can stand at the end of the line. */
import { UsageError } from "../args.ts";
import type { Call } from "../call.ts";

/**
 * The program that is asked is always the `lockstep` of the user's PATH: what is typed as `./lockstep` is a file of the
 * project, which Tab must not start. Its first line says where else to look: `files` or `folders` of the shell, or
 * nowhere (`-`). Then one line for each word: the word, a tab, its meaning.
 */
const SHELLS = {
  // bash splits words also at = and @, so they are joined again; it replaces $2 only.
  bash: `# lockstep completion for bash
_lockstep() {
  local line="$COMP_LINE" words=() word place answer here begin
  for ((place = 0; place <= COMP_CWORD; place++)); do
    word="\${COMP_WORDS[place]}"
    if ((place == 0)) || [[ "$line" == [[:blank:]]* ]]; then words+=("$word"); else words[-1]+="$word"; fi
    line="\${line#*"$word"}"
  done
  here="\${words[-1]}"
  mapfile -t answer < <(lockstep __complete -- "\${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  case "\${answer[0]-}" in
    files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$here") ;;
    folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$here") ;;
  esac
  begin="\${here%"$2"}"
  for word in "\${answer[@]:1}"; do
    word="\${word%%$'\\t'*}"
    [[ "$word" == *= ]] && compopt -o nospace
    COMPREPLY+=("\${word#"$begin"}")
  done
}
complete -F _lockstep lockstep`,
  zsh: `#compdef lockstep
# lockstep completion for zsh
_lockstep() {
  local -a answer offered shown open opened
  local line
  answer=("\${(@f)$(lockstep __complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  case "\${answer[1]}" in
    files) _files ;;
    folders) _files -/ ;;
  esac
  for line in "\${(@)answer[2,-1]}"; do
    [[ -n "$line" ]] || continue
    if [[ "\${line%%$'\\t'*}" == *= ]]; then
      open+=("\${line%%$'\\t'*}"); opened+=("\${line/$'\\t'/  -- }")
    else
      offered+=("\${line%%$'\\t'*}"); shown+=("\${line/$'\\t'/  -- }")
    fi
  done
  (( \${#open} )) && compadd -l -d opened -S '' -- "\${open[@]}"
  (( \${#offered} )) && compadd -l -d shown -- "\${offered[@]}"
}
if [[ "$zsh_eval_context" == *loadautofunc* ]]; then _lockstep "$@"; else compdef _lockstep lockstep; fi`,
  fish: `# lockstep completion for fish
function __lockstep_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l answer (lockstep __complete -- $words[2..-1] 2>/dev/null)
  switch "$answer[1]"
    case files
      __fish_complete_path (commandline -ct)
    case folders
      __fish_complete_directories (commandline -ct) ''
  end
  printf '%s\\n' $answer[2..-1]
end
complete -c lockstep -f -a '(__lockstep_complete)'`,
} as const;

export function printCompletion({ words: [shell = ""], screen }: Call): Promise<number> {
  if (!Object.hasOwn(SHELLS, shell)) {
    const candidates = Object.keys(SHELLS);
    throw new UsageError(`There is no completion for "${shell}", only for ${candidates.join(", ")}.`, {
      word: shell,
      candidates,
    });
  }
  screen.emit(SHELLS[shell as keyof typeof SHELLS]);
  return Promise.resolve(0);
}
