// Tile loops of the other lanes, and conversions between element types.

#include "ops/elementwise/tile_maps.h"
#if DAIS_ISA_LEVEL >= 1
#include <immintrin.h>
#endif

#if DAIS_ISA_LEVEL < 3
namespace dais::DAIS_ISA {
TileLoop real_loop(Scalar function, unsigned repeats);
namespace {

TileLoop double_loop(Scalar function, unsigned repeats) {
  using P = Parameters<double>;
  if (TileLoop loop = arithmetic_loop<double>(function, repeats)) return loop;
  if (repeats != 0) return nullptr;
  switch (function) {
    case Scalar::abs: return map1<double, double, [](double x, P) { return __builtin_fabs(x); }>;
    case Scalar::neg: return map1<double, double, [](double x, P) { return -x; }>;
    case Scalar::sqrt: return map1<double, double, [](double x, P) { return __builtin_sqrt(x); }>;
    default: return nullptr;
  }
}

using Int = int64_t;
using IntP = Parameters<int64_t>;
inline uint64_t u(int64_t x) { return static_cast<uint64_t>(x); }

TileLoop integer_pair(Scalar function, unsigned repeats) {
  switch (function) {
    case Scalar::add:
    case Scalar::sum:
      return map2<Int, Int, [](Int a, Int b, IntP) { return u(a) + u(b); }>(repeats);
    case Scalar::sub:
      return map2<Int, Int, [](Int a, Int b, IntP) { return u(a) - u(b); }>(repeats);
    case Scalar::mul:
      return map2<Int, Int, [](Int a, Int b, IntP) { return u(a) * u(b); }>(repeats);
    case Scalar::min:
      return map2<Int, Int, [](Int a, Int b, IntP) { return a < b ? a : b; }>(repeats);
    case Scalar::max:
      return map2<Int, Int, [](Int a, Int b, IntP) { return b < a ? a : b; }>(repeats);
    case Scalar::bitwise_and:
      return map2<Int, Int, [](Int a, Int b, IntP) { return a & b; }>(repeats);
    case Scalar::bitwise_or:
      return map2<Int, Int, [](Int a, Int b, IntP) { return a | b; }>(repeats);
    case Scalar::bitwise_xor:
      return map2<Int, Int, [](Int a, Int b, IntP) { return a ^ b; }>(repeats);
    case Scalar::clip: return clip_loop<Int>(repeats);
    case Scalar::where: return where_loop<Int>(repeats);
    default: return compare_loop<Int>(function, repeats);
  }
}

TileLoop integer_loop(Scalar function, unsigned repeats) {
  if (TileLoop loop = integer_pair(function, repeats)) return loop;
  if (repeats != 0) return nullptr;
  switch (function) {
    case Scalar::abs: return map1<Int, Int, [](Int x, IntP) { return x < 0 ? 0 - u(x) : u(x); }>;
    case Scalar::neg: return map1<Int, Int, [](Int x, IntP) { return 0 - u(x); }>;
    case Scalar::relu: return map1<Int, Int, [](Int x, IntP) { return x < 0 ? 0 : x; }>;
    case Scalar::bitwise_not: return map1<Int, Int, [](Int x, IntP) { return ~x; }>;
    default: return nullptr;
  }
}

TileLoop boolean_loop(Scalar function, unsigned repeats) {
  using B = uint8_t;
  using P = Parameters<uint8_t>;
  switch (function) {
    case Scalar::logical_and: return map2<B, B, [](B a, B b, P) { return a & b; }>(repeats);
    case Scalar::logical_or: return map2<B, B, [](B a, B b, P) { return a | b; }>(repeats);
    case Scalar::logical_xor: return map2<B, B, [](B a, B b, P) { return a ^ b; }>(repeats);
    case Scalar::equal: return map2<B, B, [](B a, B b, P) { return a == b; }>(repeats);
    case Scalar::where: return where_loop<B>(repeats);
    case Scalar::logical_not: return repeats ? nullptr : map1<B, B, [](B x, P) { return x == 0; }>;
    default: return nullptr;
  }
}

TileLoop function_loop(Scalar function, Lane lane, unsigned repeats) {
  switch (lane) {
    case Lane::f32: return real_loop(function, repeats);
    case Lane::f64: return double_loop(function, repeats);
    case Lane::i64: return integer_loop(function, repeats);
    case Lane::u8: return boolean_loop(function, repeats);
  }
  return nullptr;
}

template <typename To, typename From>
void cast_loop(const void* const* in, void* out, int64_t n, const double*) {
  const auto* x = static_cast<const From*>(in[0]);
  auto* y = static_cast<To*>(out);
  DAIS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(x[i]);
}

template <typename From>
void truth_loop(const void* const* in, void* out, int64_t n, const double*) {
  const auto* x = static_cast<const From*>(in[0]);
  auto* y = static_cast<uint8_t*>(out);
  DAIS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] != From{0};
}

/// Out of range gives the nearest limit, NaN gives 0. The upper limit of 64 bits is no double: it
/// stands for all values from 2^63 on.
template <typename From>
void saturate_loop(const void* const* in, void* out, int64_t n, const double* p) {
  const auto* x = static_cast<const From*>(in[0]);
  auto* y = static_cast<int64_t*>(out);
  const double low = p[0], high = p[1];
  const int64_t least = low <= -0x1p63 ? INT64_MIN : static_cast<int64_t>(low);
  const int64_t most = high >= 0x1p63 ? INT64_MAX : static_cast<int64_t>(high);
  DAIS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(x[i]);
    const double inside = value > low && value < high ? value : 0.0;
    const auto whole = static_cast<int64_t>(inside);
    y[i] = value <= low ? least : value >= high ? most : whole;
  }
}

