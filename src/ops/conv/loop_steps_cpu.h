#pragma once

#include <optional>
#include <vector>

#include "ops/conv/conv_body.h"
#include "ops/conv/loop_step.h"
#include "runtime/kernel.h"

namespace dais {

/// The epilogue of a convolution for own loops. Holds what the steps point to; steps whose operand
/// is an input are pointed at it in each run.
class LoopEpilogue {
 public:
  /// Nothing when own loops lack a step, or an operand is not of the result's sizes.
  static std::optional<LoopEpilogue> make(const ConvBody& body);

  /// For one run: `list` must have room for as many entries as there are steps.
  LoopSteps bind(const Arguments& arguments, std::vector<LoopStep>& list) const;
  size_t size() const { return steps_.size(); }

 private:
  std::vector<EpilogueStep> steps_;
};

}  // namespace dais
