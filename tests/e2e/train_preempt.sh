#!/usr/bin/env bash
# usage: train_preempt.sh DAIS [COUNT]: runs a small training as a job, takes its place away COUNT
# times (100) at random moments by a job of higher priority, lets the scheduler resume it each time,
# and compares every byte of the end with an uninterrupted run.
set -euo pipefail
dais=$(realpath "$1")
wanted=${2:-100}
work=$(mktemp -d)
daemon=
finish() {
  # Jobs outlive their daemon: cancelled first, then waited for.
  "$dais" jobs --json 2>/dev/null | grep -o '"id":[0-9]*' | cut -d: -f2 |
    xargs -r "$dais" cancel >/dev/null 2>&1 || true
  for _ in {1..100}; do "$dais" jobs 2>/dev/null | grep -q 'no jobs' && break; sleep 0.1; done
  [ -z "$daemon" ] || { kill "$daemon"; wait "$daemon" || true; } 2>/dev/null
  rm -rf "$work"
}
trap finish EXIT
cd "$work"
export DAIS_HOME=$work/home
RANDOM=11

awk 'BEGIN { srand(5); print "a,b,c,d,e,f,g,h,label"
  for (i = 0; i < 4000; ++i) { line = ""; s = 0
    for (k = 0; k < 8; ++k) { x = rand() * 2 - 1; line = line sprintf("%.5f,", x); s += x * (k % 3 - 1) }
    print line (s > 0.3 ? "up" : s < -0.3 ? "down" : "level") } }' >data.csv
"$dais" new mlp --input 8 --hidden 64,64 --dropout 0.2 --classes 3 --seed 1 -o net.onnx >/dev/null
flags="--data data.csv --val-share 0.1 --batch 32 --epochs 60 --optimiser adamw --lr 0.003
  --ema 0.99 --checkpoint-every 200 --checkpoint-seconds 0 --seed 3 --threads 1"
# shellcheck disable=SC2086
"$dais" train net.onnx $flags --out whole >whole.log 2>&1

cat >train.sh <<TEXT
if [ -e run/flags.yaml ]; then exec "$dais" train --resume run; fi
rm -rf run
exec "$dais" train net.onnx $(echo $flags) --out run
TEXT
cat >train.yaml <<TEXT
name: training
command: [/bin/sh, train.sh]
cpus: 1
memory: 2GiB
min_run: 1ms
grace: 60s
TEXT
cat >urgent.yaml <<TEXT
name: urgent
command: [/bin/true]
priority: 10
cpus: 1
TEXT

"$dais" up --gpus 0 --cpus 1 --memory 4GiB >up.log 2>&1 &
daemon=$!
for _ in {1..200}; do "$dais" jobs >/dev/null 2>&1 && break; sleep 0.05; done

phase() { "$dais" job show "$1" --json | grep -o '"phase":"[a-z]*"' | head -1 | cut -d'"' -f4; }
stops() { "$dais" job show "$1" --json | grep -o 'preempted for job' | wc -l; }
# await JOB PHASE...: waits until the job is in one of the phases and prints which.
await() {
  local job=$1 now deadline=$((SECONDS + 120))
  shift
  while [ $SECONDS -lt $deadline ]; do
    now=$(phase "$job")
    case " $* " in *" $now "*) echo "$now"; return 0 ;; esac
    sleep 0.02
  done
  echo "train_preempt: job $job is $now, not $*" >&2
  "$dais" logs "$job" >&2 || true
  return 1
}
submit() { "$dais" submit -f "$1" --json | grep -o '[0-9]\+' | head -1; }

preempted=0 runs=0
while [ "$preempted" -lt "$wanted" ]; do
  runs=$((runs + 1))
  [ "$runs" -le $((wanted * 5)) ] || { echo "train_preempt: too few preemptions" >&2; exit 1; }
  rm -rf run
  job=$(submit train.yaml)
  while now=$(await "$job" running completed failed cancelled) && [ "$now" = running ]; do
    [ $((preempted + $(stops "$job"))) -lt "$wanted" ] || { await "$job" completed >/dev/null; break; }
    sleep "0.$(printf '%03d' $((RANDOM % 1000)))"
    urgent=$(submit urgent.yaml)
    await "$urgent" completed >/dev/null
  done
  await "$job" completed >/dev/null
  preempted=$((preempted + $(stops "$job")))
  cmp whole/trained.onnx run/trained.onnx
  last=$(ls whole/checkpoints | grep '^update-' | tail -1)
  cmp "whole/checkpoints/$last/state.safetensors" "run/checkpoints/$last/state.safetensors"
done
echo "train_preempt: $preempted preemptions over $runs trainings; every end is equal in every byte"
