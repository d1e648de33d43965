#include "autodiff/gradient_case.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autodiff/autodiff.h"
#include "ir/call.h"
#include "ops/reduce/reduce.h"

namespace dais {
namespace {

constexpr double kStep = 1e-3;
constexpr double kRelative = 1e-5;
constexpr double kOfLargest = 1e-8;  ///< what rounding leaves of small elements beside large ones
constexpr int64_t kMostElements = 48;

/// A case as a graph: varied inputs are its inputs, others constants.
struct Built {
  Graph graph;
  Values varied, results;
  std::vector<Datum> data;
};

void build(const GradientCase& one, bool symbolic, Built& out) {
  Values in;
  for (const CaseInput& input : one.inputs) {
    if (!input.value) {
      in.push_back(nullptr);
      continue;
    }
    Type type = Type::of(input.value);
    if (symbolic && input.batch) type.shape->front() = Dim::symbol("batch");
    if (input.varied || (symbolic && input.batch)) {
      in.push_back(out.graph.add_input(type, "x" + std::to_string(in.size())));
      out.data.emplace_back(input.value);
      if (input.varied) out.varied.push_back(in.back());
    } else {
      in.push_back(out.graph.add_constant(input.value));
    }
  }
  for (Value* result : one.build(out.graph, in))
    if (result->type.is_tensor() && is_float(result->type.dtype)) out.results.push_back(result);
}

/// Weights of a result's elements in the number that is differentiated.
Tensor seed_of(const Tensor& like, int number) {
  Tensor seed(DType::f64, like.shape());
  for (int64_t i = 0; i < seed.elements(); ++i)
    seed.data<double>()[static_cast<size_t>(i)] = std::cos(1.7 * static_cast<double>(i) + number);
  return seed;
}

double weighted(const std::vector<Datum>& results) {
  double sum = 0;
  for (size_t k = 0; k < results.size(); ++k) {
    const Tensor& y = results[k].tensor;
    const Tensor seed = seed_of(y, static_cast<int>(k));
    for (int64_t i = 0; i < y.elements(); ++i) sum += y.to_double(i) * seed.to_double(i);
  }
  return sum;
}

/// Gradients of the weighted sum of all results, one for each varied input.
std::vector<Tensor> analytic(const GradientCase& one, bool symbolic) {
  Built built;
  build(one, symbolic, built);
  built.graph.outputs = built.results;
  const auto y = evaluate(built.graph, built.data);
  Values seeds;
  for (size_t k = 0; k < y.size(); ++k) {
    Value* seed = built.graph.add_input(built.results[k]->type, "dy" + std::to_string(k));
    seeds.push_back(seed);
    built.data.emplace_back(seed_of(y[k].tensor, static_cast<int>(k)));
  }
  const Values dx = append_gradients(built.graph, built.results, seeds, built.varied);
  built.graph.outputs.clear();
  for (Value* gradient : dx)
    if (gradient) built.graph.outputs.push_back(gradient);
  built.graph.remove_dead();
  built.graph.verify();
  const auto data = evaluate(built.graph, built.data);
  std::vector<Tensor> out;
  size_t next = 0, input = 0;
  for (const CaseInput& given : one.inputs) {
    if (!given.varied) continue;
    if (dx[input++]) {
      out.push_back(data[next++].tensor);
      continue;
    }
    Tensor zero(DType::f64, given.value.shape());
    for (double& value : zero.data<double>()) value = 0;
    out.push_back(zero);
  }
  return out;
}

/// The derivative by one element, by five points.
double slope(const Graph& graph, std::vector<Datum> data, size_t input, size_t element) {
  data[input] = data[input].tensor.clone();
  double& x = data[input].tensor.data<double>()[element];
  const double middle = x;
  const auto at = [&](double offset) {
    x = middle + offset * kStep;
    return weighted(evaluate(graph, data));
  };
  return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * kStep);
}

std::string compare(const Graph& graph, const std::vector<Datum>& data, size_t input,
                    const Tensor& gradient) {
  const Tensor& x = data[input].tensor;
  if (!(gradient.shape() == x.shape()))
    return "the gradient of " + x.describe() + " is " + gradient.describe();
  const int64_t stride = std::max<int64_t>(1, x.elements() / kMostElements);
  double largest = 0;
  std::vector<std::pair<int64_t, double>> numeric;
  for (int64_t i = 0; i < x.elements(); i += stride) {
    numeric.emplace_back(i, slope(graph, data, input, static_cast<size_t>(i)));
    largest = std::fmax(largest, std::fabs(numeric.back().second));
  }
  for (const auto& [i, expected] : numeric) {
    const double given = gradient.to_double(i);
    const double bound = kRelative * std::fmax(std::fabs(expected), std::fabs(given)) +
                         kOfLargest * std::fmax(largest, 1.0);
    if (!(std::fabs(given - expected) <= bound))
      return "input " + std::to_string(input) + ", element " + std::to_string(i) + ": gradient " +
             std::to_string(given) + ", difference quotient " + std::to_string(expected);
  }
  return {};
}

CaseInput spread_over(const Shape& shape, const Spread& spread) {
  Tensor out(DType::f64, shape);
  const auto count = static_cast<uint64_t>(out.elements());
  uint64_t step = count / 2 + 1;
  const auto shared = [](uint64_t a, uint64_t b) {
    while (b != 0) a = std::exchange(b, a % b);
    return a;
  };
  while (count > 0 && shared(step, count) != 1) ++step;
  for (uint64_t i = 0; i < count; ++i) {
    const double part = (static_cast<double>(i * step % count) + 0.37) / static_cast<double>(count);
    double value = spread.low + (spread.high - spread.low) * part;
    for (const double kink : spread.avoid)
      if (std::fabs(value - kink) < 0.01) value += 0.03;
    out.data<double>()[i] = value;
  }
  return {out, true, false};
}

}  // namespace

CaseInput real(const Shape& shape, const Spread& spread) { return spread_over(shape, spread); }
CaseInput batched(const Shape& shape, const Spread& spread) {
  CaseInput out = spread_over(shape, spread);
  out.batch = true;
  return out;
}
CaseInput fixed(Tensor value) { return {std::move(value), false, false}; }
CaseInput fixed_ints(const std::vector<int64_t>& values) { return fixed(Tensor::ints(values)); }
CaseInput none() { return {}; }

void GradientCases::add(const Op& op, std::function<Values(Graph&, const Values&)> build,
                        std::vector<CaseInput> inputs, std::string text) {
  for (const CaseInput& input : inputs)
    if (input.value) text += " " + input.value.describe();
  cases_.push_back({&op, std::move(build), std::move(inputs), std::move(text)});
}

std::string check_gradients(const GradientCase& one) {
  Built built;
  build(one, false, built);
  built.graph.outputs = built.results;
  if (built.results.empty()) return "there is no result of a float type";
  const auto gradients = analytic(one, false);
  for (size_t i = 0; i < gradients.size(); ++i)
    if (std::string problem = compare(built.graph, built.data, i, gradients[i]); !problem.empty())
      return problem;
  const bool batch = std::any_of(one.inputs.begin(), one.inputs.end(),
                                 [](const CaseInput& input) { return input.batch; });
  if (!batch) return {};
  const auto symbolic = analytic(one, true);
  for (size_t i = 0; i < gradients.size(); ++i)
    if (!symbolic[i].identical(gradients[i]))
      return "with a symbolic batch, the gradient of input " + std::to_string(i) + " differs";
  return {};
}

}  // namespace dais
