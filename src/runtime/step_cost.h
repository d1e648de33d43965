#pragma once

#include "runtime/session.h"

namespace dais {

/// What one execution of a step has to do at least, whichever kernel runs it.
struct StepCost {
  double flops = 0;          ///< multiplications and additions of products, by Op::cost
  double bytes = 0;          ///< read and written, where everything is read and written once
  DType dtype = DType::f32;  ///< narrowest factors of the largest product
};

/// From the sizes that the step met; composite ops count as what they stand for. Steps of control
/// flow have no cost of their own.
StepCost cost_of(const StepTime& time);

/// The same for a node with inputs of these types (an undefined one where an input is left out).
StepCost cost_of(const Node& node, std::span<const Type> in);

}  // namespace dais
