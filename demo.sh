#!/usr/bin/env bash
# Builds dais and shows it at work on real input. See ./demo.sh --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. tools/steps.sh

usage() {
  cat <<'TEXT'
Usage: ./demo.sh [--inference | --help]
Installs the Debian packages that are missing (root or sudo), builds the release preset, and trains a
network on 60,000 pictures of clothes, measures it, exports it and runs what it exported.
--inference instead runs trained models of several kinds, tuned and on plain loops.
Safe to run again: only what changed is rebuilt. The program is build/release/bin/dais.

Exit code: 0 when everything worked, 1 when a step failed, 2 for wrong usage.
TEXT
}

job=training
case ${1:-} in
  "") ;;
  --inference) job=inference ;;
  -h | --help) usage; exit 0 ;;
  *) echo "demo.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
esac

dais=build/release/bin/dais

work=build/demo
pictures=/usr/share/datasets/fashion-mnist

# The number of a field in JSON text on stdin.
field() { grep -o "\"$1\": *[-+0-9.e]*" | head -n 1 | sed 's/.*: *//'; }

# A large number on stdin for people: 1.24 M.
short() {
  awk '{ n = $1; unit = 1; split(" ,k,M,G,T", units, ",")
    while (n >= 1000 && unit < 5) { n /= 1000; ++unit }
    printf(unit == 1 ? "%d" : "%.3g %s", n, units[unit]) }'
}

# run_model NAME FILE FLAGS...: answers of the tuned and the plain way, times at one and all threads.
# Adds a line to the table; stops the demo when the answers differ.
run_model() {
  local name=$1 file=$2 tuned plain one all facts
  shift 2
  echo "$name: once tuned, once on plain loops, then 1 and $(nproc) threads"
  tuned=$("$dais" run "$file" "$@" --json) && plain=$("$dais" run "$file" "$@" --json --optimize off) &&
    one=$("$dais" bench "$file" "$@" --duration 2 --threads 1 --json) &&
    all=$("$dais" bench "$file" "$@" --duration 2 --layers --json) &&
    facts=$("$dais" inspect "$file" --json) || return
  local difference
  difference=$(paste <(grep -E '"(min|max|mean)"' <<<"$tuned") <(grep -E '"(min|max|mean)"' <<<"$plain") |
    tr -d ',' | awk '{ d = $2 - $4; if (d < 0) d = -d; s = $4 < 0 ? -$4 : $4
      d /= (s > 1e-3 ? s : 1e-3); if (d > most) most = d } END { printf "%.1e", most }')
  awk -v d="$difference" 'BEGIN { exit !(d < 1e-3) }' || {
    echo "$name: tuned and plain answers differ by $difference" >&2
    return 1
  }
  printf '| %s | %s | %s | %s | %s | %.3f | %.3f |\n' "$name" \
    "$(du -h --apparent-size "$file" | cut -f1)" "$(field parameters <<<"$facts" | short)" \
    "$(sed -n '/"total"/,$p' <<<"$all" | field flops | short)" "$difference" \
    "$(field p50_ms <<<"$one")" "$(field p50_ms <<<"$all")" >>"$work/table"
}

# Real pictures through a trained network: how many of 10,000 it gets right.
classify_pictures() {
  [ -e "$pictures/t10k-images-idx3-ubyte.gz" ] || {
    echo "no pictures: install the Debian package dataset-fashion-mnist to classify them"
    return 0
  }
  gzip -dc "$pictures/t10k-images-idx3-ubyte.gz" >"$work/images"
  gzip -dc "$pictures/t10k-labels-idx1-ubyte.gz" >"$work/labels"
  build/release/bin/examples/fashion_accuracy examples/fashion/fashion.onnx "$work/images" "$work/labels"
}

# Trained models on real input. Ends in a short table.
inference_job() {
  run_model "clothes, 100 pictures" examples/fashion/fashion.onnx --size N=100 || return
  if [ -d ../shared/models ]; then
    run_model "face detector" ../shared/models/ultraface_rfb320.onnx || return
    run_model "super-resolution" ../shared/models/superres_pytorch.onnx \
      --input input=uniform:1x1x224x224 || return
    run_model "keyword spotter, int8" ../shared/models/micro_kws_m_static_qoperator.onnx || return
  fi
  printf '\n10,000 pictures of clothes: '
  classify_pictures || return
  printf '\n| model | file | parameters | FLOPs | tuned against plain | ms, 1 thread | ms, %s threads |\n' "$(nproc)"
  printf '|---|---|---|---|---|---|---|\n'
  cat "$work/table"
}

# row WHAT FIGURE: a line of the training table.
row() { printf '| %-24s | %-48s |\n' "$1" "$2" >>"$work/table"; }

# Median milliseconds of a batch of the exported network.
milliseconds() {
  "$dais" bench "$work/clothes.onnx" --size batch="$1" --threads "$2" --duration 1 --json | field p50_ms
}

# The share of right answers, in percent.
percent_right() {
  "$dais" eval "$1" --data "$pictures" --part test --json | field accuracy |
    awk '{ printf "%.2f %%", 100 * $1 }'
}

# From pictures to a trained, measured, exported and timed network.
training_job() {
  [ -e "$pictures/train-images-idx3-ubyte.gz" ] || {
    echo "there are no pictures in $pictures: install the Debian package dataset-fashion-mnist" >&2
    return 1
  }
  "$dais" new lenet5 --filters 32,64 --hidden 512 --seed 1 -o "$work/lenet.onnx" &&
    "$dais" train "$work/lenet.onnx" --data "$pictures" --standardise --epochs 3 --batch 64 \
      --lr 0.05 --lr-policy one-cycle --momentum 0.9 --seed 1 --out "$work/run" | tee "$work/trained" &&
    "$dais" export "$work/run" -o "$work/clothes.onnx" || return
  row "trained" "$(sed -n 's/finished after \(.*\)/\1/p' "$work/trained")"
  row "network" "lenet5, $("$dais" inspect "$work/clothes.onnx" --json | field parameters) weights"
  row "right of 10,000 pictures" "$(percent_right "$work/run")"
  row "exported" "$(du -h --apparent-size "$work/clothes.onnx" | cut -f1), $work/clothes.onnx"
  row "the exported file" "$(percent_right "$work/clothes.onnx") right"
  local threads
  for threads in 1 $(nproc); do
    row "ms, threads: $threads" \
      "1 picture $(milliseconds 1 "$threads" | cut -c1-5), 100 pictures $(milliseconds 100 "$threads" | cut -c1-5)"
  done
  row "curves" "$work/run/curves.png"
  printf '\n| %-24s | %-48s |\n|---|---|\n' "from pictures to a model" "on $(nproc) cores"
  cat "$work/table"
}

main_job() {
  rm -rf "$work" && mkdir -p "$work" && "${job}_job"
}

step "packages" tools/setup.sh build demo && step "build" build release dais &&
  { [ $job = training ] || step "build the example" build release fashion_accuracy; } &&
  step "$job" main_job || true
finish demo.sh
