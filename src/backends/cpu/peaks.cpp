#include "backends/cpu/peaks.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "backends/cpu/peaks_burst.h"
#include "base/span.h"
#include "base/threads.h"

namespace dais {

#define DAIS_PEAKS_LEVEL(level)                \
  namespace level {                            \
  double burst_f32(int64_t, cpu::BurstData&);  \
  double burst_i8(int64_t, cpu::BurstData&);   \
  double burst_bf16(int64_t, cpu::BurstData&); \
  }
DAIS_PEAKS_LEVEL(plain)
DAIS_PEAKS_LEVEL(avx2)
DAIS_PEAKS_LEVEL(avx512)
DAIS_PEAKS_LEVEL(amx)
#undef DAIS_PEAKS_LEVEL

namespace cpu {
namespace {

using Burst = double (*)(int64_t rounds, BurstData& data);

/// f32 numbers are cut into three bf16 numbers each, and six of the nine partial products count.
constexpr double kTileProducts = 6;
/// Three vector instructions multiply and add 64 pairs of bytes on AVX2, against 16 of f32 in one.
constexpr double kByteGainAvx2 = 4.0 / 3;
constexpr double kSecondsEach = 0.005;

/// The best of several goes.
template <typename Go>
double best_rate(double seconds, Go go) {
  double best = 0;
  const double end = steady_seconds() + seconds;
  do {
    const double start = steady_seconds();
    const double done = go();
    best = std::max(best, done / std::max(steady_seconds() - start, 1e-9));
  } while (steady_seconds() < end);
  return best;
}

/// The sum of what each thread reaches by its own clock while the others work, too: waking the
/// team takes longer than a go.
template <typename Rate>
double sum_of_threads(int threads, Rate rate) {
  std::vector<double> rates(static_cast<size_t>(threads));
  parallel_for(threads, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      rates[static_cast<size_t>(i)] = rate(static_cast<size_t>(i));
  });
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

double measure(Burst burst, int64_t rounds, int threads) {
  std::vector<BurstData> data(static_cast<size_t>(threads));
  for (BurstData& each : data) std::fill(std::begin(each.numbers), std::end(each.numbers), 0.5f);
  return sum_of_threads(threads, [&](size_t i) {
    return best_rate(kSecondsEach, [&] { return burst(rounds, data[i]); });
  });
}

/// Every thread copies its own block of `bytes` (both sides together) again and again.
double measure_copy(size_t bytes, int repeats, double seconds, int threads) {
  const size_t half = bytes / 2;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < threads; ++i) blocks.emplace_back(new char[bytes]);
  return sum_of_threads(threads, [&](size_t i) {
    char* const from = blocks[i].get();
    char* const to = from + half;
    std::memset(from, 1, bytes);
    return best_rate(seconds, [&] {
      for (int k = 0; k < repeats; ++k) {
        std::memcpy(to, from, half);
        // What the copy wrote is looked at, so that it cannot be left out.
        __asm__ volatile("" : : "r"(to) : "memory");
      }
      return 2.0 * static_cast<double>(half) * repeats;
    });
  });
}

void measure_copies(Peaks& out, int threads) {
  constexpr size_t kNear = 32 << 10, kMiddle = 1 << 20, kFar = 8 << 20;
  const auto team = static_cast<size_t>(threads);
  out.copies[0] = {static_cast<double>(kNear * team), measure_copy(kNear, 256, 0.004, threads)};
  out.copies[1] = {static_cast<double>(kMiddle * team), measure_copy(kMiddle, 4, 0.006, threads)};
  out.copies[2] = {static_cast<double>(kFar * team), measure_copy(kFar, 1, 0.01, threads)};
}

}  // namespace

const Peaks::Rate& Peaks::rate(DType dtype) const {
  switch (dtype) {
    case DType::f64: return f64;
    case DType::bf16: return bf16;
    case DType::i8:
    case DType::u8: return i8;
    default: return f32;
  }
}

double Peaks::bandwidth(double bytes) const {
  for (const Copy& copy : copies)
    if (bytes <= copy.footprint) return copy.per_second;
  return copies.back().per_second;
}

double Peaks::bound(double flops, double bytes, DType dtype, double seconds) const {
  double rate = this->rate(dtype).per_second;
  const bool in_parts = dtype == DType::f32 && flops > rate * seconds;
  if (in_parts) rate = std::max(rate, f32_in_parts.per_second);
  const double compute = rate > 0 ? flops / rate : 0;
  const double copy = bandwidth(bytes);
  return std::max(compute, copy > 0 ? bytes / copy : 0);
}

Peaks measure_peaks(Isa isa, int threads) {
  set_team_size(threads);
  constexpr Burst f32[] = {plain::burst_f32, avx2::burst_f32, avx512::burst_f32, amx::burst_f32};
  constexpr int64_t kRounds = 16384;
  Peaks out;
  out.f32 = {measure(f32[static_cast<int>(isa)], kRounds, threads), true};
  out.f64 = {out.f32.per_second / 2, false};
  out.bf16 = {out.f32.per_second, false};
  out.i8 = {out.f32.per_second * (isa == Isa::avx2 ? kByteGainAvx2 : 1), false};
  if (isa >= Isa::avx512) {
    const Burst burst = isa == Isa::amx ? amx::burst_i8 : avx512::burst_i8;
    out.i8 = {measure(burst, kRounds, threads), true};
  }
  if (isa == Isa::amx) {
    out.bf16 = {measure(amx::burst_bf16, kRounds, threads), true};
    out.f32_in_parts = {out.bf16.per_second / kTileProducts, false};
  }
  measure_copies(out, threads);
  return out;
}

}  // namespace cpu
}  // namespace dais
