# Runs each file that it is named on the descriptor 3, in itself, so that variables, functions and the directory stay.
trap 'return 130 2>/dev/null' INT
while IFS= read -r __file <&3; do
  source "$__file" </dev/null 3<&- 4>&-
  __code=$?
  if [ "$__code" -ne 0 ]; then
    printf '{"type":"error","name":"ExitCode","value":"%s","traceback":[]}\n' "$__code" >&4
  fi
  printf '{"type":"done"}\n' >&4
done
