#include "ops/attention/rotary.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/attention/attention.h"
#include "ops/concat/concat.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gather/gather.h"
#include "ops/parts.h"
#include "ops/reshape/reshape.h"
#include "ops/slice/slice.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& x = c.shape(0);
  c.require(x.size() == 3 || x.size() == 4, "X must have three or four axes");
  c.set(0, c.dtype(0), x);
}

/// The row of the tables for each token.
std::vector<int64_t> table_rows(const Call& c, int64_t batch, int64_t length) {
  std::vector<int64_t> rows(static_cast<size_t>(batch * length));
  const bool by_position = c.has(3);
  const int64_t limit = by_position ? c.in(1).shape()[0] : batch * length;
  const auto ids = by_position ? c.in(3).to_ints() : std::vector<int64_t>{};
  const bool one_offset = ids.size() == 1 && rows.size() != 1;
  c.require(!by_position || one_offset || ids.size() == rows.size(),
            "position_ids must be [batch, length] or one number");
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto token = static_cast<int64_t>(i);
    rows[i] = !by_position ? token : one_offset ? ids[0] + token % length : ids[i];
    if (rows[i] < 0 || rows[i] >= limit)
      c.fail("position " + std::to_string(rows[i]) + " is outside a table of " +
             std::to_string(limit) + " rows");
  }
  return rows;
}

void reference(Call& c) {
  const auto& attrs = c.attrs<RotaryEmbedding>();
  const Tensor &x = c.in(0), &cos = c.in(1), &sin = c.in(2);
  const size_t wanted = c.has(3) ? 2 : 3;
  c.require(cos.rank() == wanted && cos.shape() == sin.shape(),
            "cos and sin must be [positions, half], or [batch, length, half] without position_ids");
  const int64_t half = cos.shape().back();
  const bool split = x.rank() == 4;
  c.require(split || x.rank() == 3, "X must have three or four axes");
  int64_t heads = split ? x.shape()[1] : attrs.num_heads;
  if (!split && heads == 0) heads = half ? x.shape()[2] / (2 * half) : 1;
  c.require(split || (heads > 0 && x.shape()[2] % heads == 0),
            "num_heads does not divide the last axis of X");
  const int64_t batch = x.shape()[0], length = x.shape()[split ? 2 : 1];
  const int64_t size = split ? x.shape()[3] : x.shape()[2] / heads;
  c.require(2 * half <= size &&
                (attrs.rotary_embedding_dim == 0 ? 2 * half == size
                                                 : 2 * half == attrs.rotary_embedding_dim),
            "the tables must have half as many columns as elements are rotated");
  c.require(wanted == 2 || (cos.shape()[0] == batch && cos.shape()[1] == length),
            "cos and sin must be [batch, length, half] without position_ids");
  const auto rows = table_rows(c, batch, length);
  const WideView<double> cosines(cos), sines(sin);
  std::vector<double> values = to_wide<double>(x);
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t l = 0; l < length; ++l) {
        const int64_t at = split ? (n * heads + h) * length + l : (n * length + l) * heads + h;
        const int64_t row = rows[static_cast<size_t>(n * length + l)] * half;
        rotate_head(values.data() + at * size, half, attrs.interleaved, cosines.data() + row,
                    sines.data() + row);
      }
  store_wide(c.out(0, x.shape()), 0, values.data(), x.elements());
}

/// The rotation in slices, products and sums.
class RotaryParts {
 public:
  RotaryParts(Graph& graph, const Node& node)
      : graph_(graph), node_(node), attrs_(*node.as<RotaryEmbedding>()) {}

  /// Whether inference knows enough: ranks, the tables' width, a position for every token.
  bool possible() const {
    for (size_t i = 0; i < 3; ++i)
      if (!node_.in[i]->type.ranked()) return false;
    const Dims &x = dims(0), &table = dims(1);
    if (table.size() != (node_.has(3) ? 2 : 3) || !table.back().constant()) return false;
    if (!split() && attrs_.num_heads == 0 && !x[2].constant()) return false;
    if (!node_.has(3)) return true;
    return node_.in[3]->type.ranked() && dims(3) == Dims{x[0], x[split() ? 2 : 1]};
  }

