#include "backends/cpu/convert.h"

#include "base/threads.h"

namespace dais {

#define DAIS_CONVERT_LEVEL(level)                     \
  namespace level {                                   \
  void widen_f16(const uint16_t*, float*, int64_t);   \
  void widen_bf16(const uint16_t*, float*, int64_t);  \
  void narrow_f16(const float*, uint16_t*, int64_t);  \
  void narrow_bf16(const float*, uint16_t*, int64_t); \
  }
DAIS_CONVERT_LEVEL(plain)
DAIS_CONVERT_LEVEL(avx2)
#undef DAIS_CONVERT_LEVEL

namespace cpu {
namespace {
constexpr int64_t kGrain = 32768;
}

void widen(Isa isa, Half format, const uint16_t* from, float* to, int64_t count) {
  const bool wide = isa >= Isa::avx2;
  const auto loop = format == Half::f16 ? (wide ? avx2::widen_f16 : plain::widen_f16)
                                        : (wide ? avx2::widen_bf16 : plain::widen_bf16);
  parallel_for(count, kGrain,
               [&](int64_t first, int64_t last) { loop(from + first, to + first, last - first); });
}

void narrow(Isa isa, Half format, const float* from, uint16_t* to, int64_t count) {
  const bool wide = isa >= Isa::avx2;
  const auto loop = format == Half::f16 ? (wide ? avx2::narrow_f16 : plain::narrow_f16)
                                        : (wide ? avx2::narrow_bf16 : plain::narrow_bf16);
  parallel_for(count, kGrain,
               [&](int64_t first, int64_t last) { loop(from + first, to + first, last - first); });
}

}  // namespace cpu
}  // namespace dais
