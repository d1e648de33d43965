#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Adds the rows of bf16 products on the tile unit.
void register_half_products(Kernels& kernels);

}  // namespace dais
