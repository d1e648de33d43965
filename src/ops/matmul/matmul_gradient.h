#pragma once

#include "ir/op.h"

namespace dais {

Values gradient_matmul(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_gemm(Graph& g, const Node& n, std::span<Value* const> dy);

}  // namespace dais
