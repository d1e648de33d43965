#include <cmath>

#include "ir/onnx_import.h"
#include "ops/attention/contrib.h"
#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

/// Runs the scores through a subgraph of one input, when there is one.
Value* modified(OnnxImport& c, std::string_view attribute, Value* scores) {
  if (!c.has_region(attribute)) return scores;
  const ImportedRegion region = c.region(attribute);
  Values arguments{scores};
  arguments.insert(arguments.end(), region.captures.begin(), region.captures.end());
  if (region.graph->inputs.size() != arguments.size() || region.graph->outputs.size() != 1)
    c.fail("'" + std::string(attribute) + "' must take and give one tensor");
  return region.graph->inline_into(c.graph, arguments)[0];
}

Value* reshaped(OnnxImport& c, Value* x, std::array<int64_t, 4> shape) {
  return c.graph.add(Reshape{}, {x, c.ints(shape)});
}

/// softmax(score_mod(Q K' * scale)), prob_mod, times V; query heads that share a key head are put
/// one after the other as its queries, so that no key is copied.
Values import_flex(OnnxImport& c) {
  Graph& graph = c.graph;
  for (size_t i = 0; i < 3; ++i)
    if (!c.has(i) || !c.in[i]->type.shape || c.in[i]->type.shape->size() != 4)
      c.fail("Q, K and V must have four axes");
  Value *q = c.input(0), *k = c.input(1), *v = c.input(2);
  const Dims q_shape = *q->type.shape;
  const auto heads = q_shape[1].constant(), kv_heads = (*k->type.shape)[1].constant();
  const auto size = q_shape[3].constant();
  if (!heads || !kv_heads || !size || *kv_heads < 1 || *heads % *kv_heads != 0)
    c.fail("head counts and the head size must be known, those of Q a multiple of those of K");
  const bool grouped = *heads != *kv_heads;
  const float scale = c.number("scale", 0);
  if (grouped) q = reshaped(c, q, {0, *kv_heads, -1, *size});
  Value* keys = graph.add(Transpose{.perm = {0, 1, 3, 2}}, {k});
  Value* scores = graph.add(MatMul{}, {q, keys});
  const double factor =
      scale != 0 ? static_cast<double>(scale) : 1 / std::sqrt(static_cast<double>(*size));
  scores = graph.add(Mul{}, {scores, c.scalar_like(factor, scores)});
  if (grouped) {
    const auto length = q_shape[2].constant();
    scores = length ? reshaped(c, scores, {0, *heads, *length, -1})
                    : reshaped(c, scores, {0, *heads, -1, 0});
  }
  scores = modified(c, "score_mod", scores);
  const DType own = scores->type.dtype;
  const auto precision = dtype_from_onnx(c.integer("softmax_precision", 0));
  const bool cast = precision && *precision != DType::undefined && *precision != own;
  if (cast) scores = graph.add(Cast{.to = *precision}, {scores});
  Value* probabilities = graph.add(Softmax{.axis = -1}, {scores});
  if (cast) probabilities = graph.add(Cast{.to = own}, {probabilities});
  probabilities = modified(c, "prob_mod", probabilities);
  if (grouped) probabilities = reshaped(c, probabilities, {0, *kv_heads, -1, 0});
  Value* y = c.emit(MatMul{}, {probabilities, v})[0];
  if (!grouped) return {y};
  const auto length = q_shape[2].constant();
  return {length ? reshaped(c, y, {0, *heads, *length, -1}) : reshaped(c, y, {0, *heads, -1, 0})};
}

}  // namespace

void define_flex_attention(OpRegistry& registry) {
  registry.add_rule({.type = "FlexAttention", .domain = "ai.onnx.preview", .import = import_flex});
}

}  // namespace dais
