#!/usr/bin/env bash
# run.sh BUILD COMPILER MODEL: installs BUILD below itself, builds the project beside this script
# against that, and runs its programs on MODEL.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/project
build=$1 compiler=$2 model=$3
prefix=$build/consumer/prefix

rm -rf "$build/consumer"
cmake --install "$build" --prefix "$prefix" >/dev/null
# An installation is moved in one piece: nothing in it may name where it was made.
mv "$prefix" "$prefix.moved"
prefix=$prefix.moved
cmake -S "$source" -B "$build/consumer/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$build/consumer/build"
"$build/consumer/build/from_cpp" "$model"
"$build/consumer/build/from_c" "$model"
"$prefix/bin/dais" run "$model" --threads 1
bash -n "$prefix/share/bash-completion/completions/dais"
