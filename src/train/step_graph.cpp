#include "train/step_graph.h"

#include <algorithm>

#include "autodiff/autodiff.h"
#include "ops/all_reduce/all_reduce.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gradient.h"
#include "train/decode.h"
#include "train/fixed_inputs.h"
#include "train/recompute.h"

namespace dais::train {
namespace {

[[noreturn]] void misfit(const Value& input, const Tensor& given) {
  throw Error(Code::invalid_argument,
              "the network takes " + input.name + " " + input.type.text() + ", the data give " +
                  given.describe(),
              "", "Use data of these sizes (--resize, --channels), or another network");
}

/// Numbers for the symbols of the network's input.
std::map<std::string, Dim> sizes_of_batch(const Value& input, const Tensor& given,
                                          bool only_batch) {
  std::map<std::string, Dim> out;
  if (input.type.dtype != given.dtype()) misfit(input, given);
  if (!input.type.ranked()) return out;
  const Dims& dims = *input.type.shape;
  if (dims.size() != given.rank()) misfit(input, given);
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t size = given.shape()[axis];
    if (dims[axis].is_constant()) {
      if (!dims[axis].is(size)) misfit(input, given);
      continue;
    }
    if (only_batch && axis > 0) continue;
    std::vector<std::string> symbols;
    dims[axis].collect_symbols(symbols);
    if (symbols.size() == 1 && dims[axis] == Dim::symbol(symbols[0])) out[symbols[0]] = size;
  }
  return out;
}

Dims dims_of(const Tensor& tensor, bool only_batch, const std::string& name) {
  Dims out;
  for (size_t axis = 0; axis < tensor.rank(); ++axis)
    out.push_back(only_batch && axis > 0 ? Dim::symbol(name + "_" + std::to_string(axis))
                                         : Dim(tensor.shape()[axis]));
  return out;
}

class StepBuilder {
 public:
  StepBuilder(const onnx::Model& model, const StepOptions& options, const data::Batch& sample,
              StepPart part)
      : model_(model), options_(options), sample_(sample), part_(part) {}

  StepGraph run() {
    form();
    Graph& g = *out_.graph;
    lower_precision(g, options_.precision);
    Value* loss = add_loss(g, options_.loss, targets(g.outputs));
    rate_ = g.add_input(Type::tensor(DType::f32, Dims{}), "learning_rate");
    apply_ = g.add_input(Type::tensor(DType::boolean, Dims{}), "apply");
    scale_ = g.add_input(Type::tensor(DType::f32, Dims{}), "loss_scale");
    done_ = g.add_input(Type::tensor(DType::i64, Dims{}), "updates_done");
    // As outputs of the graph they stay known when autodiff takes nodes apart.
    for (const StateEntry& entry : form_.statistics)
      if (entry.after) g.outputs.push_back(entry.after);
    g.outputs.push_back(loss);
    auto trained = gradients(loss);
    loss = g.outputs.back();
    if (options_.stretches > 1 && loss->producer())
      recompute(g, *loss->producer(), options_.stretches);
    if (options_.ranks > 1) loss = g.add(AllReduce{}, {loss});
    const Values network(g.outputs.begin(),
                         g.outputs.begin() + static_cast<std::ptrdiff_t>(out_.results));
    size_t at = out_.results;
    for (StateEntry& entry : form_.statistics)
      if (entry.after) entry.after = g.outputs[at++];
    if (part_ != StepPart::whole) accumulate(trained);
    if (options_.ranks > 1 && part_ != StepPart::gather) exchange(trained);
    update(trained, loss);
    finish(network, loss);
    return std::move(out_);
  }

