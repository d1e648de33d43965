#include <cstring>

#include "ir/inference.h"
#include "ir/reference.h"
#include "runtime/session_state.h"

namespace dais {

/// Control flow inside a session: each region has a session of its own.
class RegionSessions : public RegionRunner {
 public:
  RegionSessions(std::vector<std::unique_ptr<Session>>& sessions, std::vector<StepTime>* profile)
      : sessions_(sessions), profile_(profile) {}
  std::vector<Datum> run(size_t region, std::vector<Datum> inputs) override {
    const auto& results = sessions_.at(region)->run_profiled(inputs, profile_);
    std::vector<Datum> out = results;
    // What lies in memory of others (an input handed through) may change while it is held.
    for (Datum& datum : out)
      if (datum.kind == Datum::Kind::tensor && !datum.tensor.owner()) datum = datum.tensor.clone();
    return out;
  }

 private:
  std::vector<std::unique_ptr<Session>>& sessions_;
  std::vector<StepTime>* profile_;
};

void Session::State::run_step(size_t at) {
  if (plan->steps()[at].place == Place::host) return run_host(at);
  run_device(at);
}

void Session::State::run_host(size_t at) {
  const Step& step = plan->steps()[at];
  if (downloading_) wait();
  if (!step.bound_early) return run_late(at);
  if (BoundKernel* kernel = steps[at].kernel) return run_bound(step, *kernel);
  run_reference(at);
}

Arguments Session::State::arguments(const Step& step) {
  in_pointers_.clear();
  out_pointers_.clear();
  for (int slot : step.in)
    in_pointers_.push_back(slot >= 0 ? pointers[static_cast<size_t>(slot)] : nullptr);
  for (int slot : step.out) out_pointers_.push_back(pointers[static_cast<size_t>(slot)]);
  return {in_pointers_, out_pointers_, scratch_.raw()};
}

void Session::State::run_bound(const Step& step, BoundKernel& kernel) {
  const Fault fault = kernel.run(arguments(step));
  if (fault.problem) raise(step, fault);
}

void Session::State::raise(const Step& step, const Fault& fault) const {
  throw Error(Code::invalid_argument,
              std::string(step.node->op->name) + ": " + fault.problem + " (" +
                  std::to_string(fault.index) + ")",
              step.node->where());
}

/// Planned outputs are written in place; a reference that gives another shape than inference
/// promised has found a bug of ours.
void Session::State::run_reference(size_t at) {
  const Step& step = plan->steps()[at];
  in_data_.clear();
  out_data_.clear();
  for (int slot : step.in)
    in_data_.push_back(slot >= 0 ? data[static_cast<size_t>(slot)] : Datum());
  for (int slot : step.out) out_data_.push_back(data[static_cast<size_t>(slot)]);
  for (const Datum& datum : in_data_)
    DAIS_CHECK(!datum.tensor || datum.tensor.raw() || datum.tensor.elements() == 0);
  densify(step);
  if (step.node->op->reference) {
    Call call(*step.node, in_data_, out_data_);
    dais::run_reference(call);
  } else {
    run_decomposed(step);
  }
  undensify(step);
  for (size_t i = 0; i < step.out.size(); ++i) {
    const auto slot = static_cast<size_t>(step.out[i]);
    if (out_data_[i].tensor.raw() != pointers[slot] && out_data_[i].tensor.elements() > 0)
      throw Error(Code::internal,
                  "inference promised " + data[slot].tensor.describe() + " but the kernel gave " +
                      out_data_[i].tensor.describe(),
                  step.node->where());
  }
}

/// A composite whose kernel refused these sizes.
void Session::State::run_decomposed(const Step& step) {
  const auto results = evaluate_node(*step.node, in_data_);
  for (size_t i = 0; i < step.out.size(); ++i) {
    const Tensor& result = results[i].tensor;
    Tensor& out = out_data_[i].tensor;
    DAIS_CHECK(result.shape() == out.shape() && result.dtype() == out.dtype());
    if (result.bytes() > 0) std::memcpy(out.raw(), result.raw(), result.bytes());
  }
}

void Session::State::run_late(size_t at) {
  const Step& step = plan->steps()[at];
  if (step.kernel && run_late_kernel(at)) return;
  std::vector<Datum> inputs, outputs(step.out.size());
  for (int slot : step.in) inputs.push_back(slot >= 0 ? data[static_cast<size_t>(slot)] : Datum());
  if (step.node->op->reference) {
    RegionSessions regions(steps[at].regions, profile);
    Call call(*step.node, inputs, outputs, &regions);
    dais::run_reference(call);
  } else {
    outputs = evaluate_node(*step.node, inputs);
  }
  publish(step, outputs);
}

/// Finds output sizes by inference on the actual sizes, then binds and runs the step's kernel.
bool Session::State::run_late_kernel(size_t at) {
  const Step& step = plan->steps()[at];
  const Node& node = *step.node;
  std::vector<Type> types(step.in.size());
  std::vector<Inference::Input> facts(step.in.size());
  in_sizes_.clear();
  for (size_t i = 0; i < step.in.size(); ++i) {
    in_sizes_.emplace_back();
    if (step.in[i] < 0) continue;
    const Datum& datum = data[static_cast<size_t>(step.in[i])];
    if (!datum.has_value()) continue;
    if (datum.kind != Datum::Kind::tensor || datum.tensor.dtype() == DType::string) return false;
    types[i] = Type::of(datum.tensor);
    in_sizes_[i] = datum.tensor.shape();
    facts[i].type = &types[i];
    const bool small_ints = IntegerTypes::contains(datum.tensor.dtype()) &&
                            datum.tensor.elements() <= 64 && datum.tensor.rank() <= 1;
    if (small_ints) {
      const auto ints = datum.tensor.to_ints();
      facts[i].known = Dims(ints.begin(), ints.end());
    }
    facts[i].constant = &datum.tensor;
  }
  bool data_dependent = false;
  Inference inference(node, std::move(facts), node.outs.size(), [&] {
    data_dependent = true;
    return Dim::symbol("?");
  });
  inference.run();
  std::vector<Datum> outputs;
  out_sizes_.clear();
  for (const Type& type : inference.types()) {
    const auto shape = type.static_shape();
    if (!shape || type.dtype == DType::string) return false;
    out_sizes_.push_back(*shape);
    outputs.emplace_back(Tensor(type.dtype, *shape));
  }
  BoundKernel* kernel = bound_kernel(at, {in_sizes_, out_sizes_});
  if (!kernel) return false;
  in_pointers_.clear();
  out_pointers_.clear();
  for (int slot : step.in)
    in_pointers_.push_back(slot >= 0 ? data[static_cast<size_t>(slot)].tensor.raw() : nullptr);
  for (Datum& datum : outputs) out_pointers_.push_back(datum.tensor.raw());
  const Fault fault = kernel->run({in_pointers_, out_pointers_, scratch_.raw()});
  if (fault.problem) raise(step, fault);
  publish(step, outputs);
  return true;
}

void Session::State::publish(const Step& step, std::vector<Datum>& outputs) {
  for (size_t i = 0; i < step.out.size(); ++i) {
    const auto slot = static_cast<size_t>(step.out[i]);
    const bool tensor = outputs[i].kind == Datum::Kind::tensor;
    if (plan->slots()[slot].sized && tensor && !(outputs[i].tensor.shape() == shapes[slot]))
      throw Error(Code::internal,
                  "inference promised shape " + shapes[slot].text() + " but the kernel gave " +
                      outputs[i].tensor.describe(),
                  step.node->where());
    pointers[slot] = tensor ? outputs[i].tensor.raw() : nullptr;
    data[slot] = std::move(outputs[i]);
    for (const auto& [root, view] : late_views_)
      if (root == step.out[i]) point(static_cast<size_t>(view));
  }
}

void Session::State::collect_outputs() {
  results.clear();
  for (int slot : plan->output_slots()) results.push_back(data[static_cast<size_t>(slot)]);
}

size_t Session::arena_bytes() const {
  return state_->active ? state_->active->arena_bytes() : state_->arena_bytes();
}

}  // namespace dais
