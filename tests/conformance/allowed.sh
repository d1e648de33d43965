#!/usr/bin/env bash
# Prints the cases of a copy of the ONNX backend suite that are allowed to fail, with reasons.
# Usage: tests/conformance/allowed.sh FOLDER      (what tools/conformance_data.sh printed)
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
case $1 in
  /usr/share/*)
    cat "$here/allowed_debian.txt"
    # The first version with 4-bit casts is the one of Debian 13.
    [ ! -d "$1/node/test_cast_FLOAT_to_INT4" ] || cat "$here/allowed_debian13.txt" ;;
  *) cat "$here/allowed.txt" ;;
esac
