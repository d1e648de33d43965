#include <algorithm>
#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/attention/attention.h"
#include "ops/attention/core.h"
#include "ops/attention/rotary.h"
#include "ops/dims.h"
#include "ops/strided.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer(Inference& c) {
  const auto& attrs = c.attrs<GroupQueryAttention>();
  c.set(0, c.dtype(0));
  for (size_t i : {1, 2}) c.set(i, c.has(i + 2) ? c.dtype(i + 2) : c.dtype(0));
  c.require(
      attrs.num_heads > 0 && attrs.kv_num_heads > 0 && attrs.num_heads % attrs.kv_num_heads == 0,
      "num_heads must be a positive multiple of kv_num_heads");
  const Dims& q = c.shape(0);
  c.require(q.size() == 3, "query must have three axes");
  const int64_t parts = c.has(1) ? attrs.num_heads : attrs.num_heads + 2 * attrs.kv_num_heads;
  const Dim size = floordiv(q[2], Dim(parts));
  c.set(0, c.dtype(0), {q[0], q[1], size * Dim(attrs.num_heads)});
  const auto known = c.known(6);
  Dim length = known && known->size() == 1 ? (*known)[0] : c.fresh();
  if (c.has(3) && known) length = greater(c.shape(3).at(2), length);
  const Dims present{q[0], Dim(attrs.kv_num_heads), length, size};
  c.set(1, c.has(3) ? c.dtype(3) : c.dtype(0), present);
  c.set(2, c.has(4) ? c.dtype(4) : c.dtype(0), present);
}

struct Tokens {
  int64_t batch = 0, length = 0, size = 0;
  std::vector<double> q, k, v;  // [batch, length, heads, size]
};

Tokens load_tokens(const Call& c, const GroupQueryAttention& attrs) {
  const Tensor& query = c.in(0);
  c.require(query.rank() == 3, "query must have three axes");
  Tokens out{.batch = query.shape()[0], .length = query.shape()[1], .q = {}, .k = {}, .v = {}};
  const int64_t heads = attrs.num_heads, kv = attrs.kv_num_heads;
  if (c.has(1)) {
    out.size = query.shape()[2] / heads;
    const Shape wanted{out.batch, out.length, kv * out.size};
    c.require(query.shape()[2] == heads * out.size && c.in(1).shape() == wanted &&
                  c.in(2).shape() == wanted,
              "query, key and value must be [batch, length, heads * size]");
    out.q = to_wide<double>(query);
    out.k = to_wide<double>(c.in(1));
    out.v = to_wide<double>(c.in(2));
    return out;
  }
  const int64_t parts = heads + 2 * kv;
  c.require(query.shape()[2] % parts == 0, "packed query, key and value do not split by heads");
  out.size = query.shape()[2] / parts;
  const WideView<double> all(query);
  const auto take = [&](int64_t first, int64_t count) {
    std::vector<double> part;
    for (int64_t token = 0; token < out.batch * out.length; ++token) {
      const double* from = all.data() + (token * parts + first) * out.size;
      part.insert(part.end(), from, from + count * out.size);
    }
    return part;
  };
  out.q = take(0, heads);
  out.k = take(heads, kv);
  out.v = take(heads + kv, kv);
  return out;
}

/// Tokens before this call, for each example.
std::vector<int64_t> past_lengths(const Call& c, const Tokens& tokens, int64_t total) {
  std::vector<int64_t> out = c.in(5).to_ints();
  c.require(std::ssize(out) == tokens.batch, "seqlens_k must have one number per example");
  const bool prompt = tokens.length == total;
  for (int64_t& length : out) {
    length = prompt ? 0 : length + 1 - tokens.length;
    c.require(length >= 0 && length + tokens.length <= total,
              "seqlens_k does not fit the query and total_sequence_length");
  }
  return out;
}