inline float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  const uint32_t rest = static_cast<uint32_t>(h & 0x7fff) << 13;
  // The exponent is moved by a product, which also makes subnormal numbers right.
  const float scaled = __builtin_bit_cast(float, rest) * 0x1p112F;
  const uint32_t finite = __builtin_bit_cast(uint32_t, scaled);
  const uint32_t bits = (h & 0x7c00) == 0x7c00 ? rest | 0x7f800000U : finite;
  return __builtin_bit_cast(float, bits | sign);
}

inline uint16_t float_to_half(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t sign = bits >> 16 & 0x8000;
  const float a = __builtin_bit_cast(float, bits & 0x7fffffffU);
  const uint32_t whole = __builtin_bit_cast(uint32_t, a);
  // Subnormal results: their last bit is 2^-24, which the sum with 0.5 rounds to.
  const uint32_t low = __builtin_bit_cast(uint32_t, a + 0.5F) - 0x3f000000U;
  const uint32_t normal = (whole + 0xfffU + (whole >> 13 & 1) - (112U << 23)) >> 13;
  uint32_t y = whole < (113U << 23) ? low : normal;
  y = whole >= 0x477ff000U ? 0x7c00U : y;
  y = whole > 0x7f800000U ? 0x7e00U | (whole >> 13 & 0x3ff) : y;
  return static_cast<uint16_t>(y | sign);
}

void load_half(const void* const* in, void* out, int64_t n, const double*) {
  const auto* x = static_cast<const uint16_t*>(in[0]);
  auto* y = static_cast<float*>(out);
  int64_t i = 0;
#if DAIS_ISA_LEVEL >= 1
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
#endif
  for (; i < n; ++i) y[i] = half_to_float(x[i]);
}

void store_half(const void* const* in, void* out, int64_t n, const double*) {
  const auto* x = static_cast<const float*>(in[0]);
  auto* y = static_cast<uint16_t*>(out);
  int64_t i = 0;
#if DAIS_ISA_LEVEL >= 1
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) y[i] = float_to_half(x[i]);
}

void load_brain(const void* const* in, void* out, int64_t n, const double*) {
  const auto* x = static_cast<const uint16_t*>(in[0]);
  auto* y = static_cast<float*>(out);
  DAIS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    y[i] = __builtin_bit_cast(float, static_cast<uint32_t>(x[i]) << 16);
}

void store_brain(const void* const* in, void* out, int64_t n, const double*) {
  const auto* x = static_cast<const float*>(in[0]);
  auto* y = static_cast<uint16_t*>(out);
  DAIS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, x[i]);
    const uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1)) >> 16;
    const uint32_t quiet = bits >> 16 | 0x40U;
    y[i] = static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
  }
}

template <typename T>
void wrap_loop(const void* const* in, void* out, int64_t n, const double*) {
  const auto* x = static_cast<const int64_t*>(in[0]);
  auto* y = static_cast<int64_t*>(out);
  DAIS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<int64_t>(static_cast<T>(x[i]));
}

}  // namespace

extern const TileLoops tile_table;
const TileLoops tile_table{
    function_loop,
    // From each lane in turn: to f32, f64, i64, u8.
    {{nullptr, cast_loop<double, float>, saturate_loop<float>, truth_loop<float>},
     {cast_loop<float, double>, nullptr, saturate_loop<double>, truth_loop<double>},
     {cast_loop<float, int64_t>, cast_loop<double, int64_t>, nullptr, truth_loop<int64_t>},
     {cast_loop<float, uint8_t>, cast_loop<double, uint8_t>, cast_loop<int64_t, uint8_t>, nullptr}},
    {load_half, load_brain, cast_loop<int64_t, int32_t>, cast_loop<int64_t, int16_t>,
     cast_loop<int64_t, int8_t>, cast_loop<int64_t, uint32_t>, cast_loop<int64_t, uint16_t>,
     cast_loop<int64_t, uint8_t>},
    {store_half, store_brain, cast_loop<int32_t, int64_t>, cast_loop<int16_t, int64_t>,
     cast_loop<int8_t, int64_t>, cast_loop<uint32_t, int64_t>, cast_loop<uint16_t, int64_t>,
     cast_loop<uint8_t, int64_t>},
    {nullptr, nullptr, wrap_loop<int32_t>, wrap_loop<int16_t>, wrap_loop<int8_t>,
     wrap_loop<uint32_t>, wrap_loop<uint16_t>, wrap_loop<uint8_t>},
};

}  // namespace dais::DAIS_ISA
#endif
