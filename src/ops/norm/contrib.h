#pragma once

#include "ir/op.h"

namespace dais {

/// Rules for the fused normalisation operators of com.microsoft.
void define_norm_contrib(OpRegistry& registry);

}  // namespace dais
