#pragma once

#include "ops/transpose/moves_cpu.h"

namespace dais {

/// The kernel of a row that only moves elements: a launch of copies.cu for each move.
std::unique_ptr<Kernel> prepare_moves_cuda(const KernelQuery& query, ListMoves list);

/// `prepare` of such a row.
template <ListMoves list>
std::unique_ptr<Kernel> device_copies(const KernelQuery& query) {
  return prepare_moves_cuda(query, list);
}

}  // namespace dais
