// 16-bit floats to f32 and back, bound by memory. The last few numbers go through a block on the
// stack, so that one loop serves all.

#include <cstdint>
#if DAIS_ISA_LEVEL >= 1
#include <immintrin.h>
#endif

namespace dais::DAIS_ISA {
namespace {

constexpr int kBlock = 8;

#if DAIS_ISA_LEVEL >= 1
void widen_f16_block(const uint16_t* from, float* to) {
  _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
void narrow_f16_block(const float* from, uint16_t* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
}
#else
union Bits {
  uint32_t word;
  float number;
};

void widen_f16_block(const uint16_t* from, float* to) {
  for (int i = 0; i < kBlock; ++i) {
    const uint32_t half = from[i], sign = (half & 0x8000u) << 16, rest = half & 0x7FFFu;
    Bits out;
    if (rest >= 0x7C00u) {
      out.word = 0x7F800000u | (rest << 13);
    } else {
      out.word = rest << 13;
      out.number *= 5.192296858534828e33f;  // 2^112: the bias, also for subnormal numbers
    }
    out.word |= sign;
    to[i] = out.number;
  }
}

void narrow_f16_block(const float* from, uint16_t* to) {
  for (int i = 0; i < kBlock; ++i) {
    Bits in{.word = 0};
    in.number = from[i];
    const uint32_t sign = (in.word >> 16) & 0x8000u;
    in.word &= 0x7FFFFFFFu;
    uint32_t out;
    if (in.word > 0x7F800000u) {
      out = 0x7E00u;
    } else if (in.word >= 0x477FF000u) {
      out = 0x7C00u;
    } else if (in.word < 0x38800000u) {
      in.number += 0.5f;  // the adder rounds subnormal halves into its lowest bits
      out = in.word - 0x3F000000u;
    } else {
      out = (in.word - 0x38000000u + 0xFFFu + ((in.word >> 13) & 1)) >> 13;
    }
    to[i] = static_cast<uint16_t>(out | sign);
  }
}
#endif

void widen_bf16_block(const uint16_t* from, float* to) {
  uint32_t* words = reinterpret_cast<uint32_t*>(to);
  for (int i = 0; i < kBlock; ++i) words[i] = static_cast<uint32_t>(from[i]) << 16;
}

void narrow_bf16_block(const float* from, uint16_t* to) {
  const uint32_t* words = reinterpret_cast<const uint32_t*>(from);
  for (int i = 0; i < kBlock; ++i) {
    const uint32_t word = words[i];
    const bool nan = (word & 0x7FFFFFFFu) > 0x7F800000u;
    const uint32_t rounded = (word + 0x7FFFu + ((word >> 16) & 1)) >> 16;
    to[i] = static_cast<uint16_t>(nan ? (word >> 16) | 0x40u : rounded);
  }
}

template <typename From, typename To, void (*block)(const From*, To*)>
void convert(const From* from, To* to, int64_t count) {
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) block(from + i, to + i);
  if (i == count) return;
  From held[kBlock] = {};
  To made[kBlock];
  for (int64_t k = i; k < count; ++k) held[k - i] = from[k];
  block(held, made);
  for (int64_t k = i; k < count; ++k) to[k] = made[k - i];
}

}  // namespace

void widen_f16(const uint16_t* from, float* to, int64_t count) {
  convert<uint16_t, float, widen_f16_block>(from, to, count);
}
void narrow_f16(const float* from, uint16_t* to, int64_t count) {
  convert<float, uint16_t, narrow_f16_block>(from, to, count);
}
void widen_bf16(const uint16_t* from, float* to, int64_t count) {
  convert<uint16_t, float, widen_bf16_block>(from, to, count);
}
void narrow_bf16(const float* from, uint16_t* to, int64_t count) {
  convert<float, uint16_t, narrow_bf16_block>(from, to, count);
}

}  // namespace dais::DAIS_ISA
