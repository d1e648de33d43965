#include <algorithm>
#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/attention/attention.h"
#include "ops/attention/core.h"
#include "ops/wide.h"

namespace dais {
namespace {

bool gated(const std::string& rule) { return rule == "gated" || rule == "gated_delta"; }
bool delta(const std::string& rule) { return rule == "delta" || rule == "gated_delta"; }

void infer(Inference& c) {
  const auto& attrs = c.attrs<LinearAttention>();
  c.set(0, c.dtype(0));
  const DType state = c.has(3) ? c.dtype(3) : c.dtype(0);
  c.set(1, state);
  c.require(attrs.q_num_heads > 0 && attrs.kv_num_heads > 0 &&
                attrs.q_num_heads % attrs.kv_num_heads == 0,
            "q_num_heads must be a positive multiple of kv_num_heads");
  if (!gated(attrs.update_rule) && !delta(attrs.update_rule) && attrs.update_rule != "linear")
    c.fail("update_rule '" + attrs.update_rule + "' is not known",
           "Use linear, gated, delta or gated_delta");
  c.require(c.has(4) == gated(attrs.update_rule),
            "decay belongs to the gated rules, and only them");
  c.require(c.has(5) == delta(attrs.update_rule), "beta belongs to the delta rules, and only them");
  c.require(!c.has(6) || delta(attrs.update_rule), "erase_gate belongs to the delta rules");
  const Dims &q = c.shape(0), &v = c.shape(2);
  c.require(q.size() == 3 && v.size() == 3, "query, key and value must have three axes");
  const Dim dk = floordiv(q[2], Dim(attrs.q_num_heads));
  const Dim dv = floordiv(v[2], Dim(attrs.kv_num_heads));
  c.set(0, c.dtype(0), {q[0], q[1], dv * Dim(attrs.q_num_heads)});
  c.set(1, state, {q[0], Dim(attrs.kv_num_heads), dk, dv});
}

struct Sizes {
  int64_t batch, length, q_heads, kv_heads, dk, dv;
};

Sizes sizes_of(const Call& c) {
  const auto& attrs = c.attrs<LinearAttention>();
  const Shape &q = c.in(0).shape(), &k = c.in(1).shape(), &v = c.in(2).shape();
  c.require(q.rank() == 3 && k.rank() == 3 && v.rank() == 3,
            "query, key and value must have three axes");
  Sizes s{q[0], q[1], attrs.q_num_heads, attrs.kv_num_heads, 0, 0};
  s.dk = q[2] / s.q_heads;
  s.dv = v[2] / s.kv_heads;
  c.require(q == Shape{s.batch, s.length, s.q_heads * s.dk} &&
                k == Shape{s.batch, s.length, s.kv_heads * s.dk} &&
                v == Shape{s.batch, s.length, s.kv_heads * s.dv},
            "query, key and value do not split into the heads stated");
  return s;
}

/// An optional gate [batch, length, width]: the value for (token, column), repeating columns.
class Gate {
 public:
  Gate(const Call& c, size_t i, const Sizes& s, std::initializer_list<int64_t> widths) {
    if (!c.has(i)) return;
    const Shape& shape = c.in(i).shape();
    bool fits = shape.rank() == 3 && shape[0] == s.batch && shape[1] == s.length;
    fits = fits && std::find(widths.begin(), widths.end(), shape[2]) != widths.end();
    c.require(fits, "decay, beta or erase_gate has an impossible shape");
    width_ = shape[2];
    values_ = to_wide<double>(c.in(i));
  }
  bool given() const { return !values_.empty(); }
  /// For element d of a head: one value per element, per head, or for all.
  double at(int64_t token, int64_t head, int64_t d, int64_t heads) const {
    const int64_t column = width_ == 1 ? 0 : width_ == heads ? head : head * (width_ / heads) + d;
    return values_[static_cast<size_t>(token * width_ + column)];
  }

