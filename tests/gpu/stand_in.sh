#!/usr/bin/env bash
# Training by the command line through the stand-in driver, and that its complaints end the program.
# Usage: tests/gpu/stand_in.sh DAIS_STAND_IN
set -euo pipefail
dais=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

status=0
text=$(DAIS_STAND_IN=leak "$dais" run examples/fashion/fashion.onnx --device stand-in 2>&1) || status=$?
[ $status = 3 ] || fail "leaked memory ended with $status"
case "$text" in *"64 bytes of device memory"*) ;; *) fail "the leak is not named: $text" ;; esac

# A few steps of training: the losses of the CPU to five digits.
printf 'a,b,c,label\n' > "$folder/table.csv"
for i in $(seq 1 32); do
  echo "$((i % 7)).5,$((i * 13 % 11)).25,$((i * 5 % 3)),k$((i % 3))" >> "$folder/table.csv"
done
"$dais" new mlp --input 3 --hidden 16 --classes 3 -o "$folder/net.onnx" > /dev/null
train() {  # device
  "$dais" train "$folder/net.onnx" --data "$folder/table.csv" --batch 16 --epochs 2 \
    --optimiser adamw --lr 0.01 --seed 1 --device "$1" --out "$folder/$1" --json |
    sed -n 's/.*"event":"progress".*"loss":\([0-9.]\{7\}\).*/\1/p'
}
wanted=$(train cpu)
got=$(train stand-in) || fail "training through the stand-in driver ended with $?"
[ -n "$wanted" ] || fail "training reports no losses"
[ "$got" = "$wanted" ] || fail "losses differ: CPU $wanted, stand-in $got"
