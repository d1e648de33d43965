#include "train/step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <unordered_map>

#include "train/step_graph.h"

namespace dais::train {
namespace {

/// Elements of a tensor as one line: range, mean, and how many are not finite.
std::string statistics_of(const Tensor& tensor) {
  double low = INFINITY, high = -INFINITY, sum = 0;
  int64_t nan = 0, infinite = 0, counted = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double x = tensor.to_double(i);
    nan += std::isnan(x);
    infinite += std::isinf(x);
    if (!std::isfinite(x)) continue;
    low = std::min(low, x);
    high = std::max(high, x);
    sum += x;
    ++counted;
  }
  char out[160];
  std::snprintf(out, sizeof out, "%s min %.4g max %.4g mean %.4g, %lld NaN, %lld infinite",
                tensor.describe().c_str(), counted ? low : NAN, counted ? high : NAN,
                counted ? sum / static_cast<double>(counted) : NAN, static_cast<long long>(nan),
                static_cast<long long>(infinite));
  return out;
}

bool is_finite(const Tensor& tensor) {
  bool out = true;
  visit_dtype<FloatTypes>(tensor.dtype(), [&]<typename T>() {
    for (const T value : tensor.data<T>())
      out = out && std::isfinite(static_cast<double>(static_cast<float>(value)));
  });
  return out;
}

}  // namespace

class TrainingStep::Body {
 public:
  /// A compiled part with the memory of its states bound.
  struct Part {
    std::shared_ptr<const Plan> plan;
    std::unique_ptr<Session> session;
    std::vector<int> state_of_input;  ///< index into memory_ for each state input
    size_t first_state = 0, results = 0;
    std::vector<bool> changes;
  };

  Body(const onnx::Model& model, const StepOptions& options, const data::Batch& sample)
      : model_(model), options_(options) {
    const bool several = options.accumulate > 1;
    main_ = compile_part(sample, several ? StepPart::finish : StepPart::whole);
    if (several) gather_ = compile_part(sample, StepPart::gather);
    if (options.precision == Precision::fp16) {
      place_.emplace("loss_scale", memory_.size());
      memory_.emplace_back("loss_scale", LossScale::initial());
      scale_.emplace(memory_.back().second);
    }
  }

  Part compile_part(const data::Batch& sample, StepPart part) {
    StepGraph built = build_step(model_, options_, sample, part);
    Part out;
    out.results = built.results;
    out.first_state = built.data_inputs + built.target_inputs + StepGraph::kControls;
    if (part != StepPart::gather) parameters_ = built.parameters;
    for (const StateEntry& entry : built.states) {
      out.state_of_input.push_back(static_cast<int>(memory_of(entry)));
      out.changes.push_back(entry.after != nullptr);
    }
    CompileOptions options;
    options.optimize = options_.optimize;
    options.threads = options_.threads;
    options.verify_passes = false;
    options.states = built.pairs;
    options.backend = options_.backend;
    out.plan = compile(std::move(built.graph), options).plan;
    out.session = std::make_unique<Session>(out.plan);
    bind(out);
    return out;
  }

  /// Gives the states their memory; a device takes a copy of what it holds.
  void bind(Part& part) {
    for (size_t i = 0; i < part.state_of_input.size(); ++i)
      if (part.changes[i])
        part.session->bind_state(part.first_state + i,
                                 memory_[static_cast<size_t>(part.state_of_input[i])].second);
  }

  /// Brings what the part that ran last holds on a device back to memory_.
  void fetch() {
    if (!options_.backend || !last_) return;
    for (size_t i = 0; i < last_->state_of_input.size(); ++i)
      if (last_->changes[i]) last_->session->state(last_->first_state + i);
  }

  /// Parts have their own copies on a device: the other's results come over memory_.
  void hand_over_to(Part& part) {
    if (options_.backend && last_ && last_ != &part) {
      fetch();
      bind(part);
    }
    last_ = &part;
  }

  /// The place of a state's memory, made and filled when first asked for.
  size_t memory_of(const StateEntry& entry) {
    const auto [found, added] = place_.emplace(entry.name, memory_.size());
    if (!added) return found->second;
    const Tensor* from = &entry.initial;
    if (!entry.starts_as.empty()) from = &memory_[place_.at(entry.starts_as)].second;
    memory_.emplace_back(entry.name, from->clone());
    return found->second;
  }

