#pragma once

#include "ir/op.h"

namespace dais {

/// Rules for the fused products of com.microsoft.
void define_matmul_contrib(OpRegistry& registry);

}  // namespace dais
