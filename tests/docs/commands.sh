#!/usr/bin/env bash
# commands.sh DAIS MODEL FILE.md...: runs every `dais` line of the ```sh blocks in a folder of its
# own, where model.onnx is MODEL. A line that is meant to fail ends in "# exit N".
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dais=$1 model=$2
shift 2
lines=$("$here/extract" sh "$@")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/cases/test_fashion"
ln -s "$dais" "$folder/bin/dais"
cp "$model" "$folder/model.onnx"
cp "$model" "$folder/other.onnx"
awk 'BEGIN { print "a,b,label"; for (i = 0; i < 400; ++i) { a = i % 2; b = int(i / 2) % 2
  print a "," b "," (a == b ? "same" : "other") } }' >"$folder/table.csv"
cd "$folder"
PATH=$folder/bin:$PATH
failed=0 count=0
while IFS= read -r line; do
  wanted=0
  [[ $line =~ '# exit '([0-9]+)$ ]] && wanted=${BASH_REMATCH[1]}
  status=0
  bash -c "$line" >output 2>&1 </dev/null || status=$?
  count=$((count + 1))
  if [ "$status" -ne "$wanted" ]; then
    echo "exit code $status, expected $wanted: $line"
    cat output
    failed=1
  fi
done <<<"$lines"
echo "$count command lines"
exit $failed
