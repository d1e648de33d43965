#include "ops/matmul/product_body_cpu.h"

#include <algorithm>
#include <limits>

#include "ops/elementwise/elementwise.h"
#include "ops/fused/fused.h"
#include "ops/matmul/matmul.h"
#include "ops/wide.h"

namespace dais {
namespace {

using Kind = ProductStep::Kind;

bool is_product(const Node& node) { return node.as<MatMul>() || node.as<Gemm>(); }

bool sixteen_bits(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

/// How an operand lies beside the result.
enum class Form : uint8_t { none, scalar, column, tensor };

Form form_of(const Dims& operand, const Dims& out) {
  if (std::all_of(operand.begin(), operand.end(), [](const Dim& d) { return d.is(1); }))
    return Form::scalar;
  if (operand.size() > out.size() || out.empty() || !(operand.back() == out.back()))
    return Form::none;
  if (std::all_of(operand.begin(), operand.end() - 1, [](const Dim& d) { return d.is(1); }))
    return Form::column;
  return operand == out ? Form::tensor : Form::none;
}

/// Reads what follows the product, all f32.
class StepReader {
 public:
  StepReader(const Values& inputs, ProductBody& body) : inputs_(inputs), body_(body) {}

  /// "" or the reason why the chain cannot be read.
  std::string read_chain(const Graph& graph) {
    current_ = body_.product->outs[0];
    for (const auto& node : graph.nodes()) {
      if (node.get() == body_.product) continue;
      const Type& type = node->outs[0]->type;
      if (!(type == current_->type)) return std::string(node->op->name) + " changes type or sizes";
      if (current_->users().size() != 1 || !read_node(*node))
        return std::string(node->op->name) + " is no step of an epilogue";
      current_ = node->outs[0];
    }
    if (graph.outputs.size() != 1 || graph.outputs[0] != current_)
      return "more than the last value is used outside";
    return {};
  }

  /// Adds or multiplies an operand that may be negated or inverted when constant.
  bool read_operand(const Value* value, const Dims& out, bool add, float (*change)(float)) {
    if (!value->type.ranked()) return false;
    const Form form = form_of(*value->type.shape, out);
    if (form == Form::none) return false;
    ProductStep step;
    step.kind = form == Form::scalar   ? (add ? Kind::shift : Kind::scale)
                : form == Form::column ? (add ? Kind::column : Kind::scale_column)
                                       : (add ? Kind::tensor : Kind::scale_tensor);
    if (const Tensor* tensor = value->constant()) {
      std::vector<float> values = to_wide<float>(*tensor);
      if (change) std::transform(values.begin(), values.end(), values.begin(), change);
      if (form == Form::scalar)
        step.value = values[0];
      else
        step.constant = Tensor::of<float>(tensor->shape(), std::span<const float>(values));
    } else {
      const auto found = std::find(inputs_.begin(), inputs_.end(), value);
      if (change || found == inputs_.end() || value->type.dtype != DType::f32) return false;
      step.operand = static_cast<int>(found - inputs_.begin());
    }
    body_.steps.push_back(std::move(step));
    return true;
  }

 private:
  bool push(Kind kind, float value = 1, float high = 0) {
    body_.steps.push_back({.kind = kind, .value = value, .high = high});
    return true;
  }

  bool read_node(const Node& node) {
    const auto call = scalar_call(node);
    if (!call || std::count(node.in.begin(), node.in.end(), current_) != 1) return false;
    switch (call->function) {
      case Scalar::relu: return push(Kind::relu);
      case Scalar::gelu: return push(Kind::gelu);
      case Scalar::gelu_tanh: return push(Kind::gelu_tanh);
      case Scalar::tanh: return push(Kind::tanh);
      case Scalar::sigmoid: return push(Kind::sigmoid);
      case Scalar::swish: return call->parameters[0] == 1 && push(Kind::silu);
      case Scalar::clip: return read_clip(node);
      case Scalar::add:
      case Scalar::mul:
      case Scalar::sub:
      case Scalar::div: return read_binary(node, call->function);
      default: return false;
    }
  }

  bool read_clip(const Node& node) {
    constexpr float kMost = std::numeric_limits<float>::infinity();
    float bounds[2] = {-kMost, kMost};
    for (size_t i = 1; i < node.in.size(); ++i) {
      if (!node.has(i)) continue;
      const Tensor* tensor = node.in[i]->constant();
      if (!tensor || tensor->elements() != 1 || node.in[0] != current_) return false;
      bounds[i - 1] = static_cast<float>(tensor->to_double());
    }
    return push(Kind::clip, bounds[0], bounds[1]);
  }

  bool read_binary(const Node& node, Scalar function) {
    const bool first = node.in[0] == current_;
    const Value* other = node.in[first ? 1 : 0];
    const bool add = function == Scalar::add || function == Scalar::sub;
    float (*change)(float) = nullptr;
    if (function == Scalar::sub) change = [](float x) { return -x; };
    if (function == Scalar::div) change = [](float x) { return 1 / x; };
    if (change && (!first || !other->constant())) return false;
    return read_operand(other, *current_->type.shape, add, change);
  }

  const Values& inputs_;
  ProductBody& body_;
  const Value* current_ = nullptr;
};

int input_of(const Values& inputs, const Value* value) {
  const auto found = std::find(inputs.begin(), inputs.end(), value);
  return found == inputs.end() ? -1 : static_cast<int>(found - inputs.begin());
}

/// Scale and addend of a Gemm.
std::string read_gemm(const Node& node, StepReader& reader, ProductBody& body) {
  const auto& attrs = *node.as<Gemm>();
  body.trans_a = attrs.trans_a;
  body.trans_b = attrs.trans_b;
  if (attrs.alpha != 1) body.steps.push_back({.kind = Kind::scale, .value = attrs.alpha});
  if (!node.has(2) || attrs.beta == 0) return {};
  if (attrs.beta != 1) return "a scaled addend";
  if (!reader.read_operand(node.in[2], *node.outs[0]->type.shape, true, nullptr))
    return "an addend that is neither a row nor of the result's size";
  return {};
}

std::string read(const Node& node, const Values& inputs, ProductBody& body, StepReader& reader) {
  const DType dtype = node.outs[0]->type.dtype;
  body.dtype = dtype;
  if (dtype != DType::f32 && !sixteen_bits(dtype)) return "an element type other than f32 or less";
  for (size_t i = 0; i < 2; ++i)
    if (node.in[i]->type.dtype != dtype || !node.in[i]->type.ranked() ||
        node.in[i]->type.shape->empty())
      return "unknown ranks or mixed element types";
  if (!node.outs[0]->type.ranked()) return "the rank is unknown";
  body.a = input_of(inputs, node.in[0]);
  body.b = input_of(inputs, node.in[1]);
  body.a_constant = node.in[0]->constant();
  body.b_constant = node.in[1]->constant();
  return node.as<Gemm>() ? read_gemm(node, reader, body) : std::string();
}

}  // namespace

bool ProductBody::is_gemm() const { return product->as<Gemm>() != nullptr; }

FoundProduct find_product(const Node& node) {
  const Graph* graph = node.as<Fused>() ? node.regions[0].get() : nullptr;
  if (graph && (graph->size() == 0 || !is_product(*graph->nodes().front())))
    return {{}, "the body does not start with a matrix product"};
  const Node& product = graph ? *graph->nodes().front() : node;
  const Values& inputs = graph ? graph->inputs : node.in;
  FoundProduct out{ProductBody{.product = &product}, {}};
  StepReader reader(inputs, *out.body);
  out.reason = read(product, inputs, *out.body, reader);
  if (out.reason.empty() && graph) {
    if (out.body->dtype != DType::f32)
      out.reason = "steps behind 16-bit products";
    else if (product.in[0]->type.shape->size() < 2 || product.in[1]->type.shape->size() < 2)
      out.reason = "a vector operand";
    else
      out.reason = reader.read_chain(*graph);
  }
  if (out.reason.empty() && out.body->steps.size() > 8) out.reason = "more than eight steps";
  if (!out.reason.empty()) out.body.reset();
  return out;
}

}  // namespace dais
