// Addresses of the inputs come first, then those of the outputs, then the arguments of the .yaml
// file: sizes as long long, attributes as float.

extern "C" __global__ void soft_shrink(const float* x, float* y, long long count, float lambda) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  y[i] = x[i] > lambda ? x[i] - lambda : x[i] < -lambda ? x[i] + lambda : 0.0f;
}

extern "C" __global__ void soft_shrink_gradient(const float* x, const float* dy, float* dx,
                                                long long count, float lambda) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  dx[i] = x[i] > lambda || x[i] < -lambda ? dy[i] : 0.0f;
}
