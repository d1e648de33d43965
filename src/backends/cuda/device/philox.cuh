#pragma once

#include "number.cuh"

// The counter-based generator Philox4x32-10, bit for bit that of base/philox.h.

struct PhiloxBlock {
  uint32 word[4];
};

__device__ __forceinline__ PhiloxBlock philox(uint64 key, uint64 stream, uint64 counter) {
  PhiloxBlock x{{static_cast<uint32>(counter), static_cast<uint32>(counter >> 32),
                 static_cast<uint32>(stream), static_cast<uint32>(stream >> 32)}};
  uint32 k0 = static_cast<uint32>(key), k1 = static_cast<uint32>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64 a = uint64(0xD2511F53u) * x.word[0], b = uint64(0xCD9E8D57u) * x.word[2];
    x = {{static_cast<uint32>(b >> 32) ^ x.word[1] ^ k0, static_cast<uint32>(b),
          static_cast<uint32>(a >> 32) ^ x.word[3] ^ k1, static_cast<uint32>(a)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return x;
}

/// Evenly in [0, 1), with 53 bits; `first` is 0 or 2.
__device__ __forceinline__ double philox_unit(const PhiloxBlock& bits, int first) {
  const uint64 word = uint64(bits.word[first + 1]) << 32 | bits.word[first];
  return static_cast<double>(word >> 11) * (1.0 / 9007199254740992.0);
}

/// Of mean 0 and deviation 1.
__device__ __forceinline__ double philox_normal(const PhiloxBlock& bits) {
  return sqrt(-2 * log(1 - philox_unit(bits, 0))) *
         cos(2 * 3.14159265358979323846 * philox_unit(bits, 2));
}
