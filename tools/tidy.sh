#!/usr/bin/env bash
# Runs clang-tidy with .clang-tidy: every warning is an error.
# Usage: tools/tidy.sh [--analyze] [--changed [BASE] | FILE...]
#   without arguments  every source file of the build
#   --changed [BASE]   sources that differ from BASE (default: the main branch), saved or not
#   --analyze          also clang's path analysis, which takes four times as long
# Files that passed are remembered under ~/.cache/dais/tidy until they, or what they include, change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v clang-tidy >/dev/null || {
  echo "tidy: clang-tidy is missing; remedy: tools/setup.sh full" >&2
  exit 1
}

# clang's own compile commands, without GCC's precompiled header.
cmake --preset tidy >/dev/null
commands=build/tidy/compile_commands.json

all_files() {
  sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$commands" | grep -F "$PWD/" |
    grep -vF "$PWD/build/" | sort -u
}

changed_files() {
  { git diff --name-only "$(git merge-base HEAD "$1")"; git ls-files -o --exclude-standard; } |
    sed "s|^|$PWD/|" | sort -u | comm -12 - <(all_files)
}

export analysis=
if [ "${1:-}" = --analyze ]; then
  analysis=clang-analyzer-core.*,clang-analyzer-cplusplus.*,clang-analyzer-deadcode.*
  shift
fi
case ${1:-} in
  -h | --help) sed -n '2,7s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
  --changed) files=$(changed_files "${2:-main}") ;;
  "") files=$(all_files) ;;
  *) files=$(realpath "$@") ;;
esac
count=$(grep -c . <<<"$files" || true)
echo "tidy: $count files"
[ "$count" -gt 0 ] || exit 0

# How fast tests run does not matter: there, copies may be made where they make a line shorter.
checks_of() {
  local checks=$analysis
  case $1 in *_test.cpp | */tests/*) checks+=${checks:+,}-performance-* ;; esac
  echo "${checks:+--checks=$checks}"
}

# What a file's findings depend on: itself with all that it includes, the checks, the program.
fingerprint() {
  local command
  command=$(awk -v file="\"$1\"" -F'"' '$2 == "command" { command = $4 }
    $2 == "file" && "\"" $4 "\"" == file { print command; exit }' "$commands")
  { clang-tidy --version; cat .clang-tidy "$1"; echo "$(checks_of "$1") ${command//"$PWD"/}"
    bash -c "${command%% -o *} -E -P $1" 2>/dev/null; } | sha256sum | cut -d' ' -f1
}

# One file at a time, so that each prints where the run is; findings go on top of their line.
check_one() {
  local file=$1 output passed
  passed=$remembered/$(fingerprint "$file")
  if [ -e "$passed" ]; then
    echo "tidy: ok before ${file#"$PWD"/}"
  elif output=$(clang-tidy -quiet -p build/tidy $(checks_of "$file") "$file" 2>/dev/null); then
    touch "$passed"
    echo "tidy: ok ${file#"$PWD"/}"
  else
    printf '%s\ntidy: FINDINGS in %s\n' "${output//"$PWD/"/}" "${file#"$PWD"/}"
    return 1
  fi
}
remembered=${XDG_CACHE_HOME:-$HOME/.cache}/dais/tidy
mkdir -p "$remembered"
export commands remembered
export -f checks_of fingerprint check_one
tr '\n' '\0' <<<"${files%$'\n'}" | xargs -0 -n 1 -P "$(nproc)" bash -c '[ -z "$1" ] || check_one "$1"' tidy ||
  { echo "tidy: clang-tidy found something (above)"; exit 1; }
