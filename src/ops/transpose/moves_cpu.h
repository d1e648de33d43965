#pragma once

#include "ops/transpose/moves.h"
#include "runtime/kernel.h"

namespace dais {

/// Accepts any type of fixed element size; inputs listed must be constants.
template <size_t... constants>
Verdict accepts_copy(const KernelQuery& query) {
  if (query.in_dtype(0) == DType::string) return no("strings are no plain elements");
  const bool known = ((!query.node.has(constants) || query.constant(constants)) && ... && true);
  return known ? yes() : no("sizes or places are known only when running");
}

}  // namespace dais
