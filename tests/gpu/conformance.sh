#!/usr/bin/env bash
# The ONNX backend suite and the odd graphs on a device, against the answers on file.
# Usage: tests/gpu/conformance.sh DAIS DEVICE [FLAG OF dais verify...]    (flags are for the suite)
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
dais=$1 device=$2
shift 2
data=$("$here/../../tools/conformance_data.sh")
odd="$here/../../../shared/cases/cases.json"
allowed=$("$here/../conformance/allowed.sh" "$data")
status=0
"$dais" verify --device "$device" --skip <(echo "$allowed") "$data"/{node,simple,pytorch-converted,pytorch-operator} \
  "$@" || status=1
if [ -f "$odd" ]; then
  "$dais" verify --device "$device" --cases "$odd" || status=1
fi
exit $status
