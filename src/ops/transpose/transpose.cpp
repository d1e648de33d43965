#include "ops/transpose/transpose.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/transpose/strided_copy.h"

namespace dais {
namespace {

template <typename Context>
std::vector<size_t> full_perm(const Context& c, size_t rank) {
  const auto& given = c.template attrs<Transpose>().perm;
  if (given.empty()) {
    std::vector<size_t> perm(rank);
    for (size_t axis = 0; axis < rank; ++axis) perm[axis] = rank - 1 - axis;
    return perm;
  }
  if (given.size() != rank)
    c.fail("perm lists " + std::to_string(given.size()) + " axes for a rank-" +
           std::to_string(rank) + " tensor");
  return checked_axes(c, given, rank);
}

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& in = c.shape(0);
  Dims out;
  for (size_t axis : full_perm(c, in.size())) out.push_back(in[axis]);
  c.set(0, c.dtype(0), out);
  if (auto known = c.known(0); known && in.size() <= 1) c.set_known(0, *known);
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const auto perm = full_perm(c, x.rank());
  Shape shape;
  for (size_t axis : perm) shape.push_back(x.shape()[axis]);
  copy_transposed(x, perm, c.out(0, shape));
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  std::vector<int64_t> perm = n.as<Transpose>()->perm, back(perm.size());
  const auto rank = static_cast<int64_t>(perm.size());
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t axis = perm[static_cast<size_t>(i)];
    back[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = i;
  }
  return {g.add(Transpose{.perm = back}, {dy[0]})};
}

}  // namespace

const Op Transpose::op{
    .name = "transpose",
    .attrs = &AttrsOf<Transpose>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{"Transpose"}},
};

namespace ops {
void define_transpose(OpRegistry& registry) { registry.add(Transpose::op); }
}  // namespace ops
}  // namespace dais
