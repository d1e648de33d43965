#include "ops/split/split.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/concat/concat.h"
#include "ops/dims.h"
#include "ops/gradient.h"
#include "ops/transpose/strided_copy.h"

namespace dais {
namespace {

/// Sizes of `count` pieces of an axis of `size`.
template <typename Context>
Dims even_pieces(const Context& c, const Dim& size, size_t count) {
  const int64_t asked = c.template attrs<Split>().num_outputs;
  if (asked != 0 && asked != static_cast<int64_t>(count))
    c.fail("num_outputs is " + std::to_string(asked) + " but there are " + std::to_string(count) +
           " outputs");
  const auto pieces = static_cast<int64_t>(count);
  const Dim piece = ceildiv(size, pieces);
  Dims out;
  for (int64_t i = 0; i < pieces; ++i) out.push_back(lesser(piece, greater(size - piece * i, 0)));
  // An even split needs no clamping whatever the size stands for.
  if (floordiv(size, pieces) * pieces == size) out.assign(count, floordiv(size, pieces));
  return out;
}

template <typename Context>
void check_pieces(const Context& c, const Dims& pieces, const Dim& size, size_t outputs) {
  if (pieces.size() != outputs)
    c.fail("there are " + std::to_string(pieces.size()) + " sizes for " + std::to_string(outputs) +
           " outputs");
  Dim sum = 0;
  for (const Dim& piece : pieces) {
    if (piece.is_constant() && *piece.constant() < 0) c.fail("a size is negative");
    sum = sum + piece;
  }
  if (sum.is_constant() && size.is_constant() && !(sum == size))
    c.fail("the sizes " + dims_text(pieces) + " do not add up to " + size.text());
}

void infer_known(Inference& c, const Dims& pieces) {
  const auto known = c.known(0);
  if (!known) return;
  size_t at = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].is_constant()) return;
    const auto size = static_cast<size_t>(*pieces[i].constant());
    if (at + size > known->size()) return;
    const auto begin = known->begin() + static_cast<std::ptrdiff_t>(at);
    c.set_known(i, Dims(begin, begin + static_cast<std::ptrdiff_t>(size)));
    at += size;
  }
}

void infer(Inference& c) {
  for (size_t i = 0; i < c.outputs(); ++i) c.set(i, c.dtype(0));
  const Dims& in = c.shape(0);
  const size_t axis = c.axis(c.attrs<Split>().axis, in.size());
  Dims pieces;
  if (auto known = c.known(1)) {
    pieces = *known;
  } else if (c.has(1)) {
    for (size_t i = 0; i < c.outputs(); ++i) pieces.push_back(c.fresh());
  } else {
    pieces = even_pieces(c, in[axis], c.outputs());
  }
  check_pieces(c, pieces, in[axis], c.outputs());
  for (size_t i = 0; i < c.outputs(); ++i) {
    Dims out = in;
    out[axis] = pieces[i];
    c.set(i, c.dtype(0), out);
  }
  if (in.size() == 1) infer_known(c, pieces);
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const size_t axis = normalize_axis(c.attrs<Split>().axis, x.rank());
  const Dims pieces =
      c.has(1) ? dims_of(c.in(1).to_ints()) : even_pieces(c, x.shape()[axis], c.outputs());
  check_pieces(c, pieces, x.shape()[axis], c.outputs());
  const AxisSplit whole = split_axis(x.shape(), axis);
  int64_t at = 0;
  for (size_t i = 0; i < c.outputs(); ++i) {
    Shape shape = x.shape();
    shape[axis] = *pieces[i].constant();
    Tensor& y = c.out(i, shape);
    const Shape space{whole.outer, shape[axis] * whole.inner};
    if (space.elements() > 0)
      copy_strided(space, x, at * whole.inner, {whole.size * whole.inner, 1}, y, 0,
                   {shape[axis] * whole.inner, 1});
    at += shape[axis];
  }
}

/// Sizes were an attribute before opset 13 (in opset 1 an attribute or an input).
Values import_1(OnnxImport& x) {
  Value* sizes = x.attribute("split") ? x.ints(x.integers("split")) : x.input(1);
  return x.emit(Split{.axis = x.integer("axis", 0)}, {x.input(0), sizes});
}

/// Whether all pieces are of the same size, as far as inference knows.
bool even(const Node& node) {
  return std::all_of(node.outs.begin(), node.outs.end(), [&](const Value* piece) {
    return !piece->type.shape || *piece->type.shape == *node.outs[0]->type.shape;
  });
}

/// Since opset 18 either the sizes or the number of pieces must be there.
OnnxNode export_as(const Node& node, int64_t opset) {
  OnnxNode out{.type = "Split", .in = node.in};
  const Split& split = *node.as<Split>();
  out.attributes.emplace_back("axis", split.axis);
  if (opset >= 18 && !node.has(1))
    out.attributes.emplace_back("num_outputs", static_cast<int64_t>(node.outs.size()));
  if (opset < 18 && !node.has(1) && !even(node)) no_form(node, "an uneven split", opset, 18);
  return out;
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  Values parts(dy.begin(), dy.end());
  for (size_t i = 0; i < parts.size(); ++i)
    if (!parts[i]) parts[i] = filled_like(g, 0, n.outs[i]);
  return {g.add(Concat{.axis = n.as<Split>()->axis}, parts), nullptr};
}

}  // namespace

const Op Split::op{
    .name = "split",
    .attrs = &AttrsOf<Split>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{.type = "Split", .since = 1, .until = 12, .import = import_1},
             {.type = "Split", .since = 13, .export_as = export_as}},
};

namespace ops {
void define_split(OpRegistry& registry) { registry.add(Split::op); }
}  // namespace ops
}  // namespace dais
