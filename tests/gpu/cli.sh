#!/usr/bin/env bash
# What the command line says of devices, with and without a GPU.
# Usage: tests/gpu/cli.sh DAIS
set -euo pipefail
dais=$1
model=examples/fashion/fashion.onnx
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
expect() {  # text, part that it must hold
  case "$1" in *"$2"*) ;; *) fail "'$2' is not in: $1" ;; esac
}

devices=$("$dais" devices)
expect "$devices" "cpu "
expect "$devices" "emulated "
expect "$devices" "driver "
expect "$("$dais" devices --json)" '"gpus"'

status=0
text=$("$dais" run "$model" --device gpo 2>&1) || status=$?
[ $status = 2 ] || fail "a wrong device ended with $status"
expect "$text" "did you mean gpu?"

text=$("$dais" run "$model" --device auto 2>&1)
expect "$text" "runs on"

if ! "$dais" devices --json | grep -q '"device": "gpu:0"'; then
  status=0
  text=$("$dais" run "$model" --device gpu 2>&1) || status=$?
  [ $status = 2 ] || fail "--device gpu without a GPU ended with $status"
  expect "$text" "Install the NVIDIA driver"
  expect "$("$dais" run "$model" --device auto 2>&1)" "CPU, as no GPU is usable"
fi

status=0
text=$(DAIS_CXX=/nowhere/g++ "$dais" run "$model" --device emulated 2>&1) || status=$?
[ $status = 2 ] || fail "the emulated device without a compiler ended with $status"
expect "$text" "DAIS_CXX"

text=$("$dais" explain "$model" --device emulated)
expect "$text" "to the device"
expect "$text" "to the CPU"