  Value* build() {
    const DType dtype = wide_type(*node_.in[0]);
    const int64_t half = *dims(1).back().constant(), rotated = 2 * half;
    const int64_t step = attrs_.interleaved ? 2 : 1;
    Value* x = as_type(graph_, heads(half), dtype);
    Value *cos = as_type(graph_, table(1), dtype), *sin = as_type(graph_, table(2), dtype);
    Value* a = part(x, 0, attrs_.interleaved ? rotated : half, step);
    Value* b = part(x, attrs_.interleaved ? 1 : half, rotated, step);
    Value* real = graph_.add(Sub{}, {product(a, cos), product(b, sin)});
    Value* imaginary = graph_.add(Add{}, {product(a, sin), product(b, cos)});
    Value* y = joined(real, imaginary, rotated);
    if (attrs_.rotary_embedding_dim != 0)
      y = graph_.add(Concat{.axis = 3}, {y, part(x, rotated, INT64_MAX, 1)});
    if (!split()) y = graph_.add(Reshape{}, {y, ints({0, 0, -1})});
    return as_type(graph_, y, node_.in[0]->type.dtype);
  }

 private:
  const Dims& dims(size_t i) const { return *node_.in[i]->type.shape; }
  bool split() const { return dims(0).size() == 4; }
  Value* ints(const std::vector<int64_t>& values) {
    return graph_.add_constant(Tensor::ints(values));
  }
  Value* product(Value* a, Value* b) { return graph_.add(Mul{}, {a, b}); }
  Value* heads(int64_t half) {
    if (split()) return node_.in[0];
    const int64_t count =
        attrs_.num_heads != 0 ? attrs_.num_heads : *dims(0)[2].constant() / (2 * half);
    return graph_.add(Reshape{}, {node_.in[0], ints({0, 0, count, -1})});
  }
  /// A row for every token, one for all heads.
  Value* table(size_t i) {
    Value* rows = node_.in[i];
    if (node_.has(3)) rows = graph_.add(Gather{.axis = 0}, {rows, node_.in[3]});
    return graph_.add(Unsqueeze{}, {rows, ints({split() ? 1 : 2})});
  }
  Value* part(Value* x, int64_t from, int64_t to, int64_t step) {
    return graph_.add(Slice{}, {x, ints({from}), ints({to}), ints({3}), ints({step})});
  }
  Value* joined(Value* real, Value* imaginary, int64_t rotated) {
    if (!attrs_.interleaved) return graph_.add(Concat{.axis = 3}, {real, imaginary});
    Value* pairs = graph_.add(Concat{.axis = 4}, {graph_.add(Unsqueeze{}, {real, ints({4})}),
                                                  graph_.add(Unsqueeze{}, {imaginary, ints({4})})});
    return graph_.add(Reshape{}, {pairs, ints({0, 0, 0, rotated})});
  }

  Graph& graph_;
  const Node& node_;
  const RotaryEmbedding& attrs_;
};

Values decompose(Graph& graph, const Node& node) {
  RotaryParts parts(graph, node);
  return parts.possible() ? Values{parts.build()} : Values{};
}

/// Turns back. The tables are constants.
Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  Values in{dy[0], n.in[1], g.add(Neg{}, {n.in[2]})};
  if (n.has(3)) in.push_back(n.in[3]);
  return {g.add(*n.as<RotaryEmbedding>(), in)};
}

/// com.microsoft: X, position_ids, cos, sin.
Values import_contrib(OnnxImport& c) {
  if (c.integer("is_packed_batching", 0) != 0) c.fail("is_packed_batching is not supported");
  return c.emit(c.attrs<RotaryEmbedding>(), {c.input(0), c.input(2), c.input(3), c.input(1)});
}

}  // namespace

const Op RotaryEmbedding::op{
    .name = "rotary_embedding",
    .attrs = &AttrsOf<RotaryEmbedding>::info,
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .gradient = gradient,
    .onnx = {{"RotaryEmbedding", 23},
             {.type = "RotaryEmbedding", .domain = "com.microsoft", .import = import_contrib}},
};

}  // namespace dais
