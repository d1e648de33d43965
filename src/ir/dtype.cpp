#include "ir/dtype.h"

#include <array>

#include "base/error.h"

namespace dais {
namespace {

struct Facts {
  std::string_view name;
  size_t size;
  int bits;
};

constexpr std::array<Facts, kDTypeCount> kFacts{{
    {"undefined", 0, 0},  {"f32", 4, 32},   {"u8", 1, 8},
    {"i8", 1, 8},         {"u16", 2, 16},   {"i16", 2, 16},
    {"i32", 4, 32},       {"i64", 8, 64},   {"string", sizeof(std::string), 0},
    {"bool", 1, 8},       {"f16", 2, 16},   {"f64", 8, 64},
    {"u32", 4, 32},       {"u64", 8, 64},   {"c64", 8, 64},
    {"c128", 16, 128},    {"bf16", 2, 16},  {"f8e4m3fn", 1, 8},
    {"f8e4m3fnuz", 1, 8}, {"f8e5m2", 1, 8}, {"f8e5m2fnuz", 1, 8},
    {"u4", 1, 4},         {"i4", 1, 4},     {"f4e2m1", 1, 4},
    {"f8e8m0", 1, 8},     {"u2", 1, 2},     {"i2", 1, 2},
}};

}  // namespace

std::string_view dtype_name(DType dtype) { return kFacts[static_cast<size_t>(dtype)].name; }
size_t dtype_size(DType dtype) { return kFacts[static_cast<size_t>(dtype)].size; }
int dtype_bits(DType dtype) { return kFacts[static_cast<size_t>(dtype)].bits; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 1; i < kFacts.size(); ++i)
    if (kFacts[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

std::optional<DType> dtype_from_onnx(int64_t number) {
  if (number <= 0 || number >= kDTypeCount) return std::nullopt;
  return static_cast<DType>(number);
}

bool is_float(DType dtype) {
  return FloatTypes::contains(dtype) || SmallFloatTypes::contains(dtype);
}

bool is_signed_integer(DType dtype) {
  return DTypes<DType::i8, DType::i16, DType::i32, DType::i64, DType::i4, DType::i2>::contains(
      dtype);
}

bool is_integer(DType dtype) {
  return IntegerTypes::contains(dtype) || SmallIntTypes::contains(dtype);
}

bool is_complex(DType dtype) { return dtype == DType::c64 || dtype == DType::c128; }

void unsupported_dtype(DType dtype) {
  throw Error(Code::unsupported,
              "element type " + std::string(dtype_name(dtype)) + " is not supported here");
}

}  // namespace dais
