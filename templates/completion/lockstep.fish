# lockstep completion for fish
function __lockstep_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l answer (lockstep __complete -- $words[2..-1] 2>/dev/null)
  switch "$answer[1]"
    case files
      __fish_complete_path (commandline -ct)
    case folders
      __fish_complete_directories (commandline -ct) ''
  end
  printf '%s\n' $answer[2..-1]
end
complete -c lockstep -f -a '(__lockstep_complete)'
