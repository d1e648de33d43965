# Bash completion for dais. Verbs and flags are read from the program's own help, so that they
# cannot differ from what it accepts.
_dais() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    local verbs
    verbs=$("$1" --help 2>/dev/null | sed -n '/^Subcommands:/,$s/^  \([a-z][a-z-]*\) .*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$verbs --help" -- "$word")
  elif [[ $word == -* ]]; then
    local flags
    flags=$("$1" "$verb" --help 2>/dev/null | grep -o -E -- '--[a-z][a-z-]+' | sort -u)
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
  elif [ "$before" = --optimize ]; then
    mapfile -t COMPREPLY < <(compgen -W "off portable full" -- "$word")
  fi
}
complete -o default -F _dais dais
