#!/usr/bin/env bash
# usage: torch_root.sh FOLDER: makes a Debian 13 root with its python3-torch (2.6) in FOLDER, about
# 1.5 GB. Needs root or sudo, and debootstrap.
set -euo pipefail
[ $# -eq 1 ] || { sed -n 2,3p "$0" >&2; exit 2; }
here=$(dirname "$(realpath "$0")")
mkdir -p "$1"
folder=$(realpath "$1")
[ ! -e "$folder/root/usr/lib/python3/dist-packages/torch" ] || { echo "$folder/root is made"; exit 0; }
log=$(mktemp)
TMPDIR=$folder "$here/../../tools/fresh_root.sh" trixie --keep --command \
  'apt-get -q update && apt-get -q install -y --no-install-recommends python3-torch python3-numpy \
   libopenblas0-openmp' | tee "$log"
made=$(sed -n 's/^fresh_root: the root is kept in //p' "$log")
rm "$log"
[ -n "$made" ] || exit 1
mv "$made" "$folder/root"
rmdir "$(dirname "$made")" 2>/dev/null || true
