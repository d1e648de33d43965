#include "ops/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/attention/contrib.h"
#include "ops/attention/core.h"
#include "ops/strided.h"
#include "ops/wide.h"

namespace dais {
namespace {

/// Heads, length and size of each head of a 3-d or 4-d input.
template <typename Size>
struct Heads {
  Size heads, length, size;
};

Heads<Dim> heads_of(const Inference& c, const Dims& shape, int64_t heads, const char* attribute) {
  if (shape.size() == 4) return {shape[1], shape[2], shape[3]};
  if (shape.size() != 3) c.fail("Q, K and V must have three or four axes");
  if (heads <= 0)
    c.fail(std::string("attribute '") + attribute + "' is needed for inputs of three axes");
  return {heads, shape[1], floordiv(shape[2], Dim(heads))};
}

void infer(Inference& c) {
  const auto& attrs = c.attrs<Attention>();
  const DType kv = c.dtype(1);
  c.set(0, c.dtype(0));
  c.set(1, kv);
  c.set(2, c.dtype(2));
  c.set(3, c.dtype(0));
  c.require(attrs.qk_matmul_output_mode >= 0 && attrs.qk_matmul_output_mode <= 3,
            "qk_matmul_output_mode must be 0 to 3");
  c.require(c.has(4) == c.has(5), "past_key and past_value come together");
  const Dims& shape = c.shape(0);
  const auto q = heads_of(c, shape, attrs.q_num_heads, "q_num_heads");
  const auto k = heads_of(c, c.shape(1), attrs.kv_num_heads, "kv_num_heads");
  const auto v = heads_of(c, c.shape(2), attrs.kv_num_heads, "kv_num_heads");
  if (q.heads.is_constant() && k.heads.is_constant() &&
      (k.heads.is(0) || *q.heads.constant() % *k.heads.constant() != 0))
    c.fail("the number of query heads must be a multiple of that of key heads");
  if (shape.size() == 4)
    c.set(0, c.dtype(0), {shape[0], q.heads, q.length, v.size});
  else
    c.set(0, c.dtype(0), {shape[0], q.length, q.heads * v.size});
  const Dim past = c.has(4) ? c.shape(4).at(2) : Dim(0);
  const Dim total = past + k.length;
  c.set(1, kv, {shape[0], k.heads, total, k.size});
  c.set(2, c.dtype(2), {shape[0], k.heads, total, v.size});
  c.set(3, c.dtype(0), {shape[0], q.heads, q.length, total});
}

struct Loaded {
  int64_t batch = 0, heads = 0, length = 0, size = 0;
  std::vector<double> values;  // [batch, heads, length, size]
};

Loaded load_heads(const Call& c, const Tensor& tensor, int64_t heads) {
  const Shape& shape = tensor.shape();
  Loaded out;
  out.batch = shape.rank() ? shape[0] : 0;
  if (shape.rank() == 4) {
    out.heads = shape[1], out.length = shape[2], out.size = shape[3];
    out.values = to_wide<double>(tensor);
    return out;
  }
  c.require(shape.rank() == 3 && heads > 0 && shape[2] % heads == 0,
            "the last axis of Q, K and V must be a multiple of the number of heads");
  out.heads = heads, out.length = shape[1], out.size = shape[2] / heads;
  out.values = swap_heads(to_wide<double>(tensor), out.batch, out.length, heads, out.size);
  return out;
}

/// Puts the past in front of each head's keys or values.
void prepend(const Call& c, const Tensor& past, Loaded& now) {
  const Shape& shape = past.shape();
  c.require(
      shape.rank() == 4 && shape[0] == now.batch && shape[1] == now.heads && shape[3] == now.size,
      "past_key and past_value must be [batch, kv_heads, past, head size]");
  const WideView<double> before(past);
  const int64_t old = shape[2] * now.size, fresh = now.length * now.size;
  std::vector<double> all(static_cast<size_t>(now.batch * now.heads * (old + fresh)));
  for (int64_t line = 0; line < now.batch * now.heads; ++line) {
    std::copy_n(before.data() + line * old, old, all.data() + line * (old + fresh));
    std::copy_n(now.values.data() + line * fresh, fresh, all.data() + line * (old + fresh) + old);
  }
  now.values = std::move(all);
  now.length += shape[2];
}

/// The mask input, the causal limit and the valid lengths, as one function.
class Mask {
 public:
  Mask(const Call& c, const AttentionSizes& sizes, int64_t past) : sizes_(sizes), past_(past) {
    causal_ = c.attrs<Attention>().is_causal;
    if (c.has(6)) {
      valid_ = c.in(6).to_ints();
      c.require(std::ssize(valid_) == sizes.batch, "nonpad_kv_seqlen must have one per example");
      has_past_ = c.has(4);
    }
    if (!c.has(3)) return;
    const Tensor& mask = c.in(3);
    c.require(mask.rank() >= 1 && mask.rank() <= 4, "the mask must have one to four axes");
    width_ = mask.shape().back();
    c.require(width_ <= sizes.kv_length, "the mask is longer than keys and past");
    values_ = to_wide<double>(mask);
    if (mask.dtype() == DType::boolean)
      for (double& value : values_) value = value != 0 ? 0 : -INFINITY;
    Shape wanted{sizes.batch, sizes.q_heads, sizes.q_length, width_};
    c.require(broadcast(wanted, mask.shape()) == wanted,
              "the mask does not broadcast to [batch, heads, queries, keys]");
    strides_ = broadcast_strides(mask.shape(), wanted);
    strides_[3] = 1;
  }

