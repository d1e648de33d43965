#!/usr/bin/env bash
# usage: train_ranks.sh DAIS: training over several ranks follows one rank, and a rank that dies or
# hangs is named. Exit code 77 (skipped) without Open MPI.
set -euo pipefail
dais=$(realpath "$1")
command -v mpirun >/dev/null || { echo "train_ranks.sh: no mpirun"; exit 77; }
work=$(mktemp -d)
trap 'kill -9 -- $(pgrep -f "$work/" || true) 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
export ASAN_OPTIONS=detect_leaks=0  # Open MPI's components leave their memory to the system
fail() { echo "train_ranks.sh: $*" >&2; cat log >&2 || true; exit 1; }

awk 'BEGIN { srand(5); print "a,b,c,d,label"
  for (i = 0; i < 2000; ++i) { a = rand() - 0.5; b = rand() - 0.5; c = rand(); d = rand()
    print a "," b "," c "," d "," (a * b > 0 ? "same" : "other") } }' >data.csv
"$dais" new mlp --input 4 --hidden 32,32 --classes 2 --seed 1 -o net.onnx >log
flags=(--data "$work/data.csv" --val-share 0.2 --batch 32 --seed 3 --threads 1)

# worst A B: the largest relative difference of the losses of two trainings.
worst() {
  paste -d, <(cut -d, -f1,3 "$1/metrics.csv") <(cut -d, -f1,3 "$2/metrics.csv") |
    awk -F, 'NR > 1 && $2 != "" && $4 != "" { ++rows; d = ($2 - $4) / $2; if (d < 0) d = -d
      if (d > most) most = d } END { printf "%d %.2e", rows, most }'
}
# close A B ROWS: so many losses, all within a thousandth.
close() {
  local found rows
  found=$(worst "$1" "$2") rows=$3
  echo "$2 against $1: $found"
  awk -v found="$found" -v rows="$rows" 'BEGIN { split(found, f, " "); exit !(f[1] >= rows && f[2] < 1e-3) }' ||
    fail "$2 does not follow $1: $found"
}

run=(train net.onnx "${flags[@]}" --optimiser adamw --lr 0.003 --updates 100 --log-every 1)
"$dais" "${run[@]}" --out one >log 2>&1 || fail "one rank"
for ranks in 2 4; do
  timeout 120 "$dais" "${run[@]}" --ranks $ranks --out ranks$ranks >log 2>&1 || fail "$ranks ranks"
  close one ranks$ranks 100
done
! "$dais" "${run[@]}" --ranks 3 --out ranks3 >log 2>&1 || fail "a batch of 32 was shared by 3"
grep -q 'multiple of the ranks' log || fail "no reason"

# Batch norms over all ranks.
pictures=/usr/share/datasets/fashion-mnist
if [ -d $pictures ]; then
  "$dais" new resnet18 --input 1x28x28 --width 4 --classes 10 --zero-residual true --seed 1 -o res.onnx >log
  run=(train res.onnx --data $pictures --part train --batch 16 --lr 0.005 --momentum 0.9 --updates 20
    --log-every 1 --threads 1)
  "$dais" "${run[@]}" --out norms1 >log 2>&1 || fail "batch norms, one rank"
  timeout 120 "$dais" "${run[@]}" --ranks 2 --sync-norms --out norms2 >log 2>&1 || fail "batch norms"
  close norms1 norms2 20
fi

# rank_process FOLDER RANK: the process of that rank.
rank_process() {
  local process
  for process in $(pgrep -f -- "--out $1"); do
    if tr '\0' '\n' 2>/dev/null <"/proc/$process/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$2"; then
      echo "$process"
      return 0
    fi
  done
  return 1
}
# begin FOLDER: starts a long training of two ranks and waits until it is under way.
begin() {
  "$dais" train net.onnx "${flags[@]}" --epochs 2000 --checkpoint-every 50 --ranks 2 --out "$1" >log 2>&1 &
  pid=$!
  local i
  for i in {1..300}; do
    [ -d "$1/checkpoints" ] && [ -n "$(ls "$1/checkpoints")" ] && rank_process "$1" 1 >/dev/null && return 0
    sleep 0.1
  done
  fail "$1 does not begin"
}

# A rank that dies ends the job with its name; another number of ranks goes on.
begin died
kill -9 "$(rank_process died 1)"
start=$SECONDS
! wait $pid || fail "the job outlived its rank"
[ $((SECONDS - start)) -le 5 ] || fail "it took $((SECONDS - start)) s"
grep -q 'rank 1 ' log || fail "the dead rank is not named"
timeout 120 "$dais" train --resume died --updates 4000 --epochs 100 >log 2>&1 || fail "resume"
grep -q 'ranks: 2 before, 1 now' log || fail "the other number of ranks is not told"

# One that hangs is named, and goes on when it can.
begin hung
kill -STOP "$(rank_process hung 1)"
for i in {1..100}; do
  grep -q 'waiting for rank 1' log && break
  sleep 0.1
done
grep -q 'waiting for rank 1' log || fail "the hanging rank is not named"
kill -CONT "$(rank_process hung 1)"

# Asked to stop, all ranks end with a checkpoint.
kill -TERM $pid
code=0
wait $pid || code=$?
[ $code -eq 3 ] || fail "exit code $code instead of 3 after SIGTERM"
echo 'train_ranks.sh: all held'
