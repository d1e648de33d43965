#pragma once

// Loops over a tile around a function of one element. For *_simd.cpp only.

#include "ops/elementwise/loops.h"

#if defined(__GNUC__) && !defined(__clang__)
#define DAIS_INDEPENDENT _Pragma("GCC ivdep")
#else
#define DAIS_INDEPENDENT
#endif

namespace dais::DAIS_ISA {
namespace {

/// Parameters as the lane's type.
template <typename T>
struct Parameters {
  T a, b;
};
template <typename T>
Parameters<T> parameters_of(const double* p) {
  return p ? Parameters<T>{static_cast<T>(p[0]), static_cast<T>(p[1])} : Parameters<T>{};
}

template <typename T, typename R, auto f>
void map1(const void* const* in, void* out, int64_t n, const double* p) {
  const auto* x = static_cast<const T*>(in[0]);
  auto* y = static_cast<R*>(out);
  const Parameters<T> q = parameters_of<T>(p);
  DAIS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<R>(f(x[i], q));
}

template <typename T, typename R, auto f, bool repeat_a, bool repeat_b>
void map2_of(const void* const* in, void* out, int64_t n, const double* p) {
  const auto* a = static_cast<const T*>(in[0]);
  const auto* b = static_cast<const T*>(in[1]);
  auto* y = static_cast<R*>(out);
  const Parameters<T> q = parameters_of<T>(p);
  const T first_a = n > 0 ? a[0] : T{}, first_b = n > 0 ? b[0] : T{};
  DAIS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<R>(f(repeat_a ? first_a : a[i], repeat_b ? first_b : b[i], q));
}

template <typename T, typename R, auto f>
TileLoop map2(unsigned repeats) {
  switch (repeats) {
    case 0: return map2_of<T, R, f, false, false>;
    case 1: return map2_of<T, R, f, true, false>;
    case 2: return map2_of<T, R, f, false, true>;
    default: return nullptr;
  }
}

/// Clip: bounds are single elements, or all operands are full.
template <typename T, bool repeat>
void clip_of(const void* const* in, void* out, int64_t n, const double*) {
  const auto* x = static_cast<const T*>(in[0]);
  const auto* low = static_cast<const T*>(in[1]);
  const auto* high = static_cast<const T*>(in[2]);
  auto* y = static_cast<T*>(out);
  const T first_low = n > 0 ? low[0] : T{}, first_high = n > 0 ? high[0] : T{};
  DAIS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T least = repeat ? first_low : low[i], most = repeat ? first_high : high[i];
    const T raised = x[i] < least ? least : x[i];
    y[i] = raised > most ? most : raised;
  }
}

template <typename T>
TileLoop clip_loop(unsigned repeats) {
  if (repeats == 0) return clip_of<T, false>;
  return repeats == 6 ? clip_of<T, true> : nullptr;
}

template <typename T, bool repeat_x, bool repeat_y>
void where_of(const void* const* in, void* out, int64_t n, const double*) {
  const auto* c = static_cast<const uint8_t*>(in[0]);
  const auto* x = static_cast<const T*>(in[1]);
  const auto* y = static_cast<const T*>(in[2]);
  auto* z = static_cast<T*>(out);
  const T first_x = n > 0 ? x[0] : T{}, first_y = n > 0 ? y[0] : T{};
  DAIS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T yes = repeat_x ? first_x : x[i], no = repeat_y ? first_y : y[i];
    z[i] = c[i] != 0 ? yes : no;
  }
}

template <typename T>
TileLoop where_loop(unsigned repeats) {
  switch (repeats) {
    case 0: return where_of<T, false, false>;
    case 2: return where_of<T, true, false>;
    case 4: return where_of<T, false, true>;
    case 6: return where_of<T, true, true>;
    default: return nullptr;
  }
}

/// Comparisons, the same for every number.
template <typename T>
TileLoop compare_loop(Scalar function, unsigned repeats) {
  using Q = Parameters<T>;
  switch (function) {
    case Scalar::equal: return map2<T, uint8_t, [](T a, T b, Q) { return a == b; }>(repeats);
    case Scalar::less: return map2<T, uint8_t, [](T a, T b, Q) { return a < b; }>(repeats);
    case Scalar::less_or_equal:
      return map2<T, uint8_t, [](T a, T b, Q) { return a <= b; }>(repeats);
    case Scalar::greater: return map2<T, uint8_t, [](T a, T b, Q) { return b < a; }>(repeats);
    case Scalar::greater_or_equal:
      return map2<T, uint8_t, [](T a, T b, Q) { return b <= a; }>(repeats);
    default: return nullptr;
  }
}

/// Arithmetic that float lanes share.
template <typename T>
TileLoop arithmetic_loop(Scalar function, unsigned repeats) {
  using Q = Parameters<T>;
  switch (function) {
    case Scalar::add:
    case Scalar::sum:
    case Scalar::mean: return map2<T, T, [](T a, T b, Q) { return a + b; }>(repeats);
    case Scalar::sub: return map2<T, T, [](T a, T b, Q) { return a - b; }>(repeats);
    case Scalar::mul: return map2<T, T, [](T a, T b, Q) { return a * b; }>(repeats);
    case Scalar::div: return map2<T, T, [](T a, T b, Q) { return a / b; }>(repeats);
    case Scalar::min:
      return map2<T, T, [](T a, T b, Q) { return a != a || a < b ? a : b; }>(repeats);
    case Scalar::max:
      return map2<T, T, [](T a, T b, Q) { return a != a || b < a ? a : b; }>(repeats);
    case Scalar::prelu:
      return map2<T, T, [](T a, T b, Q) { return a < T{0} ? a * b : a; }>(repeats);
    case Scalar::clip: return clip_loop<T>(repeats);
    case Scalar::where: return where_loop<T>(repeats);
    default: return compare_loop<T>(function, repeats);
  }
}

}  // namespace
}  // namespace dais::DAIS_ISA
