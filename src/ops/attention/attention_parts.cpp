// Attention in the operators of early opsets: products, masks as sums, softmax.
#include <cmath>

#include "ops/attention/attention.h"
#include "ops/concat/concat.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gather/gather.h"
#include "ops/generate/generate.h"
#include "ops/matmul/matmul.h"
#include "ops/parts.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/shape/shape.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

class AttentionParts {
 public:
  AttentionParts(Graph& graph, const Node& node)
      : graph_(graph), node_(node), attrs_(*node.as<Attention>()) {}

  /// Whether inference knows enough, and nothing is asked that early operators cannot say.
  bool possible() const {
    for (size_t i = 0; i < 3; ++i)
      if (!node_.in[i]->type.ranked()) return false;
    for (const Value* out : node_.outs)
      if (!out->type.ranked()) return false;
    if (node_.has(6) && !node_.in[6]->type.ranked()) return false;
    if (!size_of_head().is_constant() || !kv_heads().is_constant() || !q_heads().is_constant())
      return false;
    return !node_.has(3) || mask_covers_all_keys();
  }

  Values build() {
    const DType dtype = wide_type(*node_.in[0]);
    Value* q = split(0, attrs_.q_num_heads);
    Value* k = with_past(split(1, attrs_.kv_num_heads), 4);
    Value* v = with_past(split(2, attrs_.kv_num_heads), 5);
    std::vector<Value*> stages;
    Value* keys = turned(as_type(graph_, repeated(k), dtype), {0, 1, 3, 2});
    Value* scores = graph_.add(MatMul{}, {as_type(graph_, q, dtype), keys});
    stages.push_back(scores = graph_.add(Mul{}, {scores, add_scalar(graph_, scale(), dtype)}));
    stages.push_back(scores = capped(scores));
    stages.push_back(scores = masked(scores, k));
    Value* weights = softmax(scores);
    stages.push_back(weights);
    Value* y = graph_.add(MatMul{}, {weights, as_type(graph_, repeated(valid_only(v)), dtype)});
    Values out{as_type(graph_, joined(y), node_.in[0]->type.dtype), k, v};
    if (node_.outs.size() > 3)
      out.push_back(as_type(graph_, stages[static_cast<size_t>(attrs_.qk_matmul_output_mode)],
                            node_.in[0]->type.dtype));
    out.resize(node_.outs.size());
    return out;
  }

 private:
  const Dims& dims(size_t i) const { return *node_.in[i]->type.shape; }
  Dim heads_of(size_t i, int64_t given) const {
    return dims(i).size() == 4 ? dims(i)[1] : Dim(given);
  }
  Dim q_heads() const { return heads_of(0, attrs_.q_num_heads); }
  Dim kv_heads() const { return heads_of(1, attrs_.kv_num_heads); }
  Dim size_of_head() const {
    return dims(0).size() == 4 ? dims(0)[3] : floordiv(dims(0)[2], Dim(attrs_.q_num_heads));
  }
  /// A shorter mask is continued with "masked", which takes sizes that are known only later.
  bool mask_covers_all_keys() const {
    if (!node_.in[3]->type.ranked() || dims(3).empty()) return false;
    Dim total = dims(1)[dims(1).size() - 2];
    if (node_.has(4)) {
      if (!node_.in[4]->type.ranked()) return false;
      total = total + dims(4).at(2);
    }
    return dims(3).back() == total;
  }
  double scale() const {
    if (attrs_.scale) return static_cast<double>(*attrs_.scale);
    return 1 / std::sqrt(static_cast<double>(*size_of_head().constant()));
  }