  std::vector<Datum> inputs_of(const Part& part, const data::Batch& batch, double rate,
                               int64_t update, bool apply) const {
    std::vector<Datum> inputs{batch.input};
    for (const auto& [name, tensor] : target_tensors(options_.loss, batch))
      inputs.emplace_back(tensor);
    inputs.emplace_back(Tensor::scalar(update));
    inputs.emplace_back(Tensor::scalar(static_cast<float>(rate)));
    inputs.emplace_back(Tensor::scalar(apply));
    inputs.emplace_back(Tensor::scalar(static_cast<float>(scale_ ? scale_->factor() : 1)));
    // An update that was left out moved no moments.
    inputs.emplace_back(Tensor::scalar(update - (scale_ ? scale_->skipped() : 0)));
    for (size_t i = 0; i < part.state_of_input.size(); ++i) {
      const Tensor& memory = memory_[static_cast<size_t>(part.state_of_input[i])].second;
      inputs.push_back(part.changes[i] ? Datum() : Datum(memory));
    }
    return inputs;
  }

  /// Whether the batch that finds so many gathered ends an update.
  bool ends_update(int gathered) const { return gathered + 1 >= options_.accumulate; }

  void prefetch(const data::Batch& next) {
    const int gathered = ends_update(gathered_) ? 0 : gathered_ + 1;
    std::vector<Datum> inputs{next.input};
    if (next.target) inputs.emplace_back(next.target);
    (ends_update(gathered) ? main_ : gather_).session->prefetch(inputs);
  }

  Outcome run(const data::Batch& batch, double rate, int64_t update, bool apply,
              std::vector<StepTime>* profile) {
    const bool ends = ends_update(gathered_);
    Part& part = ends ? main_ : gather_;
    hand_over_to(part);
    const auto inputs = inputs_of(part, batch, rate, update, apply);
    results_ = &part.session->run(inputs, profile);
    first_result_ = StepGraph::kFirstResult;
    Outcome out;
    out.loss = tensor(0).to_double();
    const double squared = tensor(1).to_double();
    out.gradient_norm = std::sqrt(squared);
    out.finite = std::isfinite(out.loss) && std::isfinite(squared);
    out.updated = ends && tensor(2).to_double() != 0;
    if (apply) gathered_ = ends ? 0 : gathered_ + 1;
    if (scale_ && apply && ends && std::isfinite(out.loss)) {
      out.overflowed = !out.finite;
      out.finite = scale_->follow(out.finite) || out.finite;
    }
    return out;
  }

  const Tensor& tensor(size_t output) const { return results_->at(output).tensor; }

  const onnx::Model& model_;
  StepOptions options_;
  Part main_, gather_;
  Part* last_ = nullptr;  ///< that ran last
  std::optional<LossScale> scale_;
  int gathered_ = 0;
  size_t parameters_ = 0;
  std::vector<NamedTensor> memory_;
  std::unordered_map<std::string, size_t> place_;
  const std::vector<Datum>* results_ = nullptr;
  size_t first_result_ = 0;
};

TrainingStep::TrainingStep(const onnx::Model& model, const StepOptions& options,
                           const data::Batch& sample)
    : body_(std::make_unique<Body>(model, options, sample)) {}
TrainingStep::~TrainingStep() = default;

Outcome TrainingStep::run(const data::Batch& batch, double rate, int64_t update, bool apply,
                          std::vector<StepTime>* profile) {
  return body_->run(batch, rate, update, apply, profile);
}

void TrainingStep::prefetch(const data::Batch& next) {
  if (body_->options_.backend) body_->prefetch(next);
}

const Tensor& TrainingStep::output(size_t index) const {
  return body_->tensor(body_->first_result_ + index);
}

std::vector<NamedTensor> TrainingStep::state() const {
  body_->fetch();
  return body_->memory_;
}

