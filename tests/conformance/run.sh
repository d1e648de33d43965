#!/usr/bin/env bash
# Runs the ONNX backend suite, and the odd graphs where they lie beside the repository.
# Usage: tests/conformance/run.sh DAIS off|portable|full [FLAG OF dais verify...]
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
dais=$1 optimize=$2
shift 2
data=$("$here/../../tools/conformance_data.sh")
odd="$here/../../../shared/cases/cases.json"
status=0
allowed=$("$here/allowed.sh" "$data")

folders=()
for kind in node simple pytorch-converted pytorch-operator; do folders+=("$data/$kind"); done
"$dais" verify --optimize "$optimize" --skip <(echo "$allowed") "${folders[@]}" "$@" || status=1
if [ -f "$odd" ]; then
  "$dais" verify --optimize "$optimize" --cases "$odd" "$@" || status=1
fi
# Whole networks are too much work for reference loops.
if [ -d "$data/light" ] && [ "$optimize" != off ]; then
  "$dais" verify --optimize "$optimize" "$data/light" || status=1
fi
exit $status
