#!/usr/bin/env bash
# Builds dais and runs its whole test suite. See ./test.sh --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. tools/steps.sh

usage() {
  cat <<'TEXT'
Usage: ./test.sh [--full] [--help]
Installs the Debian packages that are missing (root or sudo), builds the release preset and runs the
unit tests, the text checks and the ONNX conformance suite through CTest. Safe to run again: only
what changed is rebuilt.

  --full   also: the slow tests (conformance and models on the emulated device), the suite under
           AddressSanitizer and UBSan, the threaded tests under ThreadSanitizer, clang-tidy, a short
           run of each fuzzer, and a build from nothing in fresh Debian 12 and Debian 13 roots.
           Takes hours on two cores; goes on after a failure and lists every stage at the end.

The conformance suite is the archive beside the repository, or the one that the variable
DAIS_CONFORMANCE names, or else the cases of Debian's libonnx-testdata.

Exit code: 0 when everything passed, 1 when something failed, 2 for wrong usage.
Example: ./test.sh && ctest --test-dir build/release -R unit/
TEXT
}

full=no
for argument in "$@"; do
  case $argument in
    --full) full=yes ;;
    -h | --help) usage; exit 0 ;;
    *) echo "test.sh: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

# The ONNX archive lies beside the repository where it is developed; elsewhere Debian has cases.
sections=(build)
[ -n "${DAIS_CONFORMANCE:-}" ] || [ -e ../shared/conformance ] || sections+=(testdata)
[ $full = no ] || sections+=(full)

run_tests() {  # preset, then arguments of ctest
  local preset=$1
  shift
  ctest --test-dir "build/$preset" --output-on-failure -j "$(nproc)" "$@"
}

build_and_test() { build "$1" && run_tests "$@"; }

run_fuzzers() {
  [ -f tests/fuzz/CMakeLists.txt ] || { echo "no fuzz targets"; return 0; }
  build fuzz && tools/fuzz.sh 60
}

# Nothing else needs Slurm: where it cannot be had, its test is skipped.
[ "$(id -u)" != 0 ] || tools/setup.sh slurm || echo "without Slurm, e2e/slurm is skipped"

step "packages" tools/setup.sh "${sections[@]}" && step "build" build release &&
  step "tests" run_tests release || finish test.sh
if [ $full = yes ]; then
  # The entries that only this configuration has: whole suites on the emulated device.
  step "slow tests" run_tests release -C slow -L slow || true
  step "address and undefined-behaviour sanitizers" build_and_test asan || true
  step "thread sanitizer" build_and_test tsan -L threads || true
  step "clang-tidy" tools/tidy.sh || true
  step "fuzzers" run_fuzzers || true
  step "fresh Debian 12" tools/fresh_root.sh bookworm || true
  step "fresh Debian 13" tools/fresh_root.sh trixie || true
fi
finish test.sh
