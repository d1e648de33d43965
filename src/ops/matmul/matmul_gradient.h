#pragma once

#include "ir/op.h"

namespace dais {

Values gradient_matmul(Graph& g, const Node& n, std::span<Value* const> given);
Values gradient_gemm(Graph& g, const Node& n, std::span<Value* const> given);

}  // namespace dais
