#!/usr/bin/env bash
# usage: train_kill.sh DAIS [KILLS [INSIDE]]: trains a small network, kills the training by SIGKILL
# at KILLS random moments (50), at least INSIDE of them (10) while a checkpoint is being written,
# resumes it each time, and compares every byte of the end with an uninterrupted run.
set -euo pipefail
dais=$(realpath "$1")
kills=${2:-50}
inside_wanted=${3:-10}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
RANDOM=7

awk 'BEGIN { srand(5); print "a,b,c,d,e,f,g,h,label"
  for (i = 0; i < 4000; ++i) { line = ""; s = 0
    for (k = 0; k < 8; ++k) { x = rand() * 2 - 1; line = line sprintf("%.5f,", x); s += x * (k % 3 - 1) }
    print line (s > 0.3 ? "up" : s < -0.3 ? "down" : "level") } }' >data.csv
"$dais" new mlp --input 8 --hidden 64,64 --dropout 0.2 --classes 3 --seed 1 -o net.onnx >/dev/null
flags=(--data data.csv --val-share 0.1 --batch 32 --epochs 12 --optimiser adamw --lr 0.003 --ema 0.99
  --checkpoint-every 25 --checkpoint-seconds 0 --seed 3 --threads 1)

"$dais" train net.onnx "${flags[@]}" --out whole >whole.log 2>&1

finished() { [ -e run/trained.onnx ]; }
start() {
  if [ -e run/flags.yaml ]; then
    "$dais" train --resume run >>run.log 2>&1 &
  else
    rm -rf run
    "$dais" train net.onnx "${flags[@]}" --out run >>run.log 2>&1 &
  fi
  pid=$!
}
# Waits until the condition holds or the training is over; 0 when it held.
wait_for() {
  local deadline=$((SECONDS + 20))
  while kill -0 "$pid" 2>/dev/null && [ $SECONDS -lt $deadline ]; do
    if "$@"; then return 0; fi
  done
  return 1
}
writing() { [ -e run/checkpoints/.writing ]; }

killed=0 inside=0 rounds=0
while [ "$killed" -lt "$kills" ] || [ "$inside" -lt "$inside_wanted" ]; do
  rounds=$((rounds + 1))
  if [ "$rounds" -gt $((kills * 10)) ]; then
    echo "train_kill: only $killed kills, $inside inside a write, after $rounds starts" >&2
    exit 1
  fi
  start
  if [ "$inside" -lt "$inside_wanted" ]; then
    wait_for writing || true
  else
    sleep "0.$(printf '%03d' $((RANDOM % 700)))"
  fi
  if kill -9 "$pid" 2>/dev/null; then
    wait "$pid" 2>/dev/null || true
    killed=$((killed + 1))
    if writing; then inside=$((inside + 1)); fi
  else
    wait "$pid" || { tail -3 run.log >&2; exit 1; }
  fi
  # A run that ended is compared, and another begun.
  if finished; then
    cmp whole/trained.onnx run/trained.onnx
    rm -rf run
  fi
done
[ -e run/flags.yaml ] || { start; wait "$pid"; }
finished || "$dais" train --resume run >>run.log 2>&1
last=$(ls whole/checkpoints | grep '^update-' | tail -1)
cmp "whole/checkpoints/$last/state.safetensors" "run/checkpoints/$last/state.safetensors"
cmp whole/trained.onnx run/trained.onnx
echo "train_kill: $killed kills, $inside inside a checkpoint write; the end is equal in every byte"
