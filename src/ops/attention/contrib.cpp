#include "ops/attention/contrib.h"

#include "ir/onnx_import.h"
#include "ops/attention/attention.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/split/split.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

/// Builds one Attention node from the inputs that the fused operators share.
class Builder {
 public:
  explicit Builder(OnnxImport& import) : c(import), heads(import.integer("num_heads", 0)) {
    if (heads < 1) c.fail("num_heads must be positive");
    for (const std::string_view name : {"do_rotary", "past_present_share_buffer"})
      if (c.integer(name, 0) != 0) c.fail("attribute '" + std::string(name) + "' is not supported");
  }

  Value* unsqueeze(Value* x, std::vector<int64_t> axes) {
    return c.graph.add(Unsqueeze{}, {x, c.ints(axes)});
  }

  Values split(Value* x, int64_t axis, const std::vector<int64_t>& sizes) {
    return c.graph.add_node(Split{.axis = axis}, {x, c.ints(sizes)}, sizes.size()).outs;
  }

  /// [N, L, heads * size] to [N, heads, L, size].
  Value* split_heads(Value* x) {
    const std::vector<int64_t> shape{0, 0, heads, -1};
    return c.graph.add(Transpose{.perm = {0, 2, 1, 3}},
                       {c.graph.add(Reshape{}, {x, c.ints(shape)})});
  }

  Value* join_heads(Value* x) {
    const std::vector<int64_t> shape{0, 0, -1};
    return c.graph.add(Reshape{},
                       {c.graph.add(Transpose{.perm = {0, 2, 1, 3}}, {x}), c.ints(shape)});
  }

  /// A 0/1 mask [N, total] or [N, L, total] as something to add; or lengths [N].
  void hide(Value* mask, DType dtype) {
    if (!mask) return;
    if (!mask->type.shape) c.fail("the rank of the mask is unknown");
    const size_t rank = mask->type.shape->size();
    if (rank == 1) {
      const auto& batch = q->type.shape;
      const Dim& count = (*mask->type.shape)[0];
      if (causal || (batch && count.is_constant() && !(count == (*batch)[0])))
        c.fail("a mask of lengths is supported without a causal limit, one per example, only");
      lengths = c.graph.add(Cast{.to = DType::i64}, {mask});
      return;
    }
    if (rank != 2 && rank != 3) c.fail("the mask must have one to three axes");
    Value* seen = c.graph.add(Cast{.to = dtype}, {mask});
    Value* hidden = c.graph.add(Sub{}, {c.scalar_like(1, seen), seen});
    const auto filter = static_cast<double>(c.number("mask_filter_value", -10000));
    add(unsqueeze(c.graph.add(Mul{}, {hidden, c.scalar_like(filter, seen)}),
                  rank == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1}));
  }

  void add(Value* addend) {
    if (addend) bias = bias ? c.graph.add(Add{}, {bias, addend}) : addend;
  }

  /// Outputs of the Attention node: Y, and with a cache the present keys and values.
  Values attend(size_t outputs) {
    Attention attrs{.is_causal = causal, .kv_num_heads = heads, .q_num_heads = heads};
    if (const float scale = c.number("scale", 0); scale != 0) attrs.scale = scale;
    return c.emit(attrs, {q, k, v, bias, past_key, past_value, lengths}, outputs);
  }

  OnnxImport& c;
  int64_t heads;
  bool causal = false;
  Value *q = nullptr, *k = nullptr, *v = nullptr;
  Value *bias = nullptr, *past_key = nullptr, *past_value = nullptr, *lengths = nullptr;
};

/// What remains once queries, keys and values lie side by side: mask, past [2, N, heads, P, size].
Values finish_packed(Builder& b, Value* packed, Value* mask, Value* past, Value* bias) {
  OnnxImport& c = b.c;
  b.causal = c.integer("unidirectional", 0) != 0;
  auto sizes = c.integers("qkv_hidden_sizes");
  if (sizes.empty()) {
    const auto width = packed->type.shape && packed->type.shape->size() == 3
                           ? packed->type.shape->back().constant()
                           : std::nullopt;
    if (!width) c.fail("the width of the weights is unknown");
    sizes.assign(3, *width / 3);
  }
  if (sizes.size() != 3) c.fail("qkv_hidden_sizes must have three entries");
  const Values parts = b.split(packed, 2, sizes);
  b.q = parts[0], b.k = parts[1], b.v = parts[2];
  b.hide(mask, packed->type.dtype);
  b.add(bias);
  const std::vector<int64_t> first{0};
  if (past) {
    const Values halves = b.split(past, 0, {1, 1});
    b.past_key = c.graph.add(Squeeze{}, {halves[0], c.ints(first)});
    b.past_value = c.graph.add(Squeeze{}, {halves[1], c.ints(first)});
  }
  const bool present = c.outputs > 1;
  Values out = b.attend(present ? 3 : 1);
  if (!present) return out;
  return {out[0],
          c.graph.add(Concat{.axis = 0}, {b.unsqueeze(out[1], first), b.unsqueeze(out[2], first)})};
}

