// Depthwise convolution of bytes. Interleaving the rows of four taps byte by byte gives vectors of
// 16 channels x 4 taps, one dot-product instruction each; weights, offsets and scales are kept in
// the order of channels that this gives, and packing the results to bytes brings it back.

#include "backends/cpu/byte_store.h"

namespace dais::DAIS_ISA {
namespace {

using cpu::ByteDepthwise;
constexpr int64_t kBlock = cpu::kDepthwiseBlock;

#if DAIS_ISA_LEVEL >= 2

struct Block {
  const int8_t* weights;
  __m512i start[4];
  Vf scales[4];
  __mmask64 mask;
};

inline void add_taps(const Block& b, __m512i (&sums)[4], const __m512i (&rows)[4], int64_t group) {
  const __m512i a = _mm512_unpacklo_epi8(rows[0], rows[1]);
  const __m512i c = _mm512_unpacklo_epi8(rows[2], rows[3]);
  const __m512i d = _mm512_unpackhi_epi8(rows[0], rows[1]);
  const __m512i e = _mm512_unpackhi_epi8(rows[2], rows[3]);
  const __m512i parts[4] = {_mm512_unpacklo_epi16(a, c), _mm512_unpackhi_epi16(a, c),
                            _mm512_unpacklo_epi16(d, e), _mm512_unpackhi_epi16(d, e)};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    sums[i] = _mm512_dpbusd_epi32(sums[i], parts[i],
                                  _mm512_loadu_si512(b.weights + group * 256 + i * 64));
}

inline __m512i finished(const ByteDepthwise& g, const Block& b, const __m512i (&sums)[4]) {
  __m512i bytes[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const Vf value = held(mul(_mm512_cvtepi32_ps(sums[i]), b.scales[i]), g.low, g.high);
    bytes[i] = _mm512_add_epi32(_mm512_cvtps_epi32(value), _mm512_set1_epi32(g.zero));
  }
  const __m512i low = _mm512_packs_epi32(bytes[0], bytes[1]);
  const __m512i high = _mm512_packs_epi32(bytes[2], bytes[3]);
  return g.out == ByteOut::u8 ? _mm512_packus_epi16(low, high) : _mm512_packs_epi16(low, high);
}

void run_block(const ByteDepthwise& g, const Block& b, const uint8_t* const* rows, int64_t count,
               int64_t channel, uint8_t* y) {
  const __m512i flip = _mm512_set1_epi8(g.x_signed ? -128 : 0);
  const auto load_row = [&](const uint8_t* row) {
    return _mm512_xor_si512(_mm512_maskz_loadu_epi8(b.mask, row + channel), flip);
  };
  for (int64_t i = 0; i < count; ++i, rows += g.taps) {
    __m512i sums[4] = {b.start[0], b.start[1], b.start[2], b.start[3]};
    int64_t t = 0;
    for (; t + 4 <= g.taps; t += 4) {
      const __m512i four[4] = {load_row(rows[t]), load_row(rows[t + 1]), load_row(rows[t + 2]),
                               load_row(rows[t + 3])};
      add_taps(b, sums, four, t / 4);
    }
    if (t < g.taps) {
      __m512i four[4] = {};
      for (int64_t j = 0; j < g.taps - t; ++j) four[j] = load_row(rows[t + j]);
      add_taps(b, sums, four, t / 4);
    }
    _mm512_mask_storeu_epi8(y + i * g.channels + channel, b.mask, finished(g, b, sums));
  }
}

#else

/// Place of a channel of a block in packed order.
inline int64_t place_of(int64_t c) { return c % 16 / 4 * 16 + c / 16 * 4 + c % 4; }

void run_block(const ByteDepthwise& g, const int8_t* weights, const uint8_t* const* rows,
               int64_t count, int64_t channel, uint8_t* y) {
  const int64_t width = g.channels - channel < kBlock ? g.channels - channel : kBlock;
  for (int64_t i = 0; i < count; ++i, rows += g.taps) {
    int32_t sums[kBlock];
    for (int64_t c = 0; c < width; ++c) sums[c] = g.offset[channel + place_of(c)];
    for (int64_t t = 0; t < g.taps; ++t) {
      const uint8_t* row = rows[t] + channel;
      const int8_t* from = weights + t / 4 * 256 + t % 4;
      for (int64_t c = 0; c < width; ++c) {
        const int32_t value =
            g.x_signed ? static_cast<int32_t>(static_cast<int8_t>(row[c])) : row[c];
        sums[c] += value * from[place_of(c) * 4];
      }
    }
    for (int64_t c = 0; c < width; ++c) {
      const float value = static_cast<float>(sums[c]) * g.scales[channel + place_of(c)];
      y[i * g.channels + channel + c] =
          static_cast<uint8_t>(static_cast<int32_t>(whole(held(value, g.low, g.high))) + g.zero);
    }
  }
}

#endif

}  // namespace

void depthwise_positions(const ByteDepthwise& g, const uint8_t* const* rows, int64_t count,
                         uint8_t* y) {
  const int64_t groups = (g.taps + 3) / 4;
  for (int64_t channel = 0; channel < g.channels; channel += kBlock) {
    const int8_t* weights = g.weights + channel / kBlock * groups * 256;
#if DAIS_ISA_LEVEL >= 2
    const int64_t left = g.channels - channel;
    Block b;
    b.weights = weights;
    b.mask = left >= kBlock ? ~uint64_t{0} : (uint64_t{1} << left) - 1;
    for (int i = 0; i < 4; ++i) {
      b.start[i] = _mm512_loadu_si512(g.offset + channel + 16 * i);
      const __m512i sums = _mm512_loadu_si512(g.sums + channel + 16 * i);
      if (g.x_signed) b.start[i] = _mm512_sub_epi32(b.start[i], _mm512_slli_epi32(sums, 7));
      b.scales[i] = load(g.scales + channel + 16 * i);
    }
    run_block(g, b, rows, count, channel, y);
#else
    run_block(g, weights, rows, count, channel, y);
#endif
  }
}

}  // namespace dais::DAIS_ISA
