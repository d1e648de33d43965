#pragma once

#include "ir/op.h"

namespace dais {

/// The parts of the family, by file.
void define_labels(OpRegistry& registry);
void define_features(OpRegistry& registry);
void define_linear(OpRegistry& registry);

}  // namespace dais
