#pragma once

#include "ir/op.h"

namespace dais {

Values gradient_reduce(Graph& g, const Node& n, std::span<Value* const> given);
Values gradient_sum_to(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_cum_sum(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_cum_prod(Graph& g, const Node& n, std::span<Value* const> dy);

}  // namespace dais
