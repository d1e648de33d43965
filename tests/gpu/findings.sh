#!/usr/bin/env bash
# What the emulated device finds in a kernel is part of the error that is printed: kernel, file, line,
# block and thread. The kernels are a user's, each with one planted fault.
# Usage: tests/gpu/findings.sh DAIS
set -euo pipefail
dais=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
sed 's/source: .*/source: wrong.cu/; /^gradient/d' examples/custom_ops/soft_shrink.yaml \
  > "$folder/wrong.yaml"

# body of the kernel, what must be found, at which line
expect_finding() {
  printf 'extern "C" __global__ void soft_shrink(const float* x, float* y, long long n, float l) {\n%s\n}\n' \
    "$1" > "$folder/wrong.cu"
  local text status=0
  text=$("$dais" run examples/custom_ops/soft_shrink.onnx --ops "$folder" \
    --input x=uniform:100:-1:1 --device emulated 2>&1) || status=$?
  [ $status = 2 ] || fail "the run of '$1' ended with $status: $text"
  case "$text" in *"wrong.cu:2: $2 in kernel 'soft_shrink'"*) ;; *) fail "no '$2' in: $text" ;; esac
}
expect_finding 'y[threadIdx.x + blockIdx.x * blockDim.x + 100000] = l;' 'out-of-bounds access'
expect_finding '__shared__ float s[256]; s[threadIdx.x] = l; y[0] = s[(threadIdx.x + 32) % 256];' \
  'shared-memory race'
expect_finding 'if (threadIdx.x < 100) __syncthreads(); y[0] = l;' 'divergent barrier'
expect_finding '__trap(); y[0] = l;' 'trap'

# The same through verify, which stops there: a lost device can run no more cases.
mkdir -p "$folder/case/test_data_set_0"
cp examples/custom_ops/soft_shrink.onnx "$folder/case/model.onnx"
printf '\x08\x04\x10\x01\x42\x01x\x4a\x10\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f' \
  > "$folder/case/test_data_set_0/input_0.pb"
printf '\x08\x04\x10\x01\x42\x01y\x4a\x10\x00\x00\x40\x3f\x00\x00\x40\x3f\x00\x00\x40\x3f\x00\x00\x40\x3f' \
  > "$folder/case/test_data_set_0/output_0.pb"
status=0
text=$("$dais" verify --ops "$folder" --device emulated "$folder/case" 2>&1) || status=$?
[ $status = 2 ] || fail "verify ended with $status: $text"
case "$text" in *"wrong.cu:2: trap in kernel"*"the device is lost after"*) ;; *) fail "verify says: $text" ;; esac

# The operator's own tolerance holds for what it makes: a wrong answer within 1e-3 is found.
cp examples/custom_ops/soft_shrink.cu "$folder/wrong.cu"
"$dais" verify --ops "$folder" --device emulated "$folder/case" > /dev/null || fail "the right kernel"
sed -i 's/x\[i\] - lambda/1.0002f * (x[i] - lambda)/' "$folder/wrong.cu"
! "$dais" verify --ops "$folder" --device emulated "$folder/case" > /dev/null ||
  fail "an answer 2e-4 off passes a tolerance of 1e-6"
"$dais" compare examples/custom_ops/soft_shrink.onnx --ops examples/custom_ops \
  --input x=uniform:100:-1:1 --device emulated --against cpu > /dev/null ||
  fail "the CPU and the device differ"
