#!/usr/bin/env bash
# Runs each fuzzer of the fuzz preset for a while, starting from its committed seeds.
# Usage: tools/fuzz.sh [SECONDS] [NAME...]    e.g. tools/fuzz.sh 600 onnx_reader
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case ${1:-} in -h | --help) sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;; esac
seconds=${1:-60}
shift || true
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for source in tests/fuzz/fuzz_*.cpp; do
    [ ! -f "$source" ] || names+=("$(basename "$source" .cpp | sed 's/^fuzz_//')")
  done
fi

failed=0
for name in "${names[@]}"; do
  program=build/fuzz/bin/fuzz_$name grown=build/fuzz/corpus/$name findings=build/fuzz/findings
  [ -x "$program" ] || { echo "fuzz: $program is not built: cmake --build --preset fuzz" >&2; exit 1; }
  mkdir -p "$grown" "$findings"
  seeds=tests/fuzz/corpus/$name
  [ -d "$seeds" ] || seeds=
  echo "fuzz: $name for $seconds s"
  "$program" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=20 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="$findings/$name-" "$grown" ${seeds:+"$seeds"} 2>&1 | tail -n 40 ||
    { failed=1; echo "fuzz: FINDING in $name: rerun with '$program $findings/$name-...'"; }
done
[ $failed -eq 0 ] && echo "fuzz: no finding in ${#names[@]} targets"
exit $failed
