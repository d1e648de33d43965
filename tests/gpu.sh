#!/usr/bin/env bash
# Everything that can be said about the GPU backend only on a machine with a GPU: builds, runs the
# tests labelled gpu, compares networks with the CPU, times rows and networks, and writes
# REPORT.json and REPORT.txt. Under 20 minutes. Without a GPU it says so and lists the tests that
# were skipped.
# Usage: tests/gpu.sh [FOLDER FOR THE REPORT (default build/gpu_report)]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-build/gpu_report}
build=build/release
mkdir -p "$folder"
text=$folder/REPORT.txt
parts=$folder/parts
rm -rf "$parts"
mkdir -p "$parts"
: > "$text"

say() { echo "$*" | tee -a "$text"; }
# Runs a part; keeps its output and status.
part() {  # name, command...
  local name=$1 status=0 start=$SECONDS
  shift
  "$@" > "$parts/$name.log" 2>&1 || status=$?
  echo "$status" > "$parts/$name.status"
  say "$(printf '%-28s %s  %d s' "$name" "$([ $status = 0 ] && echo passed || echo FAILED)" $((SECONDS - start)))"
}

cmake --preset release > /dev/null
cmake --build "$build" --target dais dais_gpu_tests gpu_rows > "$parts/build.log"
dais=$build/bin/dais
"$dais" devices --json > "$parts/devices.json"
"$dais" devices >> "$text"

if ! grep -q '"device": "gpu:0"' "$parts/devices.json"; then
  count=$(ctest --test-dir "$build" -N -L gpu | sed -n 's/^Total Tests: //p')
  say "No usable GPU: $count tests labelled gpu were skipped, and nothing was measured."
  printf '{"gpu": false, "skipped_tests": %s, "devices": %s}\n' "${count:-0}" \
    "$(cat "$parts/devices.json")" > "$folder/REPORT.json"
  exit 0
fi

nvidia-smi >> "$text" 2>&1 || true
part tests ctest --test-dir "$build" -L gpu --output-on-failure
data=$(tools/conformance_data.sh)
if [ -d "$data/light" ]; then
  part networks "$dais" verify --device gpu "$data/light"
  for model in "$data"/light/light_resnet50.onnx "$data"/light/light_densenet121.onnx; do
    [ -f "$model" ] || continue
    name=$(basename "$model" .onnx)
    part "bench_$name" "$dais" bench "$model" --device gpu --duration 5 --json
    part "bench_${name}_cpu" "$dais" bench "$model" --device cpu --duration 5 --json
  done
fi
part rows "$build/bin/gpu_rows" --device gpu
cat "$parts/rows.log" >> "$text"

status=0
{
  printf '{"gpu": true, "devices": %s, "parts": {' "$(cat "$parts/devices.json")"
  comma=
  for file in "$parts"/*.status; do
    printf '%s"%s": %s' "$comma" "$(basename "$file" .status)" "$(cat "$file")"
    comma=', '
  done
  printf '}, "rows": %s}\n' "$(cat "$parts/rows.log")"
} > "$folder/REPORT.json"
grep -qvx 0 "$parts"/*.status && status=1
say "Report: $folder/REPORT.json and $text"
exit $status
