// Folds of f32 data into doubles, along rows (16 lanes, joined in a fixed order) and across them.

#include "ops/reduce/reduce_loops.h"

#if DAIS_ISA_LEVEL < 3
namespace dais::DAIS_ISA {
namespace {

constexpr int kLanes = 16;

struct Sum {
  static constexpr double start = 0;
  static double step(double total, float x) { return total + static_cast<double>(x); }
  static double join(double a, double b) { return a + b; }
};
struct SumSquare {
  static constexpr double start = 0;
  static double step(double total, float x) {
    return total + static_cast<double>(x) * static_cast<double>(x);
  }
  static double join(double a, double b) { return a + b; }
};
struct SumAbsolute {
  static constexpr double start = 0;
  static double step(double total, float x) {
    return total + static_cast<double>(__builtin_fabsf(x));
  }
  static double join(double a, double b) { return a + b; }
};
/// NaN wins.
struct Max {
  static constexpr double start = -__builtin_inf();
  static double step(double total, float x) { return join(total, static_cast<double>(x)); }
  static double join(double a, double b) { return a != a || a > b ? a : b; }
};
struct Min {
  static constexpr double start = __builtin_inf();
  static double step(double total, float x) { return join(total, static_cast<double>(x)); }
  static double join(double a, double b) { return a != a || a < b ? a : b; }
};

template <typename F>
double along(const float* x, int64_t n) {
  double lanes[kLanes];
  for (double& lane : lanes) lane = F::start;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k) lanes[k] = F::step(lanes[k], x[i + k]);
  for (int k = 0; i < n; ++i, ++k) lanes[k] = F::step(lanes[k], x[i]);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) lanes[k] = F::join(lanes[k], lanes[k + half]);
  return lanes[0];
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
