// The scalar functions themselves, written once and instantiated for double, int64_t and uint64_t.
// Everything is computed in these wide types, so results of f16, bf16 and f32 carry one rounding.
#include "ops/elementwise/scalar_functions.h"

#include <cmath>
#include <type_traits>

namespace dais {
namespace {

template <typename F, typename C>
void loop1(const C* const* in, C* out, int64_t n, const double* p) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<C>(F{}(in[0][i], p));
}
template <typename F, typename C>
void loop2(const C* const* in, C* out, int64_t n, const double* p) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<C>(F{}(in[0][i], in[1][i], p));
}
template <typename F, typename C>
void loop3(const C* const* in, C* out, int64_t n, const double* p) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<C>(F{}(in[0][i], in[1][i], in[2][i], p));
}

template <typename F>
ScalarLoops real1(F) {
  return {loop1<F, double>, nullptr, nullptr};
}
template <typename F>
ScalarLoops any1(F) {
  return {loop1<F, double>, loop1<F, int64_t>, loop1<F, uint64_t>};
}
template <typename F>
ScalarLoops whole1(F) {
  return {nullptr, loop1<F, int64_t>, loop1<F, uint64_t>};
}
template <typename F>
ScalarLoops any2(F) {
  return {loop2<F, double>, loop2<F, int64_t>, loop2<F, uint64_t>};
}
template <typename F>
ScalarLoops whole2(F) {
  return {nullptr, loop2<F, int64_t>, loop2<F, uint64_t>};
}
template <typename F>
ScalarLoops any3(F) {
  return {loop3<F, double>, loop3<F, int64_t>, loop3<F, uint64_t>};
}

using P = const double*;

template <typename T>
constexpr bool is_real = std::is_same_v<T, double>;

