#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/isa.h"
#include "ir/call.h"
#include "runtime/kernel.h"

namespace dais {

/// How far a row may be from the reference, per element: absolute + relative * |reference|.
struct RowTolerance {
  double relative = 0, absolute = 0;
};

/// Compares two results; floats by tolerance (equal infinities and two NaNs agree).
inline void expect_close(const Tensor& got, const Tensor& wanted, const RowTolerance& tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.describe(), wanted.describe()) << what;
  if (!is_float(wanted.dtype()) || (tolerance.relative == 0 && tolerance.absolute == 0)) {
    EXPECT_TRUE(got.identical(wanted)) << what << " " << wanted.describe();
    return;
  }
  for (int64_t i = 0; i < wanted.elements(); ++i) {
    const double a = got.to_double(i), b = wanted.to_double(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double limit = tolerance.absolute + tolerance.relative * std::fabs(b);
    ASSERT_LE(std::fabs(a - b), limit) << what << " element " << i << ": " << a << " for " << b;
  }
}

/// Runs one row on given inputs; false when it does not bind these sizes.
inline bool run_row(const Kernel& kernel, std::span<const Datum> inputs,
                    std::vector<Tensor>& outputs) {
  std::vector<Shape> in, out;
  std::vector<const void*> in_pointers;
  std::vector<void*> out_pointers;
  for (const Datum& input : inputs) {
    in.push_back(input.has_value() ? input.tensor.shape() : Shape{});
    in_pointers.push_back(input.has_value() ? input.tensor.raw() : nullptr);
  }
  for (Tensor& output : outputs) {
    out.push_back(output.shape());
    out_pointers.push_back(output.raw());
  }
  const auto bound = kernel.bind({in, out});
  if (!bound) return false;
  const auto bytes = static_cast<int64_t>(bound->scratch_bytes());
  Tensor scratch(DType::u8, Shape{std::max<int64_t>(bytes, 64)});
  const Fault fault = bound->run({in_pointers, out_pointers, scratch.raw()});
  EXPECT_EQ(fault.problem, nullptr) << fault.problem;
  return true;
}

/// Runs the only node of `graph` on its reference and on every row that accepts it at every
/// instruction set of this machine, and compares. `inputs` are the node's inputs in order, those of
/// constants included. Gives how many rows ran, so that a test can ask for at least one.
inline int check_rows(const Graph& graph, std::span<const Datum> inputs,
                      const RowTolerance& tolerance = {}) {
  const Node& node = *graph.nodes().front();
  const auto wanted = evaluate_node(node, inputs);
  int ran = 0;
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512, Isa::amx}) {
    if (isa > cpu::machine_isa()) break;
    const KernelQuery query{node, isa, 2};
    for (const KernelRow* row : cpu_kernels().rows(*node.op)) {
      if (row->isa > isa || !row->accepts(query)) continue;
      std::vector<Tensor> outputs;
      for (const Datum& output : wanted)
        outputs.emplace_back(output.tensor.dtype(), output.tensor.shape());
      if (!run_row(*row->prepare(query), inputs, outputs)) continue;
      ++ran;
      const std::string what =
          std::string(row->name) + " on " + std::string(isa_name(isa)) + " for " + node.where();
      for (size_t i = 0; i < wanted.size(); ++i)
        expect_close(outputs[i], wanted[i].tensor, tolerance, what);
    }
  }
  return ran;
}

/// A graph of one node, and what its inputs are given.
struct OneNode {
  Graph graph;
  std::vector<Datum> data;

  /// Inputs listed in `constants` are constants of the graph; empty tensors are left out.
  template <typename Struct>
  void build(Struct attrs, const std::vector<Tensor>& inputs,
             const std::vector<size_t>& constants = {}, size_t outputs = 1) {
    Values values;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool constant = std::find(constants.begin(), constants.end(), i) != constants.end();
      values.push_back(!inputs[i] ? nullptr
                       : constant ? graph.add_constant(inputs[i])
                                  : graph.add_input(Type::of(inputs[i]), {}));
      data.push_back(inputs[i] ? Datum(inputs[i]) : Datum());
    }
    graph.outputs = graph.add_node(std::move(attrs), values, outputs).outs;
  }
};

/// The same for an op and its inputs; those listed in `constants` are constants of the graph.
template <typename Struct>
int check_rows(Struct attrs, const std::vector<Tensor>& inputs, const RowTolerance& tolerance = {},
               const std::vector<size_t>& constants = {}, size_t outputs = 1) {
  OneNode one;
  one.build(std::move(attrs), inputs, constants, outputs);
  return check_rows(one.graph, one.data, tolerance);
}

/// Numbers from -scale to scale that look random but are always the same.
template <typename T>
Tensor sample(const Shape& shape, double scale = 4, uint64_t seed = 1) {
  Tensor out(dtype_of<T>, shape);
  uint64_t state = seed * 0x9E3779B97F4A7C15U + 1;
  for (T& element : out.data<T>()) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const double unit = static_cast<double>(state >> 11) / 9007199254740992.0;
    if constexpr (std::is_same_v<T, bool>)
      element = unit < 0.5;
    else
      element = number_cast<T>(std::is_unsigned_v<T> ? unit * scale : (2 * unit - 1) * scale);
  }
  return out;
}

/// The same numbers rounded to bf16.
inline Tensor in_half(const Tensor& wide) {
  Tensor out(DType::bf16, wide.shape());
  for (int64_t i = 0; i < wide.elements(); ++i)
    out.storage<BFloat16>()[i] = BFloat16(static_cast<float>(wide.to_double(i)));
  return out;
}

/// Indices from -size to size - 1, the same kind of numbers.
template <typename T>
Tensor sample_indices(const Shape& shape, int64_t size) {
  Tensor out = sample<T>(shape, 1000);
  for (T& index : out.data<T>()) {
    const int64_t rest = static_cast<int64_t>(index) % (2 * size);
    index = static_cast<T>((rest < 0 ? rest + 2 * size : rest) - size);
  }
  return out;
}

}  // namespace dais
