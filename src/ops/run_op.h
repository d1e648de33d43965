#pragma once

#include <cmath>

#include "ops/op_testing.h"

namespace dais {

/// True when a tensor is of a type; sizes that only running tells may be any.
inline bool fits_type(const Type& type, const Tensor& tensor) {
  if (type.dtype != tensor.dtype() || !type.shape || type.shape->size() != tensor.rank())
    return false;
  for (size_t axis = 0; axis < tensor.rank(); ++axis)
    if ((*type.shape)[axis].constant().value_or(tensor.shape()[axis]) != tensor.shape()[axis])
      return false;
  return true;
}

/// Runs one node through inference, verification and its reference; every output is checked against
/// the type that was inferred.
template <typename Struct>
std::vector<Tensor> run_op(Struct attrs, const std::vector<Tensor>& inputs, size_t outputs = 1) {
  Graph graph;
  Values values;
  std::vector<Datum> data;
  for (const Tensor& input : inputs) {
    values.push_back(input ? graph.add_input(Type::of(input), {}) : nullptr);
    if (input) data.emplace_back(input);
  }
  graph.outputs = graph.add_node(std::move(attrs), values, outputs).outs;
  graph.verify();
  std::vector<Tensor> out;
  for (const Datum& datum : evaluate(graph, data)) {
    DAIS_CHECK(fits_type(graph.outputs[out.size()]->type, datum.tensor));
    out.push_back(datum.tensor);
  }
  return out;
}

/// Imports one node and runs what it becomes.
inline std::vector<Tensor> run_import(std::string_view domain, std::string_view type, int64_t opset,
                                      std::vector<std::pair<std::string, AttrValue>> attributes,
                                      const std::vector<Tensor>& inputs, size_t outputs = 1) {
  Graph graph;
  Values values;
  std::vector<Datum> data;
  for (const Tensor& input : inputs) {
    values.push_back(input ? graph.add_input(Type::of(input), {}) : nullptr);
    if (input) data.emplace_back(input);
  }
  TestImport import(graph, type, opset, values, std::move(attributes), outputs);
  import.domain = domain;
  for (Value* value : import.run())
    if (value) graph.outputs.push_back(value);
  graph.verify();
  std::vector<Tensor> out;
  for (const Datum& datum : evaluate(graph, data)) out.push_back(datum.tensor);
  return out;
}

/// A tensor of small numbers that differ from each other in no simple pattern.
inline Tensor test_tensor(const Shape& shape, int seed = 1) {
  Tensor out(DType::f32, shape);
  auto state = static_cast<uint32_t>(seed) * 2654435761u + 1u;
  for (float& value : out.data<float>()) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int>(state >> 24) - 128) / 64.0f;
  }
  return out;
}

/// Largest absolute difference of two f32 tensors of one shape; infinite when they cannot be
/// compared.
inline double test_distance(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return INFINITY;
  double worst = 0;
  for (int64_t i = 0; i < a.elements(); ++i)
    worst = std::fmax(worst, std::fabs(a.to_double(i) - b.to_double(i)));
  return worst;
}

}  // namespace dais