void rotate(const Call& c, const GroupQueryAttention& attrs, Tokens& tokens,
            const std::vector<int64_t>& past) {
  const Tensor &cos = c.in(7), &sin = c.in(8);
  c.require(cos.rank() == 2 && cos.shape() == sin.shape() && 2 * cos.shape()[1] <= tokens.size,
            "cos and sin must be [positions, half the rotated size]");
  const WideView<double> cosines(cos), sines(sin);
  const int64_t half = cos.shape()[1];
  const auto ids = c.has(9) ? c.in(9).to_ints() : std::vector<int64_t>{};
  c.require(ids.empty() || std::ssize(ids) == tokens.batch * tokens.length,
            "position_ids must be [batch, length]");
  const auto turn = [&](std::vector<double>& values, int64_t heads) {
    for (int64_t token = 0; token < tokens.batch * tokens.length; ++token) {
      const int64_t position =
          ids.empty() ? past[static_cast<size_t>(token / tokens.length)] + token % tokens.length
                      : ids[static_cast<size_t>(token)];
      c.require(position >= 0 && position < cos.shape()[0],
                "a position is outside the rotary tables");
      for (int64_t h = 0; h < heads; ++h)
        rotate_head(values.data() + (token * heads + h) * tokens.size, half,
                    attrs.rotary_interleaved, cosines.data() + position * half,
                    sines.data() + position * half);
    }
  };
  turn(tokens.q, attrs.num_heads);
  turn(tokens.k, attrs.kv_num_heads);
}

/// The cache with this call's tokens behind each example's past: [batch, heads, capacity, size].
std::vector<double> fill_cache(const Call& c, size_t input, const std::vector<double>& fresh,
                               const Tokens& tokens, int64_t heads, int64_t capacity,
                               const std::vector<int64_t>& past) {
  std::vector<double> out(static_cast<size_t>(tokens.batch * heads * capacity * tokens.size), 0.0);
  const int64_t line = capacity * tokens.size;
  if (c.has(input)) {
    const Shape& shape = c.in(input).shape();
    c.require(shape.rank() == 4 && shape[0] == tokens.batch && shape[1] == heads &&
                  shape[2] <= capacity && shape[3] == tokens.size,
              "past_key and past_value must be [batch, kv_heads, capacity, size]");
    const WideView<double> before(c.in(input));
    const int64_t old = shape[2] * tokens.size;
    for (int64_t i = 0; i < tokens.batch * heads; ++i)
      std::copy_n(before.data() + i * old, old, out.data() + i * line);
  }
  for (int64_t n = 0; n < tokens.batch; ++n)
    for (int64_t l = 0; l < tokens.length; ++l)
      for (int64_t h = 0; h < heads; ++h)
        std::copy_n(
            fresh.data() + ((n * tokens.length + l) * heads + h) * tokens.size, tokens.size,
            out.data() + (n * heads + h) * line + (past[static_cast<size_t>(n)] + l) * tokens.size);
  return out;
}

std::vector<double> sinks(const Call& c, const GroupQueryAttention& attrs) {
  if (c.has(11)) {
    c.require(c.in(11).elements() == attrs.num_heads, "head_sink must have one value per head");
    return to_wide<double>(c.in(11));
  }
  return std::vector<double>(attrs.smooth_softmax ? static_cast<size_t>(attrs.num_heads) : 0, 0.0);
}

AddMask mask_of(const Call& c, const GroupQueryAttention& attrs, const AttentionSizes& sizes,
                const std::vector<int64_t>& past) {
  Strides strides{};
  std::vector<double> bias;
  if (c.has(10)) {
    const Shape wanted{sizes.batch, sizes.q_heads, sizes.q_length, sizes.kv_length};
    c.require(c.in(10).rank() == 4 && broadcast(wanted, c.in(10).shape()) == wanted,
              "attention_bias does not broadcast to [batch, heads, length, total]");
    strides = broadcast_strides(c.in(10).shape(), wanted);
    bias = to_wide<double>(c.in(10));
  }
  const int64_t window = attrs.local_window_size;
  return [=, &sizes](int64_t batch, int64_t head, int64_t query, double* row) {
    const int64_t position = past[static_cast<size_t>(batch)] + query;
    const int64_t low = window >= 0 ? position - window : 0;
    const int64_t base = batch * strides[0] + head * strides[1] + query * strides[2];
    for (int64_t j = 0; j < sizes.kv_length; ++j) {
      if (j > position || j < low)
        row[j] = -INFINITY;
      else if (!bias.empty())
        row[j] = bias[static_cast<size_t>(base + j * strides[3])];
    }
  };
}

