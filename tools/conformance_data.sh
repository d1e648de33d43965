#!/usr/bin/env bash
# Prints the folder of the ONNX backend suite (node/, simple/, pytorch-converted/, pytorch-operator/).
# The archive that DAIS_CONFORMANCE names, or the one beside the repository, is unpacked once into
# build/conformance; where there is none, the cases of Debian's libonnx-testdata serve.
set -euo pipefail
named=${DAIS_CONFORMANCE:+$(realpath -m "$DAIS_CONFORMANCE")}
[ -z "$named" ] || [ -f "$named" ] || {
  echo "conformance_data: DAIS_CONFORMANCE names $named, which is no file" >&2
  exit 1
}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
archive=${named:-../shared/conformance/onnx-backend-tests.tar.xz}
packaged=/usr/share/libonnx-testdata/data
unpacked=$PWD/build/conformance

if [ -f "$archive" ]; then
  source=$(stat -c '%n %s %Y' "$(realpath "$archive")")
  if [ "$(cat "$unpacked/complete" 2>/dev/null)" != "$source" ]; then
    # Unpacked beside its place and renamed: an interrupted run leaves nothing half done.
    mkdir -p build
    fresh=$(mktemp -d "$unpacked-XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    tar -xJf "$archive" -C "$fresh"
    echo "$source" >"$fresh/complete"
    rm -rf "$unpacked"
    mv -T "$fresh" "$unpacked"
  fi
  echo "$unpacked"
elif [ -d "$packaged" ]; then
  echo "$packaged"
else
  echo "conformance_data: no cases: neither $archive nor $packaged exists" >&2
  echo "Remedy: tools/setup.sh testdata" >&2
  exit 1
fi
