#include "ir/stored.h"

#include <algorithm>
#include <cstring>

namespace dais {

Tensor stored_tensor(Bytes bytes, DType dtype, const Shape& shape,
                     const std::shared_ptr<const void>& owner) {
  const size_t alignment = std::min<size_t>(dtype_size(dtype), 8);
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0;
  // A C++ bool that is neither 0 nor 1 has no defined value.
  const bool sound = dtype != DType::boolean || std::all_of(bytes.begin(), bytes.end(),
                                                            [](uint8_t byte) { return byte <= 1; });
  if (owner && aligned && sound && shape.elements() > 0)
    return Tensor::view(dtype, shape, const_cast<uint8_t*>(bytes.data()), owner);
  Tensor copy(dtype, shape);
  if (copy.bytes() > 0) std::memcpy(copy.raw(), bytes.data(), copy.bytes());
  if (!sound)
    for (size_t i = 0; i < copy.bytes(); ++i) copy.storage<uint8_t>()[i] = bytes[i] != 0;
  return copy;
}

}  // namespace dais
