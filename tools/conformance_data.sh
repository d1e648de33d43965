#!/usr/bin/env bash
# Prints the folder of the ONNX backend suite (node/, simple/, pytorch-converted/, pytorch-operator/).
# Where the archive lies beside the repository it is unpacked once into build/conformance; elsewhere
# the cases of Debian's libonnx-testdata serve.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
archive=../shared/conformance/onnx-backend-tests.tar.xz
packaged=/usr/share/libonnx-testdata/data
unpacked=$PWD/build/conformance

if [ -f "$archive" ]; then
  if [ ! -f "$unpacked/complete" ] || [ "$archive" -nt "$unpacked/complete" ]; then
    # Unpacked beside its place and renamed: an interrupted run leaves nothing half done.
    mkdir -p build
    fresh=$(mktemp -d "$unpacked-XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    tar -xJf "$archive" -C "$fresh"
    touch "$fresh/complete"
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
