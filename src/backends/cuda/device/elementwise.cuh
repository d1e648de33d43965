#pragma once

#include "pack.cuh"
#include "scalar.cuh"

// What generated elementwise kernels are made of: one iteration space in row-major order, walked in
// packs of V neighbours along its last axis. Operands repeat along axes where their stride is 0.

constexpr int kMostOuter = 7;

template <int operands>
struct Space {
  int64 packs;              // of the whole space
  uint32 row;               // packs along the last axis
  int32 outer;              // how many axes come before it; 0: the space is one row
  uint32 sizes[kMostOuter]; // of those, the last one first
  int64 strides[operands][kMostOuter];
  int32 inner[operands];    // along the last axis: 1 or 0
};

union Number {
  double real;
  int64 whole;
};
template <int count>
struct Numbers {
  Number at[count];
};

__device__ __forceinline__ int64 first_pack() {
  return static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64 pack_step() { return static_cast<int64>(gridDim.x) * blockDim.x; }

/// Where pack `pack` begins in each operand.
template <int V, int operands>
__device__ __forceinline__ void locate(const Space<operands>& space, int64 pack, int64* at) {
  if (space.outer == 0) {
#pragma unroll
    for (int k = 0; k < operands; ++k) at[k] = pack * V * space.inner[k];
    return;
  }
  uint32 rest = static_cast<uint32>(pack);
  const uint32 column = rest % space.row;
  rest /= space.row;
#pragma unroll
  for (int k = 0; k < operands; ++k) at[k] = static_cast<int64>(column) * V * space.inner[k];
  for (int axis = 0; axis < space.outer; ++axis) {
    const uint32 index = rest % space.sizes[axis];
    rest /= space.sizes[axis];
#pragma unroll
    for (int k = 0; k < operands; ++k) at[k] += index * space.strides[k][axis];
  }
}

/// V elements as values of the type that they are computed in.
template <int V, typename T, typename C>
__device__ __forceinline__ void read(const T* from, int inner, C (&to)[V]) {
  if (V > 1 && inner != 0) {
    const Pack<T, V> pack = load_pack<V>(from);
#pragma unroll
    for (int i = 0; i < V; ++i) to[i] = widen<C>(pack.at[i]);
  } else {
    const C value = widen<C>(*from);
#pragma unroll
    for (int i = 0; i < V; ++i) to[i] = value;
  }
}

template <int V, typename T, typename C>
__device__ __forceinline__ void write(T* to, const C (&from)[V]) {
  Pack<T, V> pack;
#pragma unroll
  for (int i = 0; i < V; ++i) pack.at[i] = narrow<T>(from[i]);
  store_pack<T, V>(to, pack);
}
