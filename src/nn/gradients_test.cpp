#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "autodiff/autodiff.h"
#include "base/philox.h"
#include "ir/call.h"
#include "nn/small_networks_test.h"
#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/norm/norm.h"
#include "ops/pool/pool.h"
#include "ops/resize/resize.h"

// The derivative of every network along a direction in which all parameters move at once: by the
// gradients, and by the difference of two runs in float64 on plain loops. Batch norms use their
// batch. Both runs must take the same side at every kink (ReLU, bounds, largest of a window), else
// the difference is no derivative; a step that crosses one is made smaller.
namespace dais::nn {
namespace {

constexpr double kFirstStep = 1e-5, kLastStep = 1e-9;
constexpr double kRelative = 1e-5;

Tensor widened(const Tensor& tensor) {
  if (tensor.dtype() != DType::f32) return tensor;
  Tensor out(DType::f64, tensor.shape());
  std::copy(tensor.data<float>().begin(), tensor.data<float>().end(), out.data<double>().begin());
  return out;
}

/// Scales of a resampling are f32 whatever it resamples.
bool steers(const dais::Value& constant) {
  return std::any_of(constant.users().begin(), constant.users().end(),
                     [](const Use& use) { return use.node->as<Resize>() != nullptr; });
}

Attrs trained_attrs(const Node& node) {
  if (const auto* cast = node.as<Cast>(); cast && cast->to == DType::f32) {
    Cast wide = *cast;
    wide.to = DType::f64;
    return Attrs::of(wide);
  }
  if (const auto* norm = node.as<BatchNormalization>()) {
    BatchNormalization training = *norm;
    training.training_mode = true;
    return Attrs::of(training);
  }
  return node.attrs;
}

/// A network in float64 as it trains; its parameters are inputs behind those of its own.
class Trained {
 public:
  explicit Trained(const Small& small) : net_(recipe(small.name).build(small.values, 5)) {
    const Graph& from = net_.graph();
    for (const dais::Value* input : from.inputs) {
      std::vector<int64_t> sizes;
      for (const Dim& dim : *input->type.shape) sizes.push_back(dim.constant().value_or(-1));
      const Tensor data = widened(input_for(input->name, input->type.dtype, sizes, small));
      twins_[input] = graph.add_input(Type::of(data), input->name);
      inputs.emplace_back(data);
    }
    first_ = inputs.size();
    add_constants(from);
    for (const auto& node : from.nodes()) {
      dais::Values in;
      for (const dais::Value* value : node->in) in.push_back(value ? twins_.at(value) : nullptr);
      const Node& copy = graph.add_node(*node->op, trained_attrs(*node), std::move(in),
                                        node->outs.size(), node->name);
      for (size_t i = 0; i < copy.outs.size(); ++i) twins_[node->outs[i]] = copy.outs[i];
    }
    for (const dais::Value* output : from.outputs)
      if (output->producer()) results.push_back(twins_.at(output));
  }

  Graph graph;
  dais::Values results, parameters;
  std::vector<Datum> inputs;

  /// The inputs with every parameter moved by `step` along the direction.
  std::vector<Datum> moved(double step) const {
    std::vector<Datum> out = inputs;
    for (size_t p = 0; p < parameters.size(); ++p) {
      Tensor tensor = inputs[first_ + p].tensor.clone();
      for (int64_t i = 0; i < tensor.elements(); ++i)
        tensor.storage<double>()[i] += step * direction(p, i);
      out[first_ + p] = tensor;
    }
    return out;
  }

  double direction(size_t parameter, int64_t element) const {
    return scales_[parameter] * Philox(17, parameter).normal(static_cast<uint64_t>(element));
  }

 private:
  void add_constants(const Graph& from) {
    std::map<std::string, bool> trained;
    for (const ParameterInfo& info : net_.parameters()) trained[info.name] = true;
    for (const auto& value : from.values()) {
      const Tensor* tensor = value->constant();
      if (!tensor) continue;
      if (!trained[value->name]) {
        twins_[value.get()] =
            graph.add_constant(steers(*value) ? *tensor : widened(*tensor), value->name);
        continue;
      }
      const Tensor wide = widened(*tensor);
      twins_[value.get()] = graph.add_input(Type::of(wide), value->name);
      parameters.push_back(twins_[value.get()]);
      inputs.emplace_back(wide);
      double squares = 0;
      for (const double one : wide.data<double>()) squares += one * one;
      scales_.push_back(std::sqrt(squares / static_cast<double>(wide.elements())) + 0.01);
    }
  }

