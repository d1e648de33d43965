#include "ops/conv/loop_steps_cpu.h"

namespace dais {
namespace {

std::optional<LoopStep> loop_step(const EpilogueStep& step) {
  using Kind = LoopStep::Kind;
  LoopStep out{.alpha = step.alpha, .beta = step.beta};
  const bool constant = step.operand < 0;
  switch (step.kind) {
    case StepKind::relu: out.kind = step.alpha == 0 ? Kind::relu : Kind::leaky; break;
    case StepKind::clip: out.kind = Kind::clip; break;
    case StepKind::linear: out.kind = Kind::linear; break;
    case StepKind::hard_sigmoid: out.kind = Kind::hard_sigmoid; break;
    case StepKind::hard_swish: out.kind = Kind::hard_swish; break;
    case StepKind::add: out.kind = constant ? Kind::add_channel : Kind::add_tensor; break;
    case StepKind::mul: out.kind = constant ? Kind::mul_channel : Kind::mul_tensor; break;
    case StepKind::prelu: out.kind = Kind::prelu; break;
    default: return std::nullopt;
  }
  if (constant && !step.channels.empty()) out.values = step.channels.data();
  return out;
}

}  // namespace

std::optional<LoopEpilogue> LoopEpilogue::make(const ConvBody& body) {
  LoopEpilogue out;
  for (const EpilogueStep& step : body.steps) {
    if (!loop_step(step)) return std::nullopt;
    if (step.operand >= 0 && !step.whole) return std::nullopt;
    out.steps_.push_back(step);
  }
  return out;
}

LoopSteps LoopEpilogue::bind(const Arguments& arguments, std::vector<LoopStep>& list) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    list[i] = *loop_step(steps_[i]);
    const int operand = steps_[i].operand;
    if (operand >= 0)
      list[i].values = static_cast<const float*>(arguments.in[static_cast<size_t>(operand)]);
  }
  return {list.data(), static_cast<int64_t>(list.size())};
}

}  // namespace dais
