#pragma once

#include "runtime/kernel.h"

namespace dais {

/// The user's kernel prepared for the device that the query names.
std::unique_ptr<Kernel> prepare_custom(const KernelQuery& query);

}  // namespace dais
