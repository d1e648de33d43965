#include "ir/float_formats.h"

#include <algorithm>

namespace dais {
namespace detail {

float decode_small_float(uint32_t bits, int exponent, int mantissa, int bias, FloatKind kind) {
  const uint32_t sign = (bits >> (exponent + mantissa)) & 1;
  const uint32_t exponent_bits = (bits >> mantissa) & ((1u << exponent) - 1);
  const uint32_t fraction = bits & ((1u << mantissa) - 1);
  const uint32_t top = (1u << exponent) - 1;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (kind == FloatKind::ieee && exponent_bits == top)
    return fraction != 0 ? nan : sign ? -infinity : infinity;
  if (kind == FloatKind::finite && exponent_bits == top && fraction == (1u << mantissa) - 1)
    return nan;
  if (kind == FloatKind::unsigned_zero && sign && exponent_bits == 0 && fraction == 0) return nan;
  const float magnitude = exponent_bits == 0
                              ? std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa)
                              : std::ldexp(static_cast<float>(fraction + (1u << mantissa)),
                                           static_cast<int>(exponent_bits) - bias - mantissa);
  return sign ? -magnitude : magnitude;
}

namespace {

struct Limits {
  uint32_t largest;   ///< bit pattern of the largest finite magnitude
  uint32_t overflow;  ///< pattern (without sign) given beyond it when not saturating
  bool overflow_keeps_sign;
  uint32_t nan;
};

Limits limits_of(int exponent, int mantissa, FloatKind kind) {
  const uint32_t all = (1u << (exponent + mantissa)) - 1;
  const uint32_t infinity = ((1u << exponent) - 1) << mantissa;
  const uint32_t sign = 1u << (exponent + mantissa);
  switch (kind) {
    case FloatKind::ieee: return {infinity - 1, infinity, true, infinity | (1u << (mantissa - 1))};
    case FloatKind::finite: return {all - 1, all, true, all};
    case FloatKind::unsigned_zero: return {all, sign, false, sign};
    case FloatKind::no_nan: return {all, all, true, sign};
  }
  return {};
}

}  // namespace

uint32_t encode_small_float(float value, int exponent, int mantissa, int bias, FloatKind kind,
                            bool saturate) {
  const Limits limits = limits_of(exponent, mantissa, kind);
  const uint32_t sign = std::signbit(value) ? 1u << (exponent + mantissa) : 0;
  if (std::isnan(value)) return limits.nan | (kind == FloatKind::unsigned_zero ? 0 : sign);
  const uint32_t overflow = saturate ? (limits.largest | sign)
                                     : (limits.overflow | (limits.overflow_keeps_sign ? sign : 0));
  const float magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return overflow;
  if (magnitude == 0) return kind == FloatKind::unsigned_zero ? 0 : sign;
  int power;
  std::frexp(magnitude, &power);
  // Exponent of the unit in the last place: fixed below the smallest normal number.
  const int unit = std::max(power - 1, 1 - bias) - mantissa;
  const auto rounded =
      static_cast<uint64_t>(std::nearbyint(std::ldexp(static_cast<double>(magnitude), -unit)));
  // Adding the mantissa to the shifted exponent carries into the exponent where rounding did.
  const auto exponent_bits = static_cast<uint64_t>(unit + mantissa + bias - 1);
  const uint64_t code = (exponent_bits << mantissa) + rounded;
  if (code > limits.largest) return overflow;
  if (code == 0) return kind == FloatKind::unsigned_zero ? 0 : sign;
  return static_cast<uint32_t>(code) | sign;
}

}  // namespace detail

Float8E8M0::Float8E8M0(float value, bool saturate, Rounding rounding) {
  if (std::isnan(value)) {
    bits = 0xff;
    return;
  }
  const uint32_t word = std::bit_cast<uint32_t>(std::fabs(value));
  const uint32_t exponent = word >> 23;
  const uint32_t fraction = word & 0x7fffff;
  bool up = false;
  if (rounding == Rounding::up) up = fraction > (exponent == 0 ? 0x400000u : 0u);
  if (rounding == Rounding::nearest) up = fraction >= (exponent == 0 ? 0x600000u : 0x400000u);
  if (exponent == 0xff || (exponent == 0xfe && up)) {
    bits = saturate ? 0xfe : 0xff;
    return;
  }
  bits = static_cast<uint8_t>(exponent + (up ? 1 : 0));
}

Float8E8M0::operator float() const {
  if (bits == 0xff) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0f, static_cast<int>(bits) - 127);
}

uint16_t Float16::encode(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (word >> 16) & 0x8000;
  const uint32_t magnitude = word & 0x7fffffff;
  if (magnitude >= 0x7f800000)
    return static_cast<uint16_t>(sign | 0x7c00 | (magnitude > 0x7f800000 ? 0x200 : 0));
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    // Subnormal: adding 0.5 aligns the unit in the last place with the float's own.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000));
  }
  const uint32_t rounded = magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

float Float16::decode(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00)
    return std::bit_cast<float>(sign | 0x7f800000 | ((magnitude & 0x3ff) << 13));
  if (magnitude < 0x400) {
    const float value = std::ldexp(static_cast<float>(magnitude), -24);
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
}

}  // namespace dais
