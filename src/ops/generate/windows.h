#pragma once

#include "ir/op.h"

namespace dais {

/// Window functions and the mel matrix.
void define_windows(OpRegistry& registry);

}  // namespace dais
