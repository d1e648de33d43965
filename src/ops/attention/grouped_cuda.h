#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Adds the rows of grouped attention with a cache of fixed capacity.
void register_grouped_cuda(Kernels& kernels);

}  // namespace dais
