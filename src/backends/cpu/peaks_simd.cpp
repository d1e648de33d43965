// Multiplications and additions as fast as each unit can take them: independent accumulators in
// registers, enough to hide the latency of every instruction, and no memory. Each function gives
// the operations that it did, 0 where the level has no such unit.

#include "backends/cpu/peaks_burst.h"
#include "backends/cpu/simd.h"

#if DAIS_ISA_LEVEL >= 3
#include "backends/cpu/tiles.h"
#endif

namespace dais::DAIS_ISA {

using cpu::BurstData;

double burst_f32(int64_t rounds, BurstData& data) {
  constexpr int kSums = 12;
  const Vf a = all(data.numbers[0]), b = all(data.numbers[1]);
  Vf sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = all(data.numbers[i]);
  for (int64_t round = 0; round < rounds; ++round)
    for (int i = 0; i < kSums; ++i) sums[i] = fma(sums[i], a, b);
  for (int i = 0; i < kSums; ++i) data.out[i] = sum(sums[i]);
  return 2.0 * kLanes * kSums * static_cast<double>(rounds);
}

#if DAIS_ISA_LEVEL >= 3

namespace {

/// Four tiles of sums; two of each factor, 16 rows of 64 bytes.
void start_tiles(const BurstData& data) {
  configure_whole_tiles();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, data.bytes, 64);
  _tile_loadd(5, data.bytes + 1024, 64);
  _tile_loadd(6, data.bytes + 2048, 64);
  _tile_loadd(7, data.bytes + 3072, 64);
}

}  // namespace

double burst_i8(int64_t rounds, BurstData& data) {
  start_tiles(data);
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_release();
  return 4 * 2.0 * 16 * 16 * 64 * static_cast<double>(rounds);
}

double burst_bf16(int64_t rounds, BurstData& data) {
  start_tiles(data);
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return 4 * 2.0 * 16 * 16 * 32 * static_cast<double>(rounds);
}

#else

#if DAIS_ISA_LEVEL == 2

double burst_i8(int64_t rounds, BurstData& data) {
  constexpr int kSums = 12;
  const __m512i a = _mm512_load_si512(data.bytes), b = _mm512_load_si512(data.bytes + 64);
  __m512i sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_load_si512(data.bytes + 64 * i);
  for (int64_t round = 0; round < rounds; ++round)
    for (int i = 0; i < kSums; ++i) sums[i] = _mm512_dpbusd_epi32(sums[i], a, b);
  for (int i = 0; i < kSums; ++i)
    data.out[i] = static_cast<float>(_mm512_reduce_add_epi32(sums[i]));
  return 2.0 * 64 * kSums * static_cast<double>(rounds);
}

#else

double burst_i8(int64_t, BurstData&) { return 0; }

#endif

double burst_bf16(int64_t, BurstData&) { return 0; }

#endif

}  // namespace dais::DAIS_ISA
