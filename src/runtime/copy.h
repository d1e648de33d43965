#pragma once

#include "ir/op.h"

namespace dais {

/// Brings a tensor from the memory of the CPU to that of the device, or back. Plans put these nodes
/// between steps that run in different places; models have none.
struct Copy {
  bool to_device = true;
  static constexpr auto fields = std::tuple{field("to_device", &Copy::to_device)};
  static const Op op;
};

}  // namespace dais
