#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/float_formats.h"

namespace dais {

/// Element types. The values are the numbers of ONNX TensorProto.DataType.
/// In memory every element takes at least one byte: int4, uint4, int2, uint2 and float4 are packed
/// in files only, so that no kernel has to care for nibbles.
enum class DType : uint8_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  c64 = 14,
  c128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
};
inline constexpr int kDTypeCount = 27;

/// "f32", "i64", …: the names used in text, messages and the command line.
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
std::optional<DType> dtype_from_onnx(int64_t number);

/// Bytes of one element in memory (strings: sizeof(std::string)).
size_t dtype_size(DType dtype);
/// Bits of one element in a file; 0 for strings.
int dtype_bits(DType dtype);

bool is_float(DType dtype);    ///< f64, f32, f16, bf16, fp8 and fp4 kinds
bool is_integer(DType dtype);  ///< signed and unsigned, not boolean
bool is_signed_integer(DType dtype);
bool is_complex(DType dtype);

/// The C++ type of one element.
template <DType>
struct ElementOf;
template <typename T>
struct DTypeOf;

#define DAIS_ELEMENT(dtype, type)                \
  template <>                                    \
  struct ElementOf<DType::dtype> {               \
    using Type = type;                           \
  };                                             \
  template <>                                    \
  struct DTypeOf<type> {                         \
    static constexpr DType value = DType::dtype; \
  }
DAIS_ELEMENT(f32, float);
DAIS_ELEMENT(f64, double);
DAIS_ELEMENT(f16, Float16);
DAIS_ELEMENT(bf16, BFloat16);
DAIS_ELEMENT(f8e4m3fn, Float8E4M3FN);
DAIS_ELEMENT(f8e4m3fnuz, Float8E4M3FNUZ);
DAIS_ELEMENT(f8e5m2, Float8E5M2);
DAIS_ELEMENT(f8e5m2fnuz, Float8E5M2FNUZ);
DAIS_ELEMENT(f8e8m0, Float8E8M0);
DAIS_ELEMENT(f4e2m1, Float4E2M1);
DAIS_ELEMENT(u8, uint8_t);
DAIS_ELEMENT(i8, int8_t);
DAIS_ELEMENT(u16, uint16_t);
DAIS_ELEMENT(i16, int16_t);
DAIS_ELEMENT(u32, uint32_t);
DAIS_ELEMENT(i32, int32_t);
DAIS_ELEMENT(u64, uint64_t);
DAIS_ELEMENT(i64, int64_t);
DAIS_ELEMENT(u4, UInt4);
DAIS_ELEMENT(i4, Int4);
DAIS_ELEMENT(u2, UInt2);
DAIS_ELEMENT(i2, Int2);
DAIS_ELEMENT(boolean, bool);
DAIS_ELEMENT(string, std::string);
DAIS_ELEMENT(c64, std::complex<float>);
DAIS_ELEMENT(c128, std::complex<double>);
#undef DAIS_ELEMENT

template <typename T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

[[noreturn]] void unsupported_dtype(DType dtype);

/// Groups of types for dispatch.
template <DType... kinds>
struct DTypes {
  static constexpr bool contains(DType dtype) { return ((dtype == kinds) || ...); }
};
using FloatTypes = DTypes<DType::f32, DType::f64, DType::f16, DType::bf16>;
using IntegerTypes = DTypes<DType::i64, DType::i32, DType::u8, DType::i8, DType::u16, DType::i16,
                            DType::u32, DType::u64>;
using SmallFloatTypes = DTypes<DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz,
                               DType::f8e8m0, DType::f4e2m1>;
using SmallIntTypes = DTypes<DType::u4, DType::i4, DType::u2, DType::i2>;
using NumericTypes = DTypes<DType::f32, DType::i64, DType::f64, DType::f16, DType::bf16, DType::i32,
                            DType::u8, DType::i8, DType::u16, DType::i16, DType::u32, DType::u64>;
using AllTypes = DTypes<DType::f32, DType::i64, DType::f64, DType::f16, DType::bf16, DType::i32,
                        DType::u8, DType::i8, DType::u16, DType::i16, DType::u32, DType::u64,
                        DType::boolean, DType::string, DType::c64, DType::c128, DType::f8e4m3fn,
                        DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0,
                        DType::f4e2m1, DType::u4, DType::i4, DType::u2, DType::i2>;

/// Calls body.template operator()<T>() with the element type of `dtype`, which must be of the
/// group, else throws `unsupported`: visit_dtype<NumericTypes>(dtype, [&]<typename T>() { … }).
template <typename Group, typename Body>
void visit_dtype(DType dtype, Body&& body) {
  const bool found = [&]<DType... kinds>(DTypes<kinds...>) {
    return (
        (dtype == kinds && (body.template operator()<typename ElementOf<kinds>::Type>(), true)) ||
        ...);
  }
  (Group{});
  if (!found) unsupported_dtype(dtype);
}

/// Converts between any two numeric element types, through float for the small formats. C++ rules:
/// no rounding of its own and no saturation.
template <typename To, typename From>
To number_cast(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (!std::is_arithmetic_v<From>)
    return number_cast<To>(static_cast<float>(value));
  else if constexpr (std::is_arithmetic_v<To>)
    return static_cast<To>(value);
  else if constexpr (requires { To::max; })
    return To(static_cast<int>(value));
  else
    return To(static_cast<float>(value));
}

/// Moves elements without looking at them: calls body<U>() where U is an unsigned type of the same
/// size (std::string for strings). Six instances instead of twenty-six.
template <typename Body>
void visit_storage(DType dtype, Body&& body) {
  if (dtype == DType::string) return body.template operator()<std::string>();
  switch (dtype_size(dtype)) {
    case 1: return body.template operator()<uint8_t>();
    case 2: return body.template operator()<uint16_t>();
    case 4: return body.template operator()<uint32_t>();
    case 8: return body.template operator()<uint64_t>();
    case 16: return body.template operator()<std::complex<double>>();
    default: unsupported_dtype(dtype);
  }
}

}  // namespace dais