void TrainingStep::load(const std::vector<NamedTensor>& tensors) {
  const auto refuse = [](const std::string& problem) {
    throw Error(Code::invalid_argument, "the checkpoint does not fit: " + problem, "",
                "Resume with the network and the options that it was written with");
  };
  std::set<std::string> seen;
  for (const auto& [name, tensor] : tensors) {
    const auto found = body_->place_.find(name);
    if (found == body_->place_.end()) refuse("it holds '" + name + "', which is not trained here");
    Tensor& memory = body_->memory_[found->second].second;
    if (memory.dtype() != tensor.dtype() || !(memory.shape() == tensor.shape()))
      refuse("'" + name + "' is " + tensor.describe() + " instead of " + memory.describe());
    seen.insert(name);
  }
  for (const auto& [name, memory] : body_->memory_)
    if (!seen.contains(name)) refuse("'" + name + "' is missing");
  for (const auto& [name, tensor] : tensors)
    std::memcpy(body_->memory_[body_->place_.at(name)].second.raw(), tensor.raw(), tensor.bytes());
  body_->bind(body_->main_);
  if (body_->gather_.session) body_->bind(body_->gather_);
}

std::map<std::string, Tensor> TrainingStep::weights() const {
  body_->fetch();
  std::map<std::string, Tensor> out;
  for (const auto& [name, memory] : body_->memory_) {
    const auto mean = body_->place_.find(name + ".ema");
    out[name] = mean == body_->place_.end() ? memory : body_->memory_[mean->second].second;
  }
  return out;
}

std::string TrainingStep::find_not_finite(const data::Batch& batch, double rate, int64_t update) {
  body_->fetch();
  const Body::Part& part = body_->main_;
  auto inputs = body_->inputs_of(part, batch, rate, update, false);
  StepOptions alone = body_->options_;
  alone.ranks = 1;
  StepGraph built = build_step(body_->model_, alone, batch,
                               body_->options_.accumulate > 1 ? StepPart::finish : StepPart::whole);
  for (size_t i = 0; i < built.states.size(); ++i)
    inputs[part.first_state + i] =
        body_->memory_[static_cast<size_t>(part.state_of_input[i])].second;
  Graph& g = *built.graph;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (is_float(inputs[i].tensor.dtype()) && !is_finite(inputs[i].tensor))
      return "input '" + g.inputs[i]->name + "': " + statistics_of(inputs[i].tensor);
  g.outputs.clear();
  for (const auto& node : g.nodes())
    for (Value* value : node->outs)
      if (value->type.is_tensor() && is_float(value->type.dtype)) g.outputs.push_back(value);
  // Each node keeps its kernel but none is rewritten, so that names are those of the file.
  CompileOptions options;
  options.optimize = Optimize::portable;
  options.passes_until = 0;
  options.threads = body_->options_.threads;
  Session session(compile(std::move(built.graph), options).plan);
  const auto& results = session.run(inputs);
  const Graph& ran = session.plan().graph();
  std::unordered_map<const Value*, const Tensor*> known;
  for (size_t i = 0; i < results.size(); ++i) known[ran.outputs[i]] = &results[i].tensor;
  for (size_t i = 0; i < inputs.size(); ++i) known[ran.inputs[i]] = &inputs[i].tensor;
  for (size_t i = 0; i < results.size(); ++i) {
    if (is_finite(results[i].tensor)) continue;
    const Node& node = *ran.outputs[i]->producer();
    std::string out = node.where() + ": " + statistics_of(results[i].tensor) + "; reads";
    for (const Value* value : node.in) {
      if (!value) continue;
      const auto found = known.find(value);
      const Tensor* tensor = value->constant()      ? value->constant()
                             : found != known.end() ? found->second
                                                    : nullptr;
      if (tensor && is_float(tensor->dtype()))
        out += " '" + value->name + "' " + statistics_of(*tensor) + ";";
    }
    return out.substr(0, out.size() - 1);
  }
  return {};
}

const Plan& TrainingStep::plan() const { return body_->main_.session->plan(); }

size_t TrainingStep::parameters() const {
  size_t out = 0;
  for (size_t i = 0; i < body_->parameters_; ++i)
    out += static_cast<size_t>(body_->memory_[i].second.elements());
  return out;
}

size_t TrainingStep::state_bytes() const {
  size_t out = 0;
  for (const auto& [name, memory] : body_->memory_) out += memory.bytes();
  return out;
}

size_t TrainingStep::arena_bytes() const {
  size_t out = body_->main_.session->arena_bytes();
  if (body_->gather_.session) out = std::max(out, body_->gather_.session->arena_bytes());
  return out;
}

}  // namespace dais::train
