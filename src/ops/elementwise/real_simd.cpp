// Tile loops of the f32 lane.

#include "ops/elementwise/tile_maps.h"
#include "ops/elementwise/vector_math.h"

#if DAIS_ISA_LEVEL < 3
namespace dais::DAIS_ISA {
namespace {

using P = Parameters<float>;

template <auto f>
constexpr TileLoop unary = map1<float, float, f>;

/// What only the C library has here: one call per element.
TileLoop library_function(Scalar function) {
  switch (function) {
    case Scalar::acos: return unary<[](float x, P) { return __builtin_acosf(x); }>;
    case Scalar::acosh: return unary<[](float x, P) { return __builtin_acoshf(x); }>;
    case Scalar::asin: return unary<[](float x, P) { return __builtin_asinf(x); }>;
    case Scalar::asinh: return unary<[](float x, P) { return __builtin_asinhf(x); }>;
    case Scalar::atan: return unary<[](float x, P) { return __builtin_atanf(x); }>;
    case Scalar::atanh: return unary<[](float x, P) { return __builtin_atanhf(x); }>;
    case Scalar::cosh: return unary<[](float x, P) { return __builtin_coshf(x); }>;
    case Scalar::sinh: return unary<[](float x, P) { return __builtin_sinhf(x); }>;
    case Scalar::tan: return unary<[](float x, P) { return __builtin_tanf(x); }>;
    default: return nullptr;
  }
}

/// Beyond this the reduction loses digits, and elements go to the C library one by one.
constexpr float kLargestAngle = 1e6F;

template <auto fast, auto exact>
void periodic(const void* const* in, void* out, int64_t n, const double*) {
  const auto* x = static_cast<const float*>(in[0]);
  auto* y = static_cast<float*>(out);
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float a = __builtin_fabsf(x[i]);
    largest = a > largest ? a : largest;
  }
  if (largest <= kLargestAngle) {
    DAIS_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) y[i] = fast(x[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = exact(x[i]);
  }
}

TileLoop number_function(Scalar function) {
  switch (function) {
    case Scalar::abs: return unary<[](float x, P) { return __builtin_fabsf(x); }>;
    case Scalar::ceil: return unary<[](float x, P) { return __builtin_ceilf(x); }>;
    case Scalar::floor: return unary<[](float x, P) { return __builtin_floorf(x); }>;
    case Scalar::round: return unary<[](float x, P) { return __builtin_rintf(x); }>;
    case Scalar::sqrt: return unary<[](float x, P) { return __builtin_sqrtf(x); }>;
    case Scalar::neg: return unary<[](float x, P) { return -x; }>;
    case Scalar::reciprocal: return unary<[](float x, P) { return 1.0F / x; }>;
    case Scalar::sign:
      return unary<[](float x, P) { return 0.0F < x ? 1.0F : x < 0.0F ? -1.0F : x; }>;
    case Scalar::exp: return unary<[](float x, P) { return exp_of(x); }>;
    case Scalar::log: return unary<[](float x, P) { return log_of(x); }>;
    case Scalar::erf: return unary<[](float x, P) { return erf_of(x); }>;
    case Scalar::tanh: return unary<[](float x, P) { return tanh_of(x); }>;
    case Scalar::sin:
      return periodic<[](float x) { return sine_of(x, 0); },
                      [](float x) { return __builtin_sinf(x); }>;
    case Scalar::cos:
      return periodic<[](float x) { return sine_of(x, 1); },
                      [](float x) { return __builtin_cosf(x); }>;
    case Scalar::is_nan: return map1<float, uint8_t, [](float x, P) { return x != x; }>;
    case Scalar::is_inf:
      return map1<float, uint8_t, [](float x, P p) {
        return (x == kInfinity && p.b != 0.0F) || (x == -kInfinity && p.a != 0.0F);
      }>;
    default: return library_function(function);
  }
}

TileLoop activation(Scalar function) {
  switch (function) {
    case Scalar::relu: return unary<[](float x, P) { return x < 0.0F ? 0.0F : x; }>;
    case Scalar::leaky_relu: return unary<[](float x, P p) { return x < 0.0F ? p.a * x : x; }>;
    case Scalar::elu: return unary<[](float x, P p) { return x < 0.0F ? p.a * expm1_of(x) : x; }>;
    case Scalar::celu:
      return unary<[](float x, P p) { return 0.0F < x ? x : p.a * expm1_of(x / p.a); }>;
    case Scalar::selu:
      return unary<[](float x, P p) { return p.b * (0.0F < x ? x : p.a * expm1_of(x)); }>;
    case Scalar::hard_sigmoid:
      return unary<[](float x, P p) {
        const float z = fused(p.a, x, p.b);
        const float raised = z < 0.0F ? 0.0F : z;
        return 1.0F < raised ? 1.0F : raised;
      }>;
    case Scalar::hard_swish:
      return unary<[](float x, P) {
        const float z = fused(x, 1.0F / 6, 0.5F);
        const float raised = z < 0.0F ? 0.0F : z;
        return x * (1.0F < raised ? 1.0F : raised);
      }>;
    case Scalar::sigmoid: return unary<[](float x, P) { return sigmoid_of(x); }>;
    case Scalar::softplus: return unary<[](float x, P) { return softplus_of(x); }>;
    case Scalar::softsign: return unary<[](float x, P) { return x / (1.0F + __builtin_fabsf(x)); }>;
    case Scalar::thresholded_relu: return unary<[](float x, P p) { return x <= p.a ? 0.0F : x; }>;
    case Scalar::shrink:
      return unary<[](float x, P p) {
        const float inside = x != x ? x : 0.0F;
        return x < -p.a ? x + p.b : p.a < x ? x - p.b : inside;
      }>;
    case Scalar::mish: return unary<[](float x, P) { return mish_of(x); }>;
    case Scalar::swish: return unary<[](float x, P p) { return x / (1.0F + exp_of(-p.a * x)); }>;
    case Scalar::gelu: return unary<[](float x, P) { return gelu_of(x); }>;
    case Scalar::gelu_tanh: return unary<[](float x, P) { return gelu_tanh_of(x); }>;
    default: return nullptr;
  }
}

}  // namespace

TileLoop real_loop(Scalar function, unsigned repeats) {
  if (function == Scalar::pow)
    return map2<float, float, [](float a, float b, P) { return __builtin_powf(a, b); }>(repeats);
  if (function == Scalar::mod_trunc)
    return map2<float, float, [](float a, float b, P) { return __builtin_fmodf(a, b); }>(repeats);
  if (TileLoop loop = arithmetic_loop<float>(function, repeats)) return loop;
  if (repeats != 0) return nullptr;
  if (TileLoop loop = number_function(function)) return loop;
  return activation(function);
}

}  // namespace dais::DAIS_ISA
#endif