  GradientGraph gradients_only() {
    form();
    Graph& g = *out_.graph;
    Value* loss = add_loss(g, options_.loss, targets(g.outputs));
    g.outputs = {loss};
    const auto trained = gradients(loss);
    Values inputs = form_.data;
    inputs.insert(inputs.end(), targets_.begin(), targets_.end());
    inputs.push_back(form_.step);
    for (const auto* entries : {&used_, &unused_, &form_.statistics})
      for (const StateEntry& entry : *entries) inputs.push_back(entry.before);
    for (const Trained& one : trained) g.outputs.push_back(one.gradient);
    DAIS_CHECK(inputs.size() == g.inputs.size());
    g.inputs = std::move(inputs);
    g.remove_dead();
    GradientGraph out{std::move(out_.graph), used_, unused_};
    out.fixed.insert(out.fixed.end(), form_.statistics.begin(), form_.statistics.end());
    return out;
  }

 private:
  void form() {
    const Graph& network = *model_.graph;
    if (network.inputs.size() != 1)
      throw Error(Code::unsupported,
                  "the data feed one input, this network has " +
                      (network.inputs.empty() ? "none" : input_list(network.inputs)),
                  network.name, "Fix the others, for example --fix-input attention_mask=1");
    FormOptions options{options_.freeze, options_.seed, options_.sync_norms && options_.ranks > 1,
                        sizes_of_batch(*network.inputs[0], sample_.input, options_.open_lengths)};
    form_ = training_form(model_, options);
    if (form_.parameters.empty())
      throw Error(Code::invalid_argument, "there is nothing to train", network.name,
                  "Check --freeze; weights are floating-point initialisers");
    out_.graph = std::move(form_.graph);
    out_.data_inputs = form_.data.size();
    out_.results = out_.graph->outputs.size();
  }

  LossInputs targets(const Values& network) {
    LossInputs in;
    in.outputs = network;
    in.input = form_.data[0];
    const auto tensors = target_tensors(options_.loss, sample_);
    out_.target_inputs = tensors.size();
    for (const auto& [name, tensor] : tensors) {
      Value* input = out_.graph->add_input(
          Type::tensor(tensor.dtype(), dims_of(tensor, options_.open_lengths, name)), name);
      targets_.push_back(input);
      in.by_name(name) = input;
    }
    return in;
  }

