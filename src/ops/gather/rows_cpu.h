#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Rows of GatherElements and GatherND.
void register_element_gathers(Kernels& kernels);

}  // namespace dais
