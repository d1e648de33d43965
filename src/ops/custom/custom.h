#pragma once

#include "ir/dim.h"
#include "ir/op.h"

namespace dais {

/// An operator that a user adds: one kernel in CUDA C++ and what is to be known of it. Sizes are
/// expressions ("x_0" is the first size of input x, "x_size" its number of elements) as in
/// Dim::parse.
struct CustomSpec {
  struct Output {
    std::string name;
    std::string type;                ///< an input whose type it has, or an element type ("f32")
    std::string shape_of;            ///< an input whose shape it has; or
    std::vector<std::string> shape;  ///< an expression for each size
  };
  struct Attribute {
    std::string name;
    float value = 0;  ///< where a model does not give it
  };
  std::string name;    ///< the ONNX operator's, in the domain "dais.custom"
  std::string file;    ///< what messages call the text
  std::string text;    ///< CUDA C++
  std::string kernel;  ///< declared extern "C" __global__ in it
  std::vector<std::string> inputs;
  std::vector<Output> outputs;
  std::vector<Attribute> attributes;
  /// What the kernel takes behind the addresses of its inputs and outputs: expressions (long long)
  /// and names of attributes (float).
  std::vector<std::string> arguments;
  int threads = 256;
  std::string blocks = "1";  ///< expression
  double relative_tolerance = 1e-5, absolute_tolerance = 1e-6;
  /// Another custom operator that takes the inputs and the gradients of the outputs and gives those
  /// of the inputs; empty: there is no gradient.
  std::string gradient;

  /// Throws `invalid_argument` naming what is wrong.
  void check() const;
};

/// Makes an operator known; models name it when it was known before the first of them was read.
/// Throws what check() throws, and `invalid_argument` when its name is taken. Not while another
/// thread uses operators.
void add_custom_op(CustomSpec spec);
/// nullptr: there is none of that name.
const CustomSpec* custom_spec(std::string_view name);

/// A node of such an operator.
struct Custom {
  std::string name;
  std::vector<float> values = {};  ///< of the attributes, in their order
  static constexpr auto fields =
      std::tuple{required_field("name", &Custom::name), field("values", &Custom::values)};
  static const Op op;
};

/// A size by its expression, from the sizes of the inputs.
Dim custom_size(const CustomSpec& spec, const std::string& expression,
                const std::vector<Dims>& inputs);

}  // namespace dais
