#include "ops/qlinear/conv_body_cpu.h"

#include <algorithm>
#include <cmath>

#include "ops/conv/conv.h"
#include "ops/elementwise/elementwise.h"
#include "ops/fused/fused.h"
#include "ops/qlinear/bytes_cpu.h"
#include "ops/quantize/quantize.h"

namespace dais {
namespace {

FoundByteConv refuse(std::string reason) { return {std::nullopt, std::move(reason)}; }

const Tensor* constant(const Node& node, size_t i) {
  return node.has(i) ? node.in[i]->constant() : nullptr;
}
bool one_constant(const Node& node, size_t i) {
  const Tensor* tensor = constant(node, i);
  return tensor && tensor->elements() == 1;
}
float number(const Node& node, size_t i) {
  return static_cast<float>(constant(node, i)->to_double());
}

template <typename S>
std::string read_window(const S& attrs, ByteConv& out) {
  const std::vector<int64_t> kernel(out.w->shape().begin() + 2, out.w->shape().end());
  if (kernel.empty() || kernel.size() > 3) return "the number of spatial axes";
  out.group = attrs.group;
  out.channels_last = attrs.channels_last;
  return fill_window(out.window, kernel, attrs.strides, attrs.dilations, attrs.pads, attrs.auto_pad,
                     false);
}

/// Bounds and zero point of a result of that type.
void set_bounds(DType dtype, int32_t zero, float& low, float& high) {
  low = static_cast<float>(lowest_byte(dtype) - zero);
  high = static_cast<float>(highest_byte(dtype) - zero);
}

FoundByteConv from_qlinear(const Node& node) {
  for (size_t i = 1; i < node.in.size(); ++i)
    if (node.in[i] && !node.in[i]->constant()) return refuse("weights or scales are computed");
  for (const size_t i : {size_t{1}, size_t{2}, size_t{6}, size_t{7}})
    if (!one_constant(node, i)) return refuse("several scales or zero points of activations");
  ByteConv out;
  out.x_type = node.in[0]->type.dtype;
  out.y_type = node.outs[0]->type.dtype;
  out.w = constant(node, 3);
  out.w_scales = constant(node, 4);
  out.w_zeros = constant(node, 5);
  out.bias = constant(node, 8);
  if (!is_byte(out.x_type) || !is_byte(out.y_type) || !is_byte(out.w->dtype()))
    return refuse("element types other than u8 and i8");
  if (out.w_scales->dtype() != DType::f32 || constant(node, 1)->dtype() != DType::f32)
    return refuse("scales that are not f32");
  const int64_t channels = out.w->shape()[0];
  for (const Tensor* tensor : {out.w_scales, out.w_zeros, out.bias})
    if (tensor && tensor->elements() != channels && (tensor == out.bias || tensor->elements() != 1))
      return refuse("scales, zero points or bias do not match the channels");
  out.x_zero = static_cast<int32_t>(number(node, 2));
  out.x_scale = number(node, 1);
  out.y_scale = number(node, 6);
  out.store.zero = static_cast<int32_t>(number(node, 7));
  set_bounds(out.y_type, out.store.zero, out.store.low, out.store.high);
  const std::string problem = read_window(*node.as<QLinearConv>(), out);
  if (!problem.empty()) return refuse(problem);
  return {std::move(out), {}};
}

FoundByteConv from_integer(const Node& node) {
  ByteConv out;
  out.w = constant(node, 1);
  out.w_zeros = constant(node, 3);
  if (!out.w) return refuse("the weights are computed");
  if (node.has(2) && !one_constant(node, 2)) return refuse("x_zero is computed");
  if (node.has(3) && !out.w_zeros) return refuse("w_zero is computed");
  out.x_type = node.in[0]->type.dtype;
  if (!is_byte(out.x_type) || !is_byte(out.w->dtype()))
    return refuse("element types other than u8 and i8");
  if (out.w_zeros && out.w_zeros->elements() != 1 && out.w_zeros->elements() != out.w->shape()[0])
    return refuse("zero points do not match the channels");
  out.x_zero = node.has(2) ? static_cast<int32_t>(number(node, 2)) : 0;
  const std::string problem = read_window(*node.as<ConvInteger>(), out);
  if (!problem.empty()) return refuse(problem);
  return {std::move(out), {}};
}

bool per_tensor(const Node& node) {
  return one_constant(node, 1) && constant(node, 1)->dtype() == DType::f32 &&
         (!node.has(2) || one_constant(node, 2));
}
int32_t zero_of(const Node& node) {
  return node.has(2) ? static_cast<int32_t>(number(node, 2)) : 0;
}
const Node* made_by(const Value* value, const Op& op) {
  const Node* node = value ? value->producer() : nullptr;
  return node && node->op == &op ? node : nullptr;
}

/// Bounds that a Relu or Clip before the last rounding sets.
bool apply_limit(const Node& limit, float scale, cpu::ByteGemm& store) {
  const auto raise = [&](float to) {
    store.sum_low = std::max(store.sum_low, std::nearbyint(to / scale));
  };
  if (limit.as<Relu>()) {
    raise(0);
    return true;
  }
  for (size_t i = 1; i < limit.in.size(); ++i)
    if (limit.has(i) && !one_constant(limit, i)) return false;
  if (limit.has(1)) raise(number(limit, 1));
  if (limit.has(2))
    store.sum_high = std::min(store.sum_high, std::nearbyint(number(limit, 2) / scale));
  return store.sum_low <= store.sum_high;
}

FoundByteConv from_body(const Graph& body) {
  const Node* last =
      body.outputs.size() == 1 ? made_by(body.outputs[0], QuantizeLinear::op) : nullptr;
  if (!last || !per_tensor(*last)) return refuse("the body does not end in a quantisation");
  const Node* limit = made_by(last->in[0], Relu::op);
  if (!limit) limit = made_by(last->in[0], Clip::op);
  const Node* sum = made_by(limit ? limit->in[0] : last->in[0], Add::op);
  if (!sum || body.size() != (limit ? 6U : 5U)) return refuse("the body is no residual sum");
  const Node* sides[] = {made_by(sum->in[0], DequantizeLinear::op),
                         made_by(sum->in[1], DequantizeLinear::op)};
  if (!sides[0] || !sides[1]) return refuse("an addend is not quantised");
  if (!made_by(sides[0]->in[0], QLinearConv::op)) std::swap(sides[0], sides[1]);
  const Node* conv = made_by(sides[0]->in[0], QLinearConv::op);
  const Value* other = sides[1]->in[0];
  if (!conv || other->producer() || other->constant()) return refuse("no convolution is added to");
  if (!per_tensor(*sides[0]) || !per_tensor(*sides[1])) return refuse("scales of single channels");
  FoundByteConv found = from_qlinear(*conv);
  if (!found.conv) return found;
  ByteConv& out = *found.conv;
  if (zero_of(*sides[0]) != out.store.zero)
    return refuse("another zero point is read than written");
  const DType type = last->outs[0]->type.dtype;
  if (!is_byte(other->type.dtype) || !is_byte(type)) return refuse("types other than u8 and i8");
  const auto input_of = [&](const Value* value) {
    for (size_t i = 0; i < body.inputs.size(); ++i)
      if (body.inputs[i] == value) return static_cast<int>(i);
    return -1;
  };
  out.x = input_of(conv->in[0]);
  out.residual = input_of(other);
  if (out.x < 0 || out.residual < 0) return refuse("an operand is no input of the body");
  const float scale = number(*last, 1);
  cpu::ByteGemm& store = out.store;
  store.own_scale = number(*sides[0], 1) / scale;
  store.residual_scale = number(*sides[1], 1) / scale;
  store.residual_zero = zero_of(*sides[1]);
  store.residual_signed = other->type.dtype == DType::i8;
  store.zero = zero_of(*last);
  set_bounds(type, store.zero, store.sum_low, store.sum_high);
  if (limit && !apply_limit(*limit, scale, store)) return refuse("limits that are computed");
  out.y_type = type;
  return found;
}

}  // namespace

int32_t ByteConv::w_zero(int64_t m) const {
  const int32_t moved = w->dtype() == DType::u8 ? 128 : 0;
  if (!w_zeros) return -moved;
  const uint8_t byte = w_zeros->storage<uint8_t>()[w_zeros->elements() == 1 ? 0 : m];
  return byte_value(byte, w_zeros->dtype()) - moved;
}

bool ByteConv::has_w_zeros() const {
  for (int64_t m = 0; m < w->shape()[0]; ++m)
    if (w_zero(m) != 0) return true;
  return false;
}

int32_t ByteConv::bias_of(int64_t m) const { return bias ? bias->storage<int32_t>()[m] : 0; }

float ByteConv::scale_of(int64_t m) const {
  if (!w_scales) return 1;
  const float scale = w_scales->storage<float>()[w_scales->elements() == 1 ? 0 : m];
  return x_scale * scale / y_scale;
}

void ByteConv::fill_store(cpu::ByteGemm& gemm) const {
  gemm.zero = store.zero;
  gemm.low = store.low;
  gemm.high = store.high;
  gemm.own_scale = store.own_scale;
  gemm.residual_scale = store.residual_scale;
  gemm.residual_zero = store.residual_zero;
  gemm.residual_signed = store.residual_signed;
  gemm.sum_low = store.sum_low;
  gemm.sum_high = store.sum_high;
}

FoundByteConv find_byte_conv(const Node& node) {
  FoundByteConv found;
  if (node.as<QLinearConv>())
    found = from_qlinear(node);
  else if (node.as<ConvInteger>())
    found = from_integer(node);
  else if (!node.regions.empty())
    found = from_body(*node.regions[0]);
  if (!found.conv) return found.reason.empty() ? refuse("no convolution") : found;
  const Value* x = node.in[static_cast<size_t>(found.conv->x)];
  if (!x->type.ranked() || x->type.shape->size() != found.conv->w->rank())
    return refuse("the rank of X");
  return found;
}

}  // namespace dais