  void operator()(int64_t batch, int64_t head, int64_t query, double* row) const {
    if (!values_.empty() || width_ >= 0) {
      const double* from =
          values_.data() + batch * strides_[0] + head * strides_[1] + query * strides_[2];
      for (int64_t j = 0; j < sizes_.kv_length; ++j) row[j] = j < width_ ? from[j] : -INFINITY;
    }
    int64_t end = sizes_.kv_length;
    if (!valid_.empty()) end = std::min(end, valid_[static_cast<size_t>(batch)]);
    if (causal_) {
      const bool aligned_to_valid = !valid_.empty() && !has_past_;
      const int64_t offset =
          aligned_to_valid ? valid_[static_cast<size_t>(batch)] - sizes_.q_length : past_;
      end = std::min(end, query + offset + 1);
    }
    for (int64_t j = std::max<int64_t>(end, 0); j < sizes_.kv_length; ++j) row[j] = -INFINITY;
  }

 private:
  const AttentionSizes& sizes_;
  int64_t past_ = 0, width_ = -1;
  bool causal_ = false, has_past_ = false;
  std::vector<int64_t> valid_;
  std::vector<double> values_;
  Strides strides_{};
};

void store_present(Call& c, size_t i, const Loaded& loaded) {
  if (i >= c.outputs()) return;
  Tensor& to = c.out(i, {loaded.batch, loaded.heads, loaded.length, loaded.size});
  store_wide(to, 0, loaded.values.data(), to.elements());
}

void reference(Call& c) {
  const auto& attrs = c.attrs<Attention>();
  const Loaded q = load_heads(c, c.in(0), attrs.q_num_heads);
  Loaded k = load_heads(c, c.in(1), attrs.kv_num_heads);
  Loaded v = load_heads(c, c.in(2), attrs.kv_num_heads);
  int64_t past = 0;
  if (c.has(4)) {
    prepend(c, c.in(4), k);
    prepend(c, c.in(5), v);
    past = c.in(4).shape()[2];
  }
  c.require(q.batch == k.batch && q.batch == v.batch && q.size == k.size && k.length == v.length &&
                k.heads == v.heads,
            "the sizes of Q, K and V do not match");
  c.require(k.heads > 0 && q.heads % k.heads == 0,
            "the number of query heads must be a multiple of that of key heads");
  AttentionSizes sizes{.batch = q.batch,
                       .q_heads = q.heads,
                       .kv_heads = k.heads,
                       .q_length = q.length,
                       .kv_length = k.length,
                       .kv_capacity = k.length,
                       .head = q.size,
                       .v_head = v.size};
  sizes.scale =
      attrs.scale ? static_cast<double>(*attrs.scale) : 1 / std::sqrt(static_cast<double>(q.size));
  sizes.softcap = static_cast<double>(attrs.softcap);
  const Mask mask(c, sizes, past);
  const auto stage = static_cast<ScoreStage>(attrs.qk_matmul_output_mode);
  const bool scores = c.outputs() > 3;
  AttentionResult result =
      attend(sizes, q.values, k.values, v.values, std::cref(mask), {}, scores ? &stage : nullptr);
  const bool joined = c.in(0).rank() == 3;
  Tensor& y = joined ? c.out(0, {q.batch, q.length, q.heads * v.size})
                     : c.out(0, {q.batch, q.heads, q.length, v.size});
  if (joined) result.y = swap_heads(result.y, q.batch, q.heads, q.length, v.size);
  store_wide(y, 0, result.y.data(), y.elements());
  store_present(c, 1, k);
  store_present(c, 2, v);
  if (!scores) return;
  Tensor& seen = c.out(3, {q.batch, q.heads, q.length, k.length});
  store_wide(seen, 0, result.scores.data(), seen.elements());
}

Cost cost(const Node& node) {
  const Type& y = node.outs[0]->type;
  const Type& keys = node.in[1]->type;
  if (!y.shape || !keys.shape || keys.shape->size() < 3) return {};
  const auto outputs = product(*y.shape, 0, y.shape->size()).constant();
  Dim total = (*keys.shape)[keys.shape->size() - 2];
  if (node.has(4) && node.in[4]->type.shape) total = total + node.in[4]->type.shape->at(2);
  if (!outputs || !total.is_constant()) return {};
  return {.flops = 4 * static_cast<double>(*outputs) * static_cast<double>(*total.constant())};
}

}  // namespace

const Op Attention::op{
    .name = "attention",
    .attrs = &AttrsOf<Attention>::info,
    .infer = infer,
    .reference = reference,
    .decompose = decompose_attention,
    .cost = cost,
    .onnx = {{"Attention", 23}},
};

namespace ops {
void define_attention(OpRegistry& registry) {
  for (const Op* op :
       {&Attention::op, &RotaryEmbedding::op, &GroupQueryAttention::op, &LinearAttention::op})
    registry.add(*op);
  define_attention_contrib(registry);
  define_flex_attention(registry);
}
}  // namespace ops
}  // namespace dais
