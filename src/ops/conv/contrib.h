#pragma once

#include "ir/op.h"

namespace dais {

/// Rules for the fused and channels-last convolutions of com.microsoft.
void define_conv_contrib(OpRegistry& registry);

}  // namespace dais
