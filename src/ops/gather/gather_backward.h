#pragma once

#include "ir/op.h"

namespace dais {

Values gradient_gather(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_gather_elements(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_gather_nd(Graph& g, const Node& n, std::span<Value* const> dy);

}  // namespace dais
