#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Rows of BatchNormalization in training and of its gradient.
void register_batch_norm_cuda(Kernels& kernels);

}  // namespace dais
