// Folds of f32 data into doubles, along rows (16 lanes, joined in a fixed order) and across them.

#include "ops/reduce/reduce_loops.h"

#if DAIS_ISA_LEVEL < 3
namespace dais::DAIS_ISA {
namespace {

constexpr int kLanes = 16;

/// Sums are kept as double, extremes need no more than f32.
struct Sum {
  using Lane = double;
  static constexpr double start = 0;
  static double step(double total, float x) { return total + static_cast<double>(x); }
  static double join(double a, double b) { return a + b; }
};
struct SumSquare {
  using Lane = double;
  static constexpr double start = 0;
  static double step(double total, float x) {
    return total + static_cast<double>(x) * static_cast<double>(x);
  }
  static double join(double a, double b) { return a + b; }
};
struct SumAbsolute {
  using Lane = double;
  static constexpr double start = 0;
  static double step(double total, float x) {
    return total + static_cast<double>(__builtin_fabsf(x));
  }
  static double join(double a, double b) { return a + b; }
};
/// NaN wins.
struct Max {
  using Lane = float;
  static constexpr float start = -__builtin_inff();
  static float step(float top, float x) { return join(top, x); }
  static float join(float a, float b) {
    return (static_cast<int>(a != a) | static_cast<int>(a > b)) != 0 ? a : b;
  }
};
struct Min {
  using Lane = float;
  static constexpr float start = __builtin_inff();
  static float step(float least, float x) { return join(least, x); }
  static float join(float a, float b) {
    return (static_cast<int>(a != a) | static_cast<int>(a < b)) != 0 ? a : b;
  }
};

template <typename F>
double along(const float* x, int64_t n) {
  using Lane = typename F::Lane;
  Lane lanes[kLanes];
  for (Lane& lane : lanes) lane = F::start;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k) lanes[k] = F::step(lanes[k], x[i + k]);
  for (int k = 0; i < n; ++i, ++k) lanes[k] = F::step(lanes[k], x[i]);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) lanes[k] = F::join(lanes[k], lanes[k + half]);
  return static_cast<double>(lanes[0]);
}

template <typename F>
void across(const float* x, int64_t n, int64_t stride, int64_t width, double* total) {
  for (int64_t i = 0; i < width; ++i) total[i] = F::start;
  for (int64_t k = 0; k < n; ++k, x += stride)
    for (int64_t i = 0; i < width; ++i) total[i] = F::step(total[i], x[i]);
}

double fold_along(FoldKind kind, const float* x, int64_t n) {
  switch (kind) {
    case FoldKind::sum: return along<Sum>(x, n);
    case FoldKind::sum_square: return along<SumSquare>(x, n);
    case FoldKind::sum_absolute: return along<SumAbsolute>(x, n);
    case FoldKind::max: return along<Max>(x, n);
    case FoldKind::min: return along<Min>(x, n);
  }
  return 0;
}

void fold_across(FoldKind kind, const float* x, int64_t n, int64_t stride, int64_t width,
                 double* total) {
  switch (kind) {
    case FoldKind::sum: return across<Sum>(x, n, stride, width, total);
    case FoldKind::sum_square: return across<SumSquare>(x, n, stride, width, total);
    case FoldKind::sum_absolute: return across<SumAbsolute>(x, n, stride, width, total);
    case FoldKind::max: return across<Max>(x, n, stride, width, total);
    case FoldKind::min: return across<Min>(x, n, stride, width, total);
  }
}

}  // namespace

extern const ReduceLoops fold_table;
const ReduceLoops fold_table{fold_along, fold_across};

}  // namespace dais::DAIS_ISA
#endif
