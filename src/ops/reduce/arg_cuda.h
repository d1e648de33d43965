#pragma once

#include "runtime/kernel.h"

namespace dais {

/// ArgMax and ArgMin of f32, f16, bf16 and i32.
void register_arg_cuda(Kernels& kernels);

}  // namespace dais
