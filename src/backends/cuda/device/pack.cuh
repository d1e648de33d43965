#pragma once

#include "number.cuh"

// N neighbouring elements moved by one instruction. The address must be a multiple of the pack's
// size, which is at most 16 bytes.

template <int bytes>
struct PackWord;
template <>
struct PackWord<1> {
  using Type = uint8;
};
template <>
struct PackWord<2> {
  using Type = uint16;
};
template <>
struct PackWord<4> {
  using Type = uint32;
};
template <>
struct PackWord<8> {
  using Type = uint2;
};
template <>
struct PackWord<16> {
  using Type = uint4;
};

template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T at[N];
};

template <int N, typename T>
__device__ __forceinline__ Pack<T, N> load_pack(const T* from) {
  using Word = typename PackWord<sizeof(T) * N>::Type;
  const Word word = *reinterpret_cast<const Word*>(from);
  Pack<T, N> pack;
  memcpy(&pack, &word, sizeof(pack));
  return pack;
}

template <typename T, int N>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, N>& pack) {
  using Word = typename PackWord<sizeof(T) * N>::Type;
  Word word;
  memcpy(&word, &pack, sizeof(word));
  *reinterpret_cast<Word*>(to) = word;
}

/// The most elements of T that one instruction moves.
template <typename T>
struct Widest {
  static constexpr int count = 16 / sizeof(T);
};
