#!/usr/bin/env bash
# Models with answers on file, one by one on a device, held to the tolerance of a comparison with
# another runtime: the light models of the archive, or folders of the backend suite's layout.
# Usage: tests/gpu/models.sh DAIS DEVICE [FOLDER [PATTERN]]      (default: the archive's light models)
# Kernels are not observed access by access (DAIS_EMULATED=fast) unless DAIS_EMULATED says otherwise.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
dais=$1 device=$2 folder=${3:-} pattern=${4:-.}
if [ -z "$folder" ]; then
  folder=$("$here/../../tools/conformance_data.sh")/light
  [ -d "$folder" ] || { echo "no light models in this archive"; exit 77; }
fi
export DAIS_EMULATED=${DAIS_EMULATED:-fast}
exec "$dais" verify --device "$device" "$folder" --filter "$pattern" --rtol 1e-3 --atol 2e-4 \
  --of-largest 2e-5 --steps 1 --top1
