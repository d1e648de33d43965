#!/usr/bin/env bash
# Everything that can be said about the GPU backend only on a machine with a GPU: builds, runs the
# tests labelled gpu, compares networks with the CPU, times rows and networks, and writes
# REPORT.json and REPORT.txt. Under 20 minutes. Without a GPU it says so and lists the tests that
# were skipped.
# Usage: tests/gpu.sh [--rehearse] [FOLDER FOR THE REPORT (default build/gpu_report)]
#   --rehearse  the same steps on the emulated device where there is no GPU, a small part of each:
#               proves this script, not the hardware, and the report says so
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
device=gpu
if [ "${1:-}" = --rehearse ]; then
  device=emulated
  shift
fi
folder=${1:-build/gpu_report}
build=build/release
suites=$build/tests/gpu  # ctest there needs no program but those that are built below
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
cmake --build "$build" --target dais dais_gpu_tests gpu_rows train_runner > "$parts/build.log"
dais=$build/bin/dais
"$dais" devices --json > "$parts/devices.json"
"$dais" devices >> "$text"

if [ $device = gpu ] && ! grep -q '"device": "gpu:0"' "$parts/devices.json"; then
  count=$(ctest --test-dir "$suites" -N -L gpu | sed -n 's/^Total Tests: //p')
  say "No usable GPU: $count tests labelled gpu were skipped, and nothing was measured."
  printf '{"gpu": false, "skipped_tests": %s, "devices": %s}\n' "${count:-0}" \
    "$(cat "$parts/devices.json")" > "$folder/REPORT.json"
  exit 0
fi

if [ $device = gpu ]; then
  nvidia-smi >> "$text" 2>&1 || true
  tests=(-L gpu) networks=. seconds=5 rows=() models=(light_resnet50 light_densenet121)
  nets=(resnet50_224 resnet50_224x128 gpt6x384 gpt12x768) precisions=(fp32 bf16 fp16)
else
  say "REHEARSAL on the emulated device: no figure below is one of a GPU."
  export DAIS_EMULATED=fast
  tests=(-R '^emulated/(DeviceTraining|FusedRows)$') networks='squeezenet|shufflenet' seconds=1
  rows=(--small) models=(light_shufflenet) nets=(mlp) precisions=(fp32)
fi
# The tests count accesses, which are not observed in fast mode.
part tests env -u DAIS_EMULATED ctest --test-dir "$suites" "${tests[@]}" --output-on-failure
data=$(tools/conformance_data.sh)
if [ -d "$data/light" ]; then
  part networks tests/gpu/models.sh "$dais" "$device" "$data/light" "$networks"
  for name in "${models[@]}"; do
    model=$data/light/$name.onnx
    [ -f "$model" ] || continue
    part "bench_$name" "$dais" bench "$model" --device "$device" --duration "$seconds" --json
    part "bench_${name}_cpu" "$dais" bench "$model" --device cpu --duration "$seconds" --json
  done
fi
# Training steps: ours alone, and against PyTorch where this machine has it with CUDA.
train_step() {
  echo "$seconds" | "$build/bin/train_runner" "$1" "$2" 4 --device "$device" | sed -n 1p
}
for net in "${nets[@]}"; do
  for precision in "${precisions[@]}"; do part "step_${net}_$precision" train_step "$net" "$precision"; done
done
if [ $device = gpu ] && python3 -c 'import torch; torch.zeros(1).cuda()' 2> /dev/null; then
  peer=(bench/train/compare.py "$build/bin/train_runner" host --device gpu --threads 4
    --nets "$(IFS=,; echo "${nets[*]}")" --precisions bf16,fp16 --seconds 3)
  part peer_eager "${peer[@]}" --json "$folder/peer_eager.json"
  part peer_compiled "${peer[@]}" --compiled --json "$folder/peer_compiled.json"
  cat "$parts"/peer_*.log >> "$text"
else
  say "No PyTorch with CUDA on this machine: training steps are compared with nothing."
fi
part rows "$build/bin/gpu_rows" --device "$device" "${rows[@]}"
cat "$parts/rows.log" >> "$text"

status=0
{
  printf '{"gpu": %s, "rehearsal": %s, "devices": %s, "parts": {' \
    "$([ $device = gpu ] && echo true || echo false)" \
    "$([ $device = gpu ] && echo false || echo true)" "$(cat "$parts/devices.json")"
  comma=
  for file in "$parts"/*.status; do
    name=$(basename "$file" .status)
    printf '%s"%s": {"status": %s' "$comma" "$name" "$(cat "$file")"
    case $name in bench_* | step_*) [ "$(cat "$file")" != 0 ] || printf ', "result": %s' "$(cat "$parts/$name.log")" ;; esac
    printf '}'
    comma=', '
  done
  rows=null
  [ "$(cat "$parts/rows.status")" != 0 ] || rows=$(cat "$parts/rows.log")
  printf '}, "rows": %s}\n' "$rows"
} > "$folder/REPORT.json"
grep -qvx 0 "$parts"/*.status && status=1
say "Report: $folder/REPORT.json and $text"
exit $status
