#!/usr/bin/env bash
# Runs a command where there is a usable GPU; elsewhere says why not and ends with 77 (skipped).
# Usage: tests/gpu/with_gpu.sh DAIS COMMAND...
set -euo pipefail
dais=$1
shift
if ! "$dais" devices --json | grep -q '"device": "gpu:0"'; then
  "$dais" devices
  exit 77
fi
exec "$@"
