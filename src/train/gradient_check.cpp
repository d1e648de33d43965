#include "train/gradient_check.h"

#include <algorithm>
#include <cmath>

#include "autodiff/autodiff.h"
#include "base/philox.h"
#include "ir/call.h"
#include "ops/cast/cast.h"
#include "train/step_graph.h"

namespace dais::train {
namespace {

// Rounding alone moves a difference by about 1e-10; derivatives below this are taken for zero.
constexpr double kStep = 1e-6, kLeast = 1e-4;

Tensor widened(const Tensor& tensor) {
  if (tensor.dtype() != DType::f32) return tensor;
  Tensor out(DType::f64, tensor.shape());
  std::copy(tensor.data<float>().begin(), tensor.data<float>().end(), out.data<double>().begin());
  return out;
}

/// The network with f64 in the place of f32.
std::unique_ptr<Graph> widened(const Graph& graph) {
  const auto from = graph.clone();
  for (const auto& node : from->nodes())
    if (const auto* cast = node->as<Cast>(); cast && cast->to == DType::f32) {
      Cast wide = *cast;
      wide.to = DType::f64;
      node->attrs = Attrs::of(wide);
    }
  std::vector<Value*> constants;
  for (const auto& value : from->values())
    if (value->constant() && value->constant()->dtype() == DType::f32)
      constants.push_back(value.get());
  for (Value* constant : constants) {
    const std::string name = constant->name;
    const Tensor wide = widened(*constant->constant());
    from->rename(*constant, name + ".narrow");
    from->replace_uses(constant, from->add_constant(wide, name));
  }
  auto out = std::make_unique<Graph>();
  out->name = graph.name;
  Values arguments;
  for (const Value* input : from->inputs) {
    Type type = input->type;
    if (type.dtype == DType::f32) type.dtype = DType::f64;
    arguments.push_back(out->add_input(type, input->name));
  }
  out->outputs = from->inline_into(*out, arguments);
  return out;
}

class Checker {
 public:
  Checker(const onnx::Model& model, const StepOptions& options, const data::Batch& batch) {
    onnx::Model wide;
    wide.graph = widened(*model.graph);
    wide.metadata = model.metadata;
    data::Batch sample = batch;
    sample.input = widened(batch.input);
    StepOptions plain = options;
    plain.precision = Precision::fp32;
    built_ = build_gradients(wide, plain, sample);
    inputs_.emplace_back(sample.input);
    for (const auto& [name, tensor] : target_tensors(options.loss, batch))
      inputs_.emplace_back(tensor);
    inputs_.emplace_back(Tensor::scalar<int64_t>(0));
    first_ = inputs_.size();
    for (const StateEntry& entry : built_.parameters) inputs_.emplace_back(entry.initial.clone());
    for (const StateEntry& entry : built_.fixed) inputs_.emplace_back(entry.initial);
  }

  GradientCheck run() {
    const auto results = evaluate(*built_.graph, inputs_);
    loss_only_ = built_.graph->clone();
    loss_only_->outputs.resize(1);
    loss_only_->remove_dead();
    std::vector<Tensor> gradients, directions;
    for (size_t i = 0; i < built_.parameters.size(); ++i) {
      gradients.push_back(results[1 + i].tensor);
      directions.push_back(direction(i, gradients[i].shape()));
    }
    GradientCheck out;
    for (size_t i = 0; i < gradients.size(); ++i)
      out.rows.push_back(compare(built_.parameters[i].name, {i}, gradients, directions));
    std::vector<size_t> all(gradients.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    out.rows.push_back(compare("(all together)", all, gradients, directions));
    for (const auto& row : out.rows) out.worst = std::max(out.worst, row.error);
    return out;
  }

 private:
  static Tensor direction(size_t stream, const Shape& shape) {
    Tensor out(DType::f64, shape);
    const Philox random(11, stream);
    uint64_t at = 0;
    for (double& value : out.data<double>()) value = random.normal(at++);
    return out;
  }

  GradientCheck::Row compare(const std::string& name, const std::vector<size_t>& which,
                             const std::vector<Tensor>& gradients,
                             const std::vector<Tensor>& directions) {
    GradientCheck::Row row{name, 0, 0, 0};
    double length = 0;
    for (const size_t i : which)
      for (int64_t k = 0; k < directions[i].elements(); ++k) {
        row.by_gradient += gradients[i].to_double(k) * directions[i].to_double(k);
        length += directions[i].to_double(k) * directions[i].to_double(k);
      }
    length = std::sqrt(length);
    row.by_gradient /= length;
    const double h = kStep / length;
    const double above = loss_at(which, directions, h), below = loss_at(which, directions, -h);
    row.by_difference = (above - below) / (2 * kStep);
    const double size =
        std::max({std::fabs(row.by_gradient), std::fabs(row.by_difference), kLeast});
    row.error = std::fabs(row.by_gradient - row.by_difference) / size;
    return row;
  }

  double loss_at(const std::vector<size_t>& which, const std::vector<Tensor>& directions,
                 double h) {
    auto moved = inputs_;
    for (const size_t i : which) {
      Tensor tensor = inputs_[first_ + i].tensor.clone();
      for (size_t k = 0; k < static_cast<size_t>(tensor.elements()); ++k)
        tensor.data<double>()[k] += h * directions[i].data<double>()[k];
      moved[first_ + i] = tensor;
    }
    return evaluate(*loss_only_, moved)[0].tensor.to_double();
  }

  GradientGraph built_;
  std::unique_ptr<Graph> loss_only_;
  std::vector<Datum> inputs_;
  size_t first_ = 0;
};

}  // namespace

GradientCheck check_gradients(const onnx::Model& model, const StepOptions& options,
                              const data::Batch& batch) {
  return Checker(model, options, batch).run();
}

}  // namespace dais::train