/// Integer arithmetic wraps; going through unsigned keeps it defined.
template <typename T, typename F>
T wrapped(T a, T b, F f) {
  if constexpr (is_real<T>)
    return f(a, b);
  else
    return static_cast<T>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

template <typename T>
T negated(T x) {
  if constexpr (is_real<T>)
    return -x;
  else
    return static_cast<T>(0 - static_cast<uint64_t>(x));
}

template <typename T>
T quotient(T a, T b) {
  if constexpr (is_real<T>) {
    return a / b;
  } else {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return negated(a);
    return a / b;
  }
}

template <typename T>
T remainder_trunc(T a, T b) {
  if constexpr (is_real<T>) {
    return std::fmod(a, b);
  } else {
    if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
    return a % b;
  }
}

template <typename T>
T remainder_floor(T a, T b) {
  const T rest = remainder_trunc(a, b);
  if constexpr (std::is_same_v<T, uint64_t>) return rest;
  if (rest == 0)
    return is_real<T> ? static_cast<T>(std::copysign(0.0, static_cast<double>(b))) : rest;
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

template <typename T>
T power(T base, T exponent) {
  if constexpr (is_real<T>) {
    return std::pow(base, exponent);
  } else {
    if (exponent < T{0})
      return base == 1 ? 1 : base == static_cast<T>(-1) ? (exponent % 2 ? base : 1) : 0;
    uint64_t result = 1, factor = static_cast<uint64_t>(base);
    for (auto left = static_cast<uint64_t>(exponent); left != 0; left >>= 1) {
      if (left & 1) result *= factor;
      factor *= factor;
    }
    return static_cast<T>(result);
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double celu(double x, double alpha) { return x > 0 ? x : alpha * std::expm1(x / alpha); }
double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

double gelu_by_tanh(double x) {
  constexpr double root = 0.79788456080286535588;  // sqrt(2 / pi)
  return 0.5 * x * (1 + std::tanh(root * (x + 0.044715 * x * x * x)));
}

bool is_infinite(double x, P p) { return std::isinf(x) && (x < 0 ? p[0] : p[1]) != 0; }

template <typename T>
T sign_of(T x) {
  if (x != x) return x;
  return static_cast<T>(static_cast<int>(x > T{0}) - static_cast<int>(x < T{0}));
}

ScalarLoops one_operand(Scalar function) {
  switch (function) {
    case Scalar::abs:
      return any1([](auto x, P) {
        if constexpr (is_real<decltype(x)>)
          return std::fabs(x);
        else
          return x < decltype(x){0} ? negated(x) : x;
      });
    case Scalar::acos: return real1([](double x, P) { return std::acos(x); });
    case Scalar::acosh: return real1([](double x, P) { return std::acosh(x); });
    case Scalar::asin: return real1([](double x, P) { return std::asin(x); });
    case Scalar::asinh: return real1([](double x, P) { return std::asinh(x); });
    case Scalar::atan: return real1([](double x, P) { return std::atan(x); });
    case Scalar::atanh: return real1([](double x, P) { return std::atanh(x); });
    case Scalar::ceil: return real1([](double x, P) { return std::ceil(x); });
    case Scalar::cos: return real1([](double x, P) { return std::cos(x); });
    case Scalar::cosh: return real1([](double x, P) { return std::cosh(x); });
    case Scalar::erf: return any1([](auto x, P) { return std::erf(static_cast<double>(x)); });
    case Scalar::exp: return real1([](double x, P) { return std::exp(x); });
    case Scalar::floor: return real1([](double x, P) { return std::floor(x); });
    case Scalar::log: return real1([](double x, P) { return std::log(x); });
    case Scalar::neg: return any1([](auto x, P) { return negated(x); });
    case Scalar::reciprocal: return real1([](double x, P) { return 1 / x; });
    case Scalar::round: return real1([](double x, P) { return std::nearbyint(x); });
    case Scalar::sigmoid: return real1([](double x, P) { return sigmoid(x); });
    case Scalar::sign: return any1([](auto x, P) { return sign_of(x); });
    case Scalar::sin: return real1([](double x, P) { return std::sin(x); });
    case Scalar::sinh: return real1([](double x, P) { return std::sinh(x); });
    case Scalar::sqrt: return real1([](double x, P) { return std::sqrt(x); });
    case Scalar::tan: return real1([](double x, P) { return std::tan(x); });
    case Scalar::tanh: return real1([](double x, P) { return std::tanh(x); });
    case Scalar::logical_not: return whole1([](auto x, P) { return x == 0; });
    case Scalar::bitwise_not: return whole1([](auto x, P) { return ~x; });
    case Scalar::is_nan: return real1([](double x, P) { return std::isnan(x); });
    case Scalar::is_inf: return real1([](double x, P p) { return is_infinite(x, p); });
    default: return {};
  }
}

ScalarLoops activation(Scalar function) {
  switch (function) {
    case Scalar::relu:
      return any1([](auto x, P) { return x < decltype(x){0} ? decltype(x){0} : x; });
    case Scalar::leaky_relu: return real1([](double x, P p) { return x < 0 ? p[0] * x : x; });
    case Scalar::elu: return real1([](double x, P p) { return x < 0 ? p[0] * std::expm1(x) : x; });
    case Scalar::celu: return real1([](double x, P p) { return celu(x, p[0]); });
    case Scalar::selu:
      return real1([](double x, P p) { return p[1] * (x > 0 ? x : p[0] * std::expm1(x)); });
    case Scalar::hard_sigmoid:
      return real1([](double x, P p) { return clamp(p[0] * x + p[1], 0, 1); });
    case Scalar::hard_swish: return real1([](double x, P) { return x * clamp(x / 6 + 0.5, 0, 1); });
    case Scalar::softplus: return real1([](double x, P) { return softplus(x); });
    case Scalar::softsign: return real1([](double x, P) { return x / (1 + std::fabs(x)); });
    case Scalar::thresholded_relu: return real1([](double x, P p) { return x <= p[0] ? 0 : x; });
    case Scalar::shrink:
      return any1([](auto x, P p) {
        const auto wide = static_cast<double>(x);
        return wide < -p[0] ? wide + p[1] : wide > p[0] ? wide - p[1] : x != x ? wide : 0.0;
      });
    case Scalar::mish: return real1([](double x, P) { return x * std::tanh(softplus(x)); });
    case Scalar::swish: return real1([](double x, P p) { return x * sigmoid(p[0] * x); });
    case Scalar::gelu:
      return real1(
          [](double x, P) { return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440)); });
    case Scalar::gelu_tanh: return real1([](double x, P) { return gelu_by_tanh(x); });
    default: return {};
  }
}

ScalarLoops two_operands(Scalar function) {
  switch (function) {
    case Scalar::add:
    case Scalar::sum:
    case Scalar::mean:
      return any2(
          [](auto a, auto b, P) { return wrapped(a, b, [](auto x, auto y) { return x + y; }); });
    case Scalar::sub:
      return any2(
          [](auto a, auto b, P) { return wrapped(a, b, [](auto x, auto y) { return x - y; }); });
    case Scalar::mul:
      return any2(
          [](auto a, auto b, P) { return wrapped(a, b, [](auto x, auto y) { return x * y; }); });
    case Scalar::div: return any2([](auto a, auto b, P) { return quotient(a, b); });
    case Scalar::pow: return any2([](auto a, auto b, P) { return power(a, b); });
    case Scalar::mod_floor: return any2([](auto a, auto b, P) { return remainder_floor(a, b); });
    case Scalar::mod_trunc: return any2([](auto a, auto b, P) { return remainder_trunc(a, b); });
    case Scalar::prelu:
      return any2([](auto x, auto slope, P) {
        return x < decltype(x){0} ? wrapped(x, slope, [](auto u, auto v) { return u * v; }) : x;
      });
    case Scalar::min: return any2([](auto a, auto b, P) { return a != a || a < b ? a : b; });
    case Scalar::max: return any2([](auto a, auto b, P) { return a != a || a > b ? a : b; });
    case Scalar::logical_and: return whole2([](auto a, auto b, P) { return a != 0 && b != 0; });
    case Scalar::logical_or: return whole2([](auto a, auto b, P) { return a != 0 || b != 0; });
    case Scalar::logical_xor: return whole2([](auto a, auto b, P) { return (a != 0) != (b != 0); });
    case Scalar::equal: return any2([](auto a, auto b, P) { return a == b; });
    case Scalar::less: return any2([](auto a, auto b, P) { return a < b; });
    case Scalar::less_or_equal: return any2([](auto a, auto b, P) { return a <= b; });
    case Scalar::greater: return any2([](auto a, auto b, P) { return a > b; });
    case Scalar::greater_or_equal: return any2([](auto a, auto b, P) { return a >= b; });
    case Scalar::shift_left:
      return whole2([](auto a, auto b, P) {
        const auto shift = static_cast<uint64_t>(b);
        return shift > 63 ? 0 : static_cast<uint64_t>(a) << shift;
      });
    case Scalar::shift_right:
      return whole2([](auto a, auto b, P) { return static_cast<uint64_t>(b) > 63 ? 0 : a >> b; });
    case Scalar::bitwise_and: return whole2([](auto a, auto b, P) { return a & b; });
    case Scalar::bitwise_or: return whole2([](auto a, auto b, P) { return a | b; });
    case Scalar::bitwise_xor: return whole2([](auto a, auto b, P) { return a ^ b; });
    default: return {};
  }
}

}  // namespace

ScalarLoops scalar_loops(Scalar function) {
  if (function <= Scalar::is_inf) return one_operand(function);
  if (function <= Scalar::gelu_tanh) return activation(function);
  if (function <= Scalar::mean) return two_operands(function);
  // The upper bound wins when it lies below the lower one.
  return any3([](auto x, auto low, auto high, P) {
    const auto raised = x < low ? low : x;
    return raised > high ? high : raised;
  });
}

}  // namespace dais