/// Inputs: input, weights, bias?, mask?, past?, attention_bias?.
Values import_attention(OnnxImport& c) {
  Builder b(c);
  Value* packed = c.graph.add(MatMul{}, {c.input(0), c.input(1)});
  if (c.has(2)) packed = c.graph.add(Add{}, {packed, c.input(2)});
  return finish_packed(b, packed, c.input(3), c.input(4), c.input(5));
}

/// Inputs: input, weights, bias, input_scale, weight_scale, mask?, input_zero?, weight_zero?,
/// past?.
Values import_quantised(OnnxImport& c) {
  Builder b(c);
  Value* packed = c.graph.add(
      MatMulIntegerToFloat{},
      {c.input(0), c.input(1), c.input(3), c.input(4), c.input(6), c.input(7), c.input(2)});
  return finish_packed(b, packed, c.input(5), c.input(8), nullptr);
}

int64_t width_of(OnnxImport& c, const Value* x) {
  const auto width = x && x->type.shape && x->type.shape->size() == 3
                         ? x->type.shape->back().constant()
                         : std::nullopt;
  if (!width) c.fail("bias needs query, key and value of three axes and known width");
  return *width;
}

size_t rank_of(OnnxImport& c, const Value* x) {
  if (!x || !x->type.shape) c.fail("the rank of query, key or value is unknown");
  return x->type.shape->size();
}

/// Inputs: query, key?, value?, bias?, key_padding_mask?, attention_bias?, past_key?, past_value?.
/// Query may hold all three, [N, L, heads, 3, size], and key both others.
Values import_multi_head(OnnxImport& c) {
  Builder b(c);
  b.causal = c.integer("unidirectional", 0) != 0;
  b.q = c.input(0), b.k = c.input(1), b.v = c.input(2);
  const std::vector<int64_t> third{3};
  const auto unpack = [&](Value* packed, const std::vector<int64_t>& sizes) {
    Values parts = b.split(packed, 3, sizes);
    for (Value*& part : parts)
      part = c.graph.add(Transpose{.perm = {0, 2, 1, 3}},
                         {c.graph.add(Squeeze{}, {part, c.ints(third)})});
    return parts;
  };
  if (!b.k && rank_of(c, b.q) == 5) {
    const Values parts = unpack(b.q, {1, 1, 1});
    b.q = parts[0], b.k = parts[1], b.v = parts[2];
  } else if (!b.v && rank_of(c, b.k) == 5) {
    const Values parts = unpack(b.k, {1, 1});
    b.k = parts[0], b.v = parts[1];
  }
  if (c.has(3)) {
    const Values parts =
        b.split(c.input(3), 0, {width_of(c, b.q), width_of(c, b.k), width_of(c, b.v)});
    b.q = c.graph.add(Add{}, {b.q, parts[0]});
    b.k = c.graph.add(Add{}, {b.k, parts[1]});
    b.v = c.graph.add(Add{}, {b.v, parts[2]});
  }
  const bool split = rank_of(c, b.k) == 4;
  if (split && rank_of(c, b.q) == 3) b.q = b.split_heads(b.q);
  b.hide(c.input(4), b.q->type.dtype);
  b.add(c.input(5));
  b.past_key = c.input(6);
  b.past_value = c.input(7);
  Values out = b.attend(std::min<size_t>(c.outputs, 3));
  if (split) out[0] = b.join_heads(out[0]);
  return out;
}

Values import_swiglu(OnnxImport& c) {
  Value* gate = c.graph.add(Swish{.alpha = c.number("alpha", 1)}, {c.input(0)});
  return c.emit(Mul{}, {gate, c.input(1)});
}

}  // namespace

void define_attention_contrib(OpRegistry& registry) {
  const auto rule = [&](std::string_view type, Values (*import)(OnnxImport&)) {
    registry.add_rule({.type = type, .domain = "com.microsoft", .import = import});
  };
  rule("Attention", import_attention);
  rule("QAttention", import_quantised);
  rule("MultiHeadAttention", import_multi_head);
  registry.add_rule({.type = "SwiGLU", .since = 28, .import = import_swiglu});
}

}  // namespace dais