  Network net_;
  std::map<const dais::Value*, dais::Value*> twins_;
  std::vector<double> scales_;
  size_t first_ = 0;
};

Tensor seed_of(const Shape& shape) {
  Tensor seed(DType::f64, shape);
  for (int64_t i = 0; i < seed.elements(); ++i)
    seed.storage<double>()[i] = std::cos(1.7 * static_cast<double>(i));
  return seed;
}

/// What is differentiated, and which side each kink was passed on.
struct Passed {
  double value = 0;
  std::vector<int64_t> sides;
};

Passed run(const Graph& graph, size_t results, const std::vector<Datum>& inputs) {
  const auto outputs = evaluate(graph, inputs);
  Passed out;
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Tensor& y = outputs[k].tensor;
    const Tensor seed = k < results ? seed_of(y.shape()) : Tensor();
    for (int64_t i = 0; i < y.elements(); ++i)
      if (k < results)
        out.value += y.to_double(i) * seed.to_double(i);
      else
        out.sides.push_back(y.dtype() == DType::i64 ? y.storage<int64_t>()[i] : y.to_double(i) > 0);
  }
  return out;
}

/// The graph with a mark of its side at every kink as further outputs.
std::unique_ptr<Graph> with_sides(const Graph& from) {
  auto graph = from.clone();
  std::vector<Node*> nodes;
  for (const auto& node : graph->nodes()) nodes.push_back(node.get());
  for (Node* node : nodes) {
    if (node->as<Relu>()) graph->outputs.push_back(node->outs[0]);
    if (node->as<MaxPool>()) graph->outputs.push_back(graph->add_output(*node));
    if (!node->as<Clip>()) continue;
    for (const size_t bound : {1, 2})
      if (node->has(bound))
        graph->outputs.push_back(graph->add(Sub{}, {node->in[0], node->in[bound]}));
  }
  return graph;
}

double by_gradient(const Trained& trained) {
  auto graph = trained.graph.clone();
  const auto twin = [&](const dais::Value* value) {
    for (const auto& each : graph->values())
      if (each->name == value->name) return each.get();
    throw Error(Code::internal, value->name);
  };
  dais::Values results, seeds, wrt;
  for (const dais::Value* value : trained.results) {
    results.push_back(twin(value));
    seeds.push_back(graph->add_constant(seed_of(*value->type.static_shape())));
  }
  for (const dais::Value* value : trained.parameters) wrt.push_back(twin(value));
  const dais::Values gradients = append_gradients(*graph, results, seeds, wrt);
  graph->outputs.clear();
  for (size_t p = 0; p < wrt.size(); ++p) {
    EXPECT_NE(gradients[p], nullptr) << wrt[p]->name;
    if (gradients[p]) graph->outputs.push_back(gradients[p]);
  }
  graph->remove_dead();
  graph->verify();
  const auto values = evaluate(*graph, trained.inputs);
  double out = 0;
  for (size_t p = 0; p < values.size(); ++p)
    for (int64_t i = 0; i < values[p].tensor.elements(); ++i)
      out += values[p].tensor.to_double(i) * trained.direction(p, i);
  return out;
}

class NetworkGradients : public testing::TestWithParam<Small> {};

TEST_P(NetworkGradients, AgreeWithTheDifferenceAlongADirection) {
  Trained trained(GetParam());
  trained.graph.outputs = trained.results;
  const auto graph = with_sides(trained.graph);
  const double expected = by_gradient(trained);
  for (double step = kFirstStep; step >= kLastStep; step /= 10) {
    const Passed above = run(*graph, trained.results.size(), trained.moved(step));
    const Passed below = run(*graph, trained.results.size(), trained.moved(-step));
    if (above.sides != below.sides) continue;
    const double difference = (above.value - below.value) / (2 * step);
    EXPECT_NEAR(difference, expected, kRelative * std::abs(expected)) << "step " << step;
    return;
  }
  FAIL() << "every step crosses a kink";
}

INSTANTIATE_TEST_SUITE_P(Recipes, NetworkGradients, testing::ValuesIn(small_networks()),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace dais::nn
