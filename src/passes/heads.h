#pragma once

#include <optional>

#include "passes/rewriter.h"

namespace dais {

/// A value [N, heads, L, size] that is [N, L, heads * size] split into heads and turned.
struct SplitHeads {
  Value* joined = nullptr;
  int64_t count = 0;
};
std::optional<SplitHeads> split_heads(const Value* value);

/// Splits another value of the same sizes as `like` was split.
Value* split_again(Graph& graph, Value* joined, const Value* like);

}  // namespace dais
