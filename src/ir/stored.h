#pragma once

#include <memory>

#include "base/file.h"
#include "ir/tensor.h"

namespace dais {

/// The elements that a file holds, one after another in this machine's order; `bytes` has room for
/// the shape. A view of them, which keeps `owner`, where they can be used as they lie: aligned, and
/// booleans all 0 or 1. Otherwise, and without an owner, a copy in which any byte but 0 is true.
Tensor stored_tensor(Bytes bytes, DType dtype, const Shape& shape,
                     const std::shared_ptr<const void>& owner = nullptr);

}  // namespace dais
