#include <array>
#include <cstdlib>

#include "onnx/tensor_proto.h"

/// The first byte picks what the rest is taken for: a tensor, a sequence, an optional or a map.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using dais::Type;
  if (size == 0) return 0;
  const Type tensor = Type::tensor(dais::DType::f32);
  const std::array<Type, 4> types{tensor, Type::sequence(tensor),
                                  Type::optional(Type::sequence(tensor)),
                                  Type::map(dais::DType::i64, tensor)};
  try {
    dais::onnx::TensorReader().read({data + 1, size - 1}, types[data[0] % types.size()]);
  } catch (const dais::Error& error) {
    if (error.code() == dais::Code::internal) std::abort();
  }
  return 0;
}