  /// Parameters that the loss does not depend on stay as they are.
  std::vector<Trained> gradients(Value* loss) {
    Values wrt;
    for (const StateEntry& entry : form_.parameters) wrt.push_back(entry.before);
    Graph& g = *out_.graph;
    const bool scaled = options_.precision == Precision::fp16;
    if (scaled) loss = Term(g, loss) * Term(g, scale_);
    Values found = append_gradients(g, loss, wrt);
    if (scaled)
      for (Value*& gradient : found)
        if (gradient) gradient = Term(g, gradient) / Term(g, scale_);
    std::vector<Trained> out;
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i]) out.push_back({form_.parameters[i].name, wrt[i], found[i]});
      (found[i] ? used_ : unused_).push_back(form_.parameters[i]);
    }
    return out;
  }

  /// Sums of the gradients of several batches, each divided by their number.
  void accumulate(std::vector<Trained>& trained) {
    Graph& g = *out_.graph;
    for (Trained& one : trained) {
      const Type& type = one.before->type;
      Tensor zeros(type.dtype, *type.static_shape());
      std::fill_n(zeros.storage<uint8_t>(), zeros.bytes(), uint8_t{0});
      const std::string name = one.name + ".gradient";
      Value* before = g.add_input(type, name);
      const Term sum = Term(g, before) + Term(g, one.gradient) / options_.accumulate;
      Value* after = sum;
      if (part_ == StepPart::finish) after = filled_like(g, 0, before);
      sums_.push_back({name, before, after, std::move(zeros), {}});
      one.gradient = sum;
    }
  }

  /// Means over the ranks: begun as soon as a gradient is there, awaited when all are.
  void exchange(std::vector<Trained>& trained) {
    Graph& g = *out_.graph;
    for (Trained& one : trained) {
      DAIS_CHECK(one.gradient->producer());
      Graph::InsertBefore place(g, g.next(*one.gradient->producer()));
      one.gradient = g.add(AllReduceStart{}, {one.gradient}, one.name + ".exchange");
    }
    for (Trained& one : trained) one.gradient = g.add(AllReduceFinish{}, {one.gradient});
  }

  void update(const std::vector<Trained>& trained, Value* loss) {
    Graph& g = *out_.graph;
    Value* finite = g.add(LessOrEqual{}, {g.add(Abs{}, {loss}),
                                          number_like(g, std::numeric_limits<float>::max(), loss)});
    apply_and_finite_ = g.add(And{}, {apply_, finite});
    if (part_ == StepPart::gather) {
      updates_.applied = apply_and_finite_;
      updates_.norm_squared = g.add_constant(Tensor::scalar(0.0f));
      for (const Trained& one : trained)
        updates_.states.push_back({one.name, one.before, nullptr, {}, {}});
    } else {
      updates_ = add_updates(g, options_.optimiser, trained, {rate_, done_, apply_and_finite_});
    }
    for (size_t i = 0; i < used_.size(); ++i) updates_.states[i].initial = used_[i].initial;
    const Term applied(g, updates_.applied);
    for (auto* entries : {&form_.statistics, &sums_})
      for (StateEntry& entry : *entries)
        if (entry.after) entry.after = where(applied, Term(g, entry.after), Term(g, entry.before));
  }

  void finish(const Values& network, Value* loss) {
    Graph& g = *out_.graph;
    g.outputs = {loss, updates_.norm_squared, updates_.applied};
    g.outputs.insert(g.outputs.end(), network.begin(), network.end());
    out_.parameters = used_.size();
    out_.states = updates_.states;
    for (const auto* entries : {&form_.statistics, &sums_, &unused_})
      out_.states.insert(out_.states.end(), entries->begin(), entries->end());
    // The signature's order, whatever order the inputs were made in.
    Values inputs = form_.data;
    inputs.insert(inputs.end(), targets_.begin(), targets_.end());
    inputs.insert(inputs.end(), {form_.step, rate_, apply_, scale_, done_});
    for (const StateEntry& entry : out_.states) {
      if (entry.after) {
        out_.pairs.push_back({inputs.size(), g.outputs.size()});
        g.outputs.push_back(entry.after);
      }
      inputs.push_back(entry.before);
    }
    DAIS_CHECK(inputs.size() == g.inputs.size());
    g.inputs = std::move(inputs);
    g.remove_dead();
  }

  const onnx::Model& model_;
  const StepOptions& options_;
  const data::Batch& sample_;
  StepPart part_;
  TrainingForm form_;
  StepGraph out_;
  Updates updates_;
  std::vector<StateEntry> used_, unused_, sums_;
  Values targets_;
  Value *rate_ = nullptr, *apply_ = nullptr, *scale_ = nullptr, *done_ = nullptr,
        *apply_and_finite_ = nullptr;
};

}  // namespace

std::vector<NamedTensor> target_tensors(const LossOptions& loss, const data::Batch& batch) {
  if (!batch.target)
    throw Error(Code::invalid_argument, "the data have no targets", "", "Use labelled data");
  if (loss.kind == LossKind::detection) {
    if (!batch.classes)
      throw Error(Code::invalid_argument, "the data have no boxes", "", "Use data with boxes");
    const AnchorTargets targets = match_anchors(loss.anchors, batch, loss.box_classes);
    return {{"target", targets.boxes}, {"classes", targets.classes}, {"counts", targets.counts}};
  }
  std::vector<NamedTensor> out{{"target", batch.target}};
  if (loss.kind == LossKind::ctc) {
    out.emplace_back("input_lengths", batch.input_lengths);
    out.emplace_back("target_lengths", batch.target_lengths);
  }
  return out;
}

GradientGraph build_gradients(const onnx::Model& model, const StepOptions& options,
                              const data::Batch& sample) {
  return StepBuilder(model, options, sample, StepPart::whole).gradients_only();
}

StepGraph build_step(const onnx::Model& model, const StepOptions& options,
                     const data::Batch& sample, StepPart part) {
  return StepBuilder(model, options, sample, part).run();
}

}  // namespace dais::train
