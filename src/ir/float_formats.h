#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace dais {

/// How a small binary float format treats its top exponent and zero.
enum class FloatKind {
  ieee,           ///< infinities and NaNs, as IEEE 754
  finite,         ///< no infinity; NaN is the all-ones pattern ("fn")
  unsigned_zero,  ///< no infinity, no negative zero; NaN is the negative zero pattern ("fnuz")
  no_nan,         ///< neither infinity nor NaN (float4)
};

namespace detail {

/// Decodes `bits` of a format with `mantissa` and `exponent` bits and the given bias.
float decode_small_float(uint32_t bits, int exponent, int mantissa, int bias, FloatKind kind);

/// Rounds to nearest, ties to even. Beyond the largest finite value: saturates when asked to, else
/// gives infinity (ieee) or NaN (finite kinds). NaN stays NaN; float4, having none, gives -0.
uint32_t encode_small_float(float value, int exponent, int mantissa, int bias, FloatKind kind,
                            bool saturate);

}  // namespace detail

/// A small float stored in one byte. Conversions go through float.
template <int exponent, int mantissa, int bias, FloatKind kind, typename Tag>
struct SmallFloat {
  uint8_t bits = 0;

  SmallFloat() = default;
  explicit SmallFloat(float value, bool saturate = true)
      : bits(static_cast<uint8_t>(
            detail::encode_small_float(value, exponent, mantissa, bias, kind, saturate))) {}
  explicit operator float() const {
    return detail::decode_small_float(bits, exponent, mantissa, bias, kind);
  }
};
using Float8E4M3FN = SmallFloat<4, 3, 7, FloatKind::finite, struct TagE4M3FN>;
using Float8E4M3FNUZ = SmallFloat<4, 3, 8, FloatKind::unsigned_zero, struct TagE4M3FNUZ>;
using Float8E5M2 = SmallFloat<5, 2, 15, FloatKind::ieee, struct TagE5M2>;
using Float8E5M2FNUZ = SmallFloat<5, 2, 16, FloatKind::unsigned_zero, struct TagE5M2FNUZ>;
using Float4E2M1 = SmallFloat<2, 1, 1, FloatKind::no_nan, struct TagE2M1>;

/// OCP microscaling scale: a power of two, 2^(bits-127); 255 is NaN. Never negative or zero.
struct Float8E8M0 {
  enum class Rounding { up, down, nearest };
  uint8_t bits = 0;

  Float8E8M0() = default;
  explicit Float8E8M0(float value, bool saturate = true, Rounding rounding = Rounding::up);
  explicit operator float() const;
};

struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    bits = std::isnan(value) ? static_cast<uint16_t>((word >> 16) | 0x40)
                             : static_cast<uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  explicit Float16(float value) : bits(encode(value)) {}
  explicit operator float() const { return decode(bits); }

 private:
  static uint16_t encode(float value);
  static float decode(uint16_t bits);
};

/// A 2- or 4-bit integer, one per byte in memory. Conversion from a wider integer keeps the low
/// bits, as a C cast does.
template <int width, bool is_signed>
struct SmallInt {
  using Storage = std::conditional_t<is_signed, int8_t, uint8_t>;
  Storage value = 0;

  static constexpr int min = is_signed ? -(1 << (width - 1)) : 0;
  static constexpr int max = is_signed ? (1 << (width - 1)) - 1 : (1 << width) - 1;

  SmallInt() = default;
  explicit SmallInt(int number) {
    const int low = number & ((1 << width) - 1);
    value = static_cast<Storage>(is_signed && low > max ? low - (1 << width) : low);
  }
  explicit operator int() const { return value; }
  explicit operator float() const { return value; }
};
using Int4 = SmallInt<4, true>;
using UInt4 = SmallInt<4, false>;
using Int2 = SmallInt<2, true>;
using UInt2 = SmallInt<2, false>;

}  // namespace dais
