#include "ops/norm/contrib.h"

#include "ir/onnx_import.h"
#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gather/gather.h"
#include "ops/norm/norm.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"
#include "ops/slice/slice.h"

namespace dais {
namespace {

/// x + y, where either may be left out.
Value* plus(OnnxImport& c, Value* x, Value* y) {
  return !y ? x : !x ? y : c.graph.add(Add{}, {x, y});
}

/// Outputs: Y, mean?, inverse deviation?, input + skip + bias?.
Values import_skip_layer(OnnxImport& c) {
  Value* sum = plus(c, plus(c, c.input(0), c.input(1)), c.input(4));
  const LayerNormalization attrs{.axis = -1, .epsilon = c.number("epsilon", 1e-12f)};
  // The moments are for training; nodes that only hand on the sum leave their names empty.
  const size_t count = c.outputs == 2 || c.outputs == 3 ? 3 : 1;
  Values out = c.emit(attrs, {sum, c.input(2), c.input(3)}, count);
  out.resize(3, nullptr);
  out.push_back(sum);
  out.resize(c.outputs);
  return out;
}

Values import_skip_simplified(OnnxImport& c) {
  Value* sum = plus(c, plus(c, c.input(0), c.input(1)), c.input(3));
  const RMSNormalization attrs{.axis = -1, .epsilon = c.number("epsilon", 1e-12f)};
  Values out = c.emit(attrs, {sum, c.input(2)}, 1);
  out.insert(out.end(), {nullptr, nullptr, sum});
  out.resize(c.outputs);
  return out;
}

/// Inputs: ids, segments?, word table, position table, segment table?, gamma, beta, mask?,
/// positions?. Outputs: Y, valid tokens of each example, sum of the embeddings?.
Values import_embed_layer(OnnxImport& c) {
  Graph& graph = c.graph;
  Value* ids = c.input(0);
  if (!ids || !c.has(2) || !c.has(3)) c.fail("ids and embedding tables are needed");
  Value* sum = graph.add(Gather{}, {c.input(2), ids});
  Value* positions = nullptr;
  if (c.has(8)) {
    positions = graph.add(Gather{}, {c.input(3), c.input(8)});
  } else {
    Value* length = graph.add(ShapeOf{.start = 1, .end = 2}, {ids});
    const std::array<int64_t, 1> zero{0};
    positions = graph.add(Slice{}, {c.input(3), c.ints(zero), length, c.ints(zero)});
  }
  sum = plus(c, sum, positions);
  if (c.has(1) && c.has(4)) sum = plus(c, sum, graph.add(Gather{}, {c.input(4), c.input(1)}));
  const LayerNormalization attrs{.axis = -1, .epsilon = c.number("epsilon", 1e-12f)};
  Values out = c.emit(attrs, {sum, c.input(5), c.input(6)}, 1);
  if (c.outputs > 1) {
    // Without a mask the count is zero for every example.
    Value* mask = c.has(7) ? c.input(7) : graph.add(Sub{}, {ids, ids});
    const std::array<int64_t, 1> axis{1};
    Value* count = graph.add(ReduceSum{.keepdims = false}, {mask, c.ints(axis)});
    out.push_back(count->type.dtype == DType::i32 ? count
                                                  : graph.add(Cast{.to = DType::i32}, {count}));
  }
  if (c.outputs > 2) out.push_back(sum);
  return out;
}

Values import_group(OnnxImport& c) {
  const GroupNormalization attrs{.epsilon = c.number("epsilon", 1e-5f),
                                 .num_groups = c.integer("groups", 1),
                                 .channels_last = c.integer("channels_last", 1) != 0};
  Value* y = c.emit(attrs, {c.input(0), c.input(1), c.input(2)}, 1)[0];
  const int64_t activation = c.integer("activation", 0);
  if (activation != 0 && activation != 1) c.fail("activation must be 0 or 1");
  return {activation == 1 ? c.graph.add(Swish{}, {y}) : y};
}

}  // namespace

void define_norm_contrib(OpRegistry& registry) {
  const auto rule = [&](std::string_view type, Values (*import)(OnnxImport&)) {
    registry.add_rule({.type = type, .domain = "com.microsoft", .import = import});
  };
  rule("SkipLayerNormalization", import_skip_layer);
  rule("SkipSimplifiedLayerNormalization", import_skip_simplified);
  rule("EmbedLayerNormalization", import_embed_layer);
  rule("GroupNorm", import_group);
}

}  // namespace dais
