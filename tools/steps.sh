# Steps with a heading, their time and a closing summary; sourced by test.sh and demo.sh.

step_names=()
step_failed=0

# step NAME COMMAND...: runs the command under a heading and remembers how it ended.
step() {
  local name=$1 start=$SECONDS status=0
  shift
  printf '\n==> %s\n' "$name"
  "$@" || status=$?
  local outcome=passed
  [ $status -eq 0 ] || { outcome=FAILED; step_failed=1; }
  step_names+=("$(printf '%-6s  %5d s  %s' "$outcome" $((SECONDS - start)) "$name")")
  return $status
}

# finish SCRIPT: prints the outcome of every step and leaves with 1 if one failed.
finish() {
  printf '\n'
  printf '  %s\n' "${step_names[@]}"
  if [ $step_failed -eq 0 ]; then
    echo "$1: passed in $SECONDS s"
  else
    echo "$1: FAILED after $SECONDS s; the messages are above, under the step's heading"
  fi
  exit $step_failed
}

# build PRESET [TARGET]: configures and builds it. Ninja counts its steps: done/all, seconds so far.
build() {
  cmake --preset "$1" &&
    NINJA_STATUS='[%f/%t %es] ' cmake --build --preset "$1" -j "$(nproc)" ${2:+--target "$2"}
}
