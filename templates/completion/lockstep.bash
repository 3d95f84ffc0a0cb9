# lockstep completion for bash
# bash splits words also at = and @, so they are joined again; it replaces $2 only.
_lockstep() {
  local line="$COMP_LINE" words=() word place answer here begin
  for ((place = 0; place <= COMP_CWORD; place++)); do
    word="${COMP_WORDS[place]}"
    if ((place == 0)) || [[ "$line" == [[:blank:]]* ]]; then words+=("$word"); else words[-1]+="$word"; fi
    line="${line#*"$word"}"
  done
  here="${words[-1]}"
  mapfile -t answer < <(lockstep __complete -- "${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  case "${answer[0]-}" in
    files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$here") ;;
    folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$here") ;;
  esac
  begin="${here%"$2"}"
  for word in "${answer[@]:1}"; do
    word="${word%%$'\t'*}"
    [[ "$word" == *= ]] && compopt -o nospace
    COMPREPLY+=("${word#"$begin"}")
  done
}
complete -F _lockstep lockstep
