#include "ir/inference.h"

#include <algorithm>

namespace dais {
namespace {

/// Leaves an infer function when a rank is unknown; caught by Inference::run.
struct UnknownRank {};

constexpr size_t kMaxKnown = 64;

Dim broadcast_dim(const Dim& a, const Dim& b) { return broadcast(a, b); }

}  // namespace

Inference::Inference(const Node& node, std::vector<Input> inputs, size_t outputs,
                     std::function<Dim()> fresh)
    : node(node),
      inputs_(std::move(inputs)),
      types_(outputs),
      knowns_(outputs),
      fresh_(std::move(fresh)) {}

const Type& Inference::type(size_t i) const {
  if (!has(i)) fail("input " + std::to_string(i) + " is missing");
  return *inputs_[i].type;
}

DType Inference::dtype(size_t i) const {
  const Type& found = type(i);
  if (!found.is_tensor())
    fail("input " + std::to_string(i) + " is " + found.text() + ", not a tensor");
  return found.dtype;
}

const Dims& Inference::shape(size_t i) const {
  dtype(i);
  if (!type(i).shape) throw UnknownRank{};
  return *type(i).shape;
}

std::optional<Dims> Inference::known(size_t i) const {
  return has(i) ? inputs_[i].known : std::nullopt;
}

std::optional<std::vector<int64_t>> Inference::known_ints(size_t i) const {
  if (!has(i)) return std::nullopt;
  // Longer constants are never "known" symbolically, but their contents are there.
  if (const Tensor* tensor = constant(i); tensor && tensor->elements() > int64_t{kMaxKnown})
    return tensor->to_ints();
  if (!inputs_[i].known) return std::nullopt;
  std::vector<int64_t> out;
  for (const Dim& dim : *inputs_[i].known) {
    if (!dim.is_constant()) return std::nullopt;
    out.push_back(*dim.constant());
  }
  return out;
}

void Inference::set(size_t i, Type type) {
  if (i < types_.size()) types_[i] = std::move(type);
}

void Inference::set_known(size_t i, Dims values) {
  if (i < knowns_.size() && values.size() <= kMaxKnown) knowns_[i] = std::move(values);
}

Dims Inference::broadcast(const Dims& a, const Dims& b) const {
  const size_t rank = std::max(a.size(), b.size());
  const Dim one = 1;
  Dims out;
  for (size_t axis = 0; axis < rank; ++axis) {
    const Dim& x = axis + a.size() < rank ? one : a[axis + a.size() - rank];
    const Dim& y = axis + b.size() < rank ? one : b[axis + b.size() - rank];
    if (x.is_constant() && y.is_constant() && !(x == y) && !x.is(1) && !y.is(1))
      fail("shapes " + dims_text(a) + " and " + dims_text(b) + " do not broadcast",
           "Sizes must be equal or 1, counted from the last axis");
    out.push_back(broadcast_dim(x, y));
  }
  return out;
}

size_t Inference::axis(int64_t axis, size_t rank) const {
  const auto limit = static_cast<int64_t>(rank);
  if (axis < -limit || axis >= limit)
    fail("axis " + std::to_string(axis) + " is outside a rank-" + std::to_string(rank) + " tensor",
         rank == 0 ? "A scalar has no axes"
                   : "Use " + std::to_string(-limit) + " to " + std::to_string(limit - 1));
  return static_cast<size_t>(axis < 0 ? axis + limit : axis);
}

void Inference::fail(const std::string& problem, const std::string& remedy) const {
  throw Error(Code::invalid_model, std::string(node.op->name) + ": " + problem, node.where(),
              remedy);
}

void Inference::run() {
  try {
    node.op->infer(*this);
  } catch (const UnknownRank&) {
    // What was set before the leave stands; sizes set later are unknown.
  }
}

}  // namespace dais
