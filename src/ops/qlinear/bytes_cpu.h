#pragma once

#include "backends/cpu/byte_block.h"
#include "ir/type.h"

/// Small facts about 8-bit elements that the quantised rows share.
namespace dais {

inline bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }
inline int32_t byte_value(uint8_t byte, DType dtype) {
  return dtype == DType::i8 ? static_cast<int32_t>(static_cast<int8_t>(byte))
                            : static_cast<int32_t>(byte);
}
inline int32_t lowest_byte(DType dtype) { return dtype == DType::i8 ? -128 : 0; }
inline int32_t highest_byte(DType dtype) { return dtype == DType::i8 ? 127 : 255; }

inline cpu::ByteGemm::Out byte_out(DType dtype) {
  using Out = cpu::ByteGemm::Out;
  switch (dtype) {
    case DType::u8: return Out::u8;
    case DType::i8: return Out::i8;
    case DType::f32: return Out::f32;
    default: return Out::i32;
  }
}

/// Whether the type says that a tensor holds exactly one element.
inline bool is_one_value(const Type& type) {
  const auto shape = type.static_shape();
  return shape && shape->elements() == 1;
}

constexpr size_t aligned_bytes(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace dais
