#pragma once

#include "ir/tensor.h"

namespace dais {

/// A tensor that may outlive the step at hand: itself when it owns its memory, else a copy (memory
/// planned for a step is reused after the last reader).
inline Tensor kept(const Tensor& tensor) { return tensor.owner() ? tensor : tensor.clone(); }
inline Datum kept(const Datum& value) {
  return value.kind == Datum::Kind::tensor ? Datum(kept(value.tensor)) : value;
}

}  // namespace dais
