#compdef lockstep
# lockstep completion for zsh
_lockstep() {
  local -a answer offered shown open opened
  local line
  answer=("${(@f)$(lockstep __complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  case "${answer[1]}" in
    files) _files ;;
    folders) _files -/ ;;
  esac
  for line in "${(@)answer[2,-1]}"; do
    [[ -n "$line" ]] || continue
    if [[ "${line%%$'\t'*}" == *= ]]; then
      open+=("${line%%$'\t'*}"); opened+=("${line/$'\t'/  -- }")
    else
      offered+=("${line%%$'\t'*}"); shown+=("${line/$'\t'/  -- }")
    fi
  done
  (( ${#open} )) && compadd -l -d opened -S '' -- "${open[@]}"
  (( ${#offered} )) && compadd -l -d shown -- "${offered[@]}"
}
if [[ "$zsh_eval_context" == *loadautofunc* ]]; then _lockstep "$@"; else compdef _lockstep lockstep; fi