 private:
  int64_t width_ = 0;
  std::vector<double> values_;
};

/// One token of one key/value head into its state [dk, dv].
void update(const Sizes& s, int64_t token, int64_t head, const Gate& decay, const Gate& beta,
            const Gate& erase, const double* k, const double* v, double* state,
            std::vector<double>& value) {
  if (decay.given())
    for (int64_t i = 0; i < s.dk; ++i) {
      const double factor = std::exp(decay.at(token, head, i, s.kv_heads));
      for (int64_t j = 0; j < s.dv; ++j) state[i * s.dv + j] *= factor;
    }
  value.assign(v, v + s.dv);
  if (beta.given()) {
    std::vector<double> recalled(static_cast<size_t>(s.dv), 0.0);
    for (int64_t i = 0; i < s.dk; ++i) {
      const double key = erase.given() ? k[i] * erase.at(token, head, i, s.kv_heads) : k[i];
      for (int64_t j = 0; j < s.dv; ++j)
        recalled[static_cast<size_t>(j)] += key * state[i * s.dv + j];
    }
    const double strength = beta.at(token, head, 0, s.kv_heads);
    for (size_t j = 0; j < value.size(); ++j) value[j] = strength * (value[j] - recalled[j]);
  }
  for (int64_t i = 0; i < s.dk; ++i)
    for (int64_t j = 0; j < s.dv; ++j) state[i * s.dv + j] += k[i] * value[static_cast<size_t>(j)];
}

void reference(Call& c) {
  const auto& attrs = c.attrs<LinearAttention>();
  const Sizes s = sizes_of(c);
  const WideView<double> q(c.in(0)), k(c.in(1)), v(c.in(2));
  const Gate decay(c, 4, s, {s.kv_heads, s.kv_heads * s.dk});
  const Gate beta(c, 5, s, {s.kv_heads, 1});
  const Gate erase(c, 6, s, {s.kv_heads * s.dk});
  const Shape shape{s.batch, s.kv_heads, s.dk, s.dv};
  std::vector<double> state(static_cast<size_t>(shape.elements()), 0.0);
  if (c.has(3)) {
    c.require(c.in(3).shape() == shape, "past_state must be [batch, kv_heads, dk, dv]");
    state = to_wide<double>(c.in(3));
  }
  const double scale = attrs.scale != 0 ? static_cast<double>(attrs.scale)
                                        : 1 / std::sqrt(static_cast<double>(s.dk));
  const int64_t group = s.q_heads / s.kv_heads;
  std::vector<double> y(static_cast<size_t>(s.batch * s.length * s.q_heads * s.dv), 0.0), value;
  for (int64_t token = 0; token < s.batch * s.length; ++token)
    for (int64_t h = 0; h < s.q_heads; ++h) {
      const int64_t kv = h / group, head = token * s.kv_heads + kv;
      double* held = state.data() + (token / s.length * s.kv_heads + kv) * s.dk * s.dv;
      if (h % group == 0)
        update(s, token, kv, decay, beta, erase, k.data() + head * s.dk, v.data() + head * s.dv,
               held, value);
      const double* query = q.data() + (token * s.q_heads + h) * s.dk;
      double* to = y.data() + (token * s.q_heads + h) * s.dv;
      for (int64_t i = 0; i < s.dk; ++i)
        for (int64_t j = 0; j < s.dv; ++j) to[j] += scale * query[i] * held[i * s.dv + j];
    }
  Tensor& out = c.out(0, {s.batch, s.length, s.q_heads * s.dv});
  store_wide(out, 0, y.data(), out.elements());
  if (c.outputs() > 1) store_wide(c.out(1, shape), 0, state.data(), shape.elements());
}

}  // namespace

const Op LinearAttention::op{
    .name = "linear_attention",
    .attrs = &AttrsOf<LinearAttention>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{"LinearAttention", 27}, {.type = "LinearAttention", .domain = "com.microsoft"}},
};

}  // namespace dais
