#include "ir/call.h"
#include "passes/passes.h"

namespace dais {
namespace {

/// Folding must not make a model much larger than its file: results above this stay computed,
/// unless they replace inputs of at least their size.
constexpr size_t kMaxGrowthBytes = size_t{1} << 20;
/// In memory only what would not fit is left computed: kernels want their weights constant.
constexpr size_t kMaxWeightBytes = size_t{1} << 31;

size_t input_bytes(const Node& node) {
  size_t total = 0;
  for (const Value* value : node.in)
    if (value) total += value->constant()->bytes();
  return total;
}

bool foldable(const Node& node, size_t max_growth) {
  if (!node.op->pure || !node.regions.empty() || node.in.empty()) return false;
  for (const Value* value : node.in)
    if (value && !value->constant()) return false;
  for (const Value* value : node.outs) {
    const auto shape = value->type.is_tensor() ? value->type.static_shape() : std::nullopt;
    if (!value->type.is_tensor()) return false;
    if (!shape) continue;
    const size_t bytes = static_cast<size_t>(shape->elements()) * dtype_size(value->type.dtype);
    if (bytes > max_growth + 2 * input_bytes(node)) return false;
  }
  return true;
}

template <size_t max_growth>
Values fold(Graph& graph, Node& node) {
  if (!foldable(node, max_growth)) return {};
  std::vector<Datum> inputs;
  for (const Value* value : node.in) inputs.push_back(value ? Datum(*value->constant()) : Datum());
  std::vector<Datum> results;
  try {
    results = evaluate_node(node, inputs);
  } catch (const Error&) {
    return {};  // The error belongs to the run, and only if this node is reached.
  }
  Values out;
  for (Datum& result : results) {
    if (result.kind != Datum::Kind::tensor) return {};
    out.push_back(graph.add_constant(result.tensor));
  }
  return out;
}

/// Shape arithmetic over constant sizes: the contents are known although the inputs are not
/// constants.
Values fold_known(Graph& graph, Node& node) {
  if (!node.op->pure || node.outs.size() != 1) return {};
  const Value* value = node.outs[0];
  const auto shape = value->type.is_tensor() ? value->type.static_shape() : std::nullopt;
  const auto known = value->known();
  if (!shape || !known || shape->elements() != static_cast<int64_t>(known->size())) return {};
  Tensor tensor(DType::i64, *shape);
  for (size_t i = 0; i < known->size(); ++i) {
    if (!(*known)[i].is_constant()) return {};
    tensor.data<int64_t>()[i] = *(*known)[i].constant();
  }
  if (value->type.dtype == DType::i64) return {graph.add_constant(std::move(tensor))};
  if (value->type.dtype != DType::i32) return {};
  Tensor narrow(DType::i32, *shape);
  for (size_t i = 0; i < known->size(); ++i)
    narrow.data<int32_t>()[i] = static_cast<int32_t>(tensor.data<int64_t>()[i]);
  return {graph.add_constant(std::move(narrow))};
}

constexpr Rule kRules[] = {{"fold", fold<kMaxGrowthBytes>}, {"fold_known", fold_known}};
constexpr Rule kWeightRules[] = {{"fold_weights", fold<kMaxWeightBytes>},
                                 {"fold_known", fold_known}};

}  // namespace

bool fold_constants(Graph& graph, const Target&) { return rewrite(graph, kRules); }
bool fold_weights(Graph& graph, const Target&) { return rewrite(graph, kWeightRules); }

}  // namespace dais
