#!/usr/bin/env bash
# usage: train.sh DAIS: the training verbs as a user meets them: signals, resumes, divergence, files.
set -euo pipefail
dais=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "train.sh: $*" >&2; exit 1; }
# expect CODE COMMAND...: runs it with output in `log`.
expect() {
  local wanted=$1 code=0
  shift
  "$@" >log 2>&1 || code=$?
  [ "$code" -eq "$wanted" ] || { cat log >&2; fail "exit code $code instead of $wanted: $*"; }
}
says() { grep -q -- "$1" log || { cat log >&2; fail "no '$1' in the output"; }; }

awk 'BEGIN { srand(5); print "a,b,c,d,label"
  for (i = 0; i < 2000; ++i) { a = rand() - 0.5; b = rand() - 0.5; c = rand(); d = rand()
    print a "," b "," c "," d "," (a * b > 0 ? "same" : "other") } }' >data.csv
expect 0 "$dais" new mlp --input 4 --hidden 32,32 --classes 2 --seed 1 -o net.onnx
flags=(--data data.csv --val-share 0.2 --batch 32 --optimiser adam --lr 0.01 --threads 1)

# Asked to stop, it writes a checkpoint and says so; the resumed end equals the uninterrupted one.
expect 0 "$dais" train net.onnx "${flags[@]}" --epochs 200 --out whole
"$dais" train net.onnx "${flags[@]}" --epochs 200 --out parts >log 2>&1 &
pid=$!
for _ in {1..500}; do [ -s parts/metrics.csv ] && break; sleep 0.01; done
kill -TERM $pid 2>/dev/null || true  # it may have ended
code=0
wait $pid || code=$?
if [ $code -ne 0 ]; then
  [ $code -eq 3 ] || { cat log >&2; fail "exit code $code instead of 3 after SIGTERM"; }
  expect 0 "$dais" train --resume parts
  says 'exactly'
fi
cmp whole/trained.onnx parts/trained.onnx
for file in model.onnx flags.yaml metrics.csv curves.png trained.onnx; do
  [ -s whole/$file ] || fail "whole/$file is missing"
done
ls whole/events.out.tfevents.* >/dev/null

# Another number of threads goes on, but not silently.
expect 0 "$dais" train --resume whole --epochs 201 --threads 2
says 'not exact'
expect 2 "$dais" train net.onnx "${flags[@]}" --out whole
says '--resume'

# It learned, and what is exported answers.
expect 0 "$dais" eval whole --data data.csv --json
awk 'match($0, /"accuracy":[0-9.]+/) { v = substr($0, RSTART + 11, RLENGTH - 11); ok = v > 0.95 } END { exit !ok }' log ||
  { cat log >&2; fail 'accuracy is too low'; }
expect 0 "$dais" export whole -o out.onnx
expect 0 "$dais" run out.onnx --size batch=3

# A language model over bytes, of which half are no text by themselves.
awk 'BEGIN { for (i = 0; i < 400; ++i) printf "%d n\303\244chste Zeile; ", i % 7 }' >text
expect 0 "$dais" new gpt-tiny --context 16 --width 16 --layers 1 --heads 2 --seed 1 -o gpt.onnx
expect 0 "$dais" train gpt.onnx --data text --tokens byte --window 16 --held-out 0.2 --batch 8 \
  --optimiser adamw --lr 0.01 --updates 20 --threads 1 --out language
[ -s language/trained.onnx ] || fail 'language/trained.onnx is missing'

# Numbers that run away stop it, with the operator's name.
expect 4 "$dais" train net.onnx --data data.csv --batch 32 --lr 1e30 --out away
says 'first operator'
# The same flags from a file; the command line goes first; unknown keys are refused.
printf 'data: data.csv\nbatch: 32\nepochs: 9\nlr-milestones: [0.5, 0.8]\n' >flags.yaml
expect 0 "$dais" train net.onnx --config flags.yaml --epochs 1 --out filed --json
says '"updates":62'
printf 'bach: 32\n' >wrong.yaml
expect 2 "$dais" train net.onnx --config wrong.yaml --out wrong
says "Did you mean 'batch'"
expect 2 "$dais" train net.onnx --data data.csv --loss mes --out wrong
says 'Use cross-entropy'
# A network with fewer scores than classes is refused before the first step.
expect 0 "$dais" new mlp --input 4 --classes 1 -o one.onnx
expect 2 "$dais" train one.onnx --data data.csv --out wrong
says '--replace-head 2'
expect 0 "$dais" train one.onnx --data data.csv --replace-head 2 --epochs 1 --out headed
# So is a detector, whose boxes of other classes would count for nothing.
printf 'P6\n8 8\n255\n' >dark.ppm
head -c 192 /dev/zero >>dark.ppm
cat >boxes.json <<'JSON'
{"images": [{"id": 1, "file_name": "dark.ppm", "width": 8, "height": 8}],
 "categories": [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}],
 "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 5, 5], "area": 25},
                 {"id": 2, "image_id": 1, "category_id": 2, "bbox": [2, 2, 4, 4], "area": 16}]}
JSON
expect 0 "$dais" new ssd --classes 1 -o finder.onnx
expect 2 "$dais" train finder.onnx --data boxes.json --size 128x128 --batch 1 --out wrong
says '--classes 2'
[ ! -e wrong ] || fail 'a training that was refused left its folder behind'
echo 'train.sh: all held'
