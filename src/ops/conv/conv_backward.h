#pragma once

#include "ir/op.h"

namespace dais {

Values gradient_conv(Graph& g, const Node& n, std::span<Value* const> dy);

}  // namespace dais