void reference(Call& c) {
  const auto& attrs = c.attrs<GroupQueryAttention>();
  Tokens tokens = load_tokens(c, attrs);
  c.require(c.in(6).elements() == 1, "total_sequence_length must be one number");
  const int64_t total = c.in(6).to_ints()[0];
  c.require(total >= tokens.length, "total_sequence_length is less than the query's length");
  const auto past = past_lengths(c, tokens, total);
  if (attrs.do_rotary) rotate(c, attrs, tokens, past);
  const int64_t held = c.has(3) && c.in(3).rank() == 4 ? c.in(3).shape()[2] : 0;
  const int64_t capacity = std::max(held, total);
  const int64_t kv = attrs.kv_num_heads;
  const Shape present{tokens.batch, kv, capacity, tokens.size};
  present.elements();  // throws when the caller's total is absurd
  const auto k = fill_cache(c, 3, tokens.k, tokens, kv, capacity, past);
  const auto v = fill_cache(c, 4, tokens.v, tokens, kv, capacity, past);
  AttentionSizes sizes{.batch = tokens.batch,
                       .q_heads = attrs.num_heads,
                       .kv_heads = kv,
                       .q_length = tokens.length,
                       .kv_length = total,
                       .kv_capacity = capacity,
                       .head = tokens.size,
                       .v_head = tokens.size};
  sizes.scale = attrs.scale != 0 ? static_cast<double>(attrs.scale)
                                 : 1 / std::sqrt(static_cast<double>(tokens.size));
  sizes.softcap = static_cast<double>(attrs.softcap);
  const auto q = swap_heads(tokens.q, tokens.batch, tokens.length, attrs.num_heads, tokens.size);
  const AttentionResult result =
      attend(sizes, q, k, v, mask_of(c, attrs, sizes, past), sinks(c, attrs));
  const auto y = swap_heads(result.y, tokens.batch, attrs.num_heads, tokens.length, tokens.size);
  Tensor& out = c.out(0, {tokens.batch, tokens.length, attrs.num_heads * tokens.size});
  store_wide(out, 0, y.data(), out.elements());
  if (c.outputs() > 1) store_wide(c.out(1, present), 0, k.data(), std::ssize(k));
  if (c.outputs() > 2) store_wide(c.out(2, present), 0, v.data(), std::ssize(v));
}

Values import_contrib(OnnxImport& c) {
  if (c.integer("kv_cache_bit_width", 0) != 0) c.fail("quantised caches are not supported");
  if (c.outputs > 3) c.fail("the scores (output 3) are not supported");
  auto attrs = c.attrs<GroupQueryAttention>();
  return c.emit(attrs, c.in);
}

Cost cost(const Node& node) {
  const Type &y = node.outs[0]->type, &k = node.outs.size() > 1 ? node.outs[1]->type : y;
  if (!y.shape || !k.shape || k.shape->size() != 4) return {};
  const auto outputs = product(*y.shape, 0, y.shape->size()).constant();
  const auto total = (*k.shape)[2].constant();
  if (!outputs || !total) return {};
  return {.flops = 4 * static_cast<double>(*outputs) * static_cast<double>(*total)};
}

}  // namespace

const Op GroupQueryAttention::op{
    .name = "group_query_attention",
    .attrs = &AttrsOf<GroupQueryAttention>::info,
    .infer = infer,
    .reference = reference,
    .cost = cost,
    .onnx = {{.type = "GroupQueryAttention",
              .domain = "com.microsoft",
              .import = import_contrib,
              .export_as = export_plainly}},
};

}  // namespace dais