  Value* ints(const std::vector<int64_t>& values) {
    return graph_.add_constant(Tensor::ints(values));
  }
  Value* turned(Value* x, std::vector<int64_t> perm) {
    return graph_.add(Transpose{.perm = std::move(perm)}, {x});
  }
  Value* split(size_t i, int64_t heads) {
    Value* x = node_.in[i];
    if (dims(i).size() == 4) return x;
    return turned(graph_.add(Reshape{}, {x, ints({0, 0, heads, -1})}), {0, 2, 1, 3});
  }
  Value* joined(Value* y) {
    if (dims(0).size() == 4) return y;
    return graph_.add(Reshape{}, {turned(y, {0, 2, 1, 3}), ints({0, 0, -1})});
  }
  Value* with_past(Value* now, size_t past) {
    return node_.has(past) ? graph_.add(Concat{.axis = 2}, {node_.in[past], now}) : now;
  }
  /// Each key head stands beside every query head that it serves.
  Value* repeated(Value* x) {
    const int64_t groups = *q_heads().constant() / *kv_heads().constant();
    if (groups == 1) return x;
    Value* apart = graph_.add(Unsqueeze{}, {x, ints({2})});
    Value* wide = graph_.add(Expand{}, {apart, ints({1, 1, groups, 1, 1})});
    Value* shape = graph_.add(ShapeOf{}, {x});
    const auto sizes = [&](const std::vector<int64_t>& axes) {
      return graph_.add(Gather{}, {shape, ints(axes)});
    };
    Value* target =
        graph_.add(Concat{}, {sizes({0}), ints({*q_heads().constant()}), sizes({2, 3})});
    return graph_.add(Reshape{}, {wide, target});
  }
  Value* capped(Value* scores) {
    if (attrs_.softcap == 0) return scores;
    Value* cap = add_scalar(graph_, static_cast<double>(attrs_.softcap), scores->type.dtype);
    return graph_.add(Mul{}, {graph_.add(Tanh{}, {graph_.add(Div{}, {scores, cap})}), cap});
  }
  Value* size_of(Value* x, int64_t axis) {
    return graph_.add(Gather{},
                      {graph_.add(ShapeOf{}, {x}), graph_.add_constant(Tensor::scalar(axis))});
  }
  /// 0, 1, 2, … as many as an axis of x has.
  Value* counted(Value* x, int64_t axis) {
    return graph_.add(Range{}, {graph_.add_constant(Tensor::scalar<int64_t>(0)), size_of(x, axis),
                                graph_.add_constant(Tensor::scalar<int64_t>(1))});
  }
  /// nonpad_kv_seqlen, one number for each example, along the first of four axes.
  Value* lengths() {
    return graph_.add(Reshape{}, {as_type(graph_, node_.in[6], DType::i64), ints({-1, 1, 1, 1})});
  }
  /// Entries behind an example's length may hold anything: their weight of zero is not enough.
  Value* valid_only(Value* v) {
    if (!node_.has(6)) return v;
    Value* places = graph_.add(Unsqueeze{}, {counted(v, 2), ints({1})});
    Value* valid = graph_.add(Less{}, {places, lengths()});
    return graph_.add(Where{}, {valid, v, add_scalar(graph_, 0, v->type.dtype)});
  }
  Value* masked(Value* scores, Value* keys) {
    const DType dtype = scores->type.dtype;
    Value* never = add_scalar(graph_, -INFINITY, dtype);
    if (node_.has(3)) {
      Value* mask = node_.in[3];
      scores = mask->type.dtype == DType::boolean
                   ? graph_.add(Where{}, {mask, scores, never})
                   : graph_.add(Add{}, {scores, as_type(graph_, mask, dtype)});
    }
    if (node_.has(6)) {
      Value* valid = graph_.add(Less{}, {counted(keys, 2), lengths()});
      scores = graph_.add(Where{}, {valid, scores, never});
    }
    if (!attrs_.is_causal) return scores;
    Value* column = graph_.add(Unsqueeze{}, {counted(scores, 2), ints({1})});
    if (node_.has(4))
      column = graph_.add(Add{}, {column, size_of(node_.in[4], 2)});
    else if (node_.has(6))
      column = graph_.add(Add{}, {column, graph_.add(Sub{}, {lengths(), size_of(scores, 2)})});
    Value* seen = graph_.add(LessOrEqual{}, {counted(keys, 2), column});
    return graph_.add(Where{}, {seen, scores, never});
  }
  /// A row with every key masked gives zeros. Causality alone leaves each row its first key.
  Value* softmax(Value* scores) {
    const bool some_masked = node_.has(3) || node_.has(6);
    Value* weights = graph_.add(Softmax{}, {scores});
    if (!some_masked) return weights;
    const DType dtype = scores->type.dtype;
    Value* best = graph_.add(ReduceMax{}, {scores, ints({-1})});
    Value* none = graph_.add(Equal{}, {best, add_scalar(graph_, -INFINITY, dtype)});
    return graph_.add(Where{}, {none, add_scalar(graph_, 0, dtype), weights});
  }

  Graph& graph_;
  const Node& node_;
  const Attention& attrs_;
};

}  // namespace

Values decompose_attention(Graph& graph, const Node& node) {
  AttentionParts parts(graph, node);
  return parts.possible() ? parts.build() : Values{};
}

}  // namespace dais
