#include "ops/pad/pad.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/dims.h"
#include "ops/elementwise/elements.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gradient.h"
#include "ops/pad/pad_maps.h"
#include "ops/reduce/reduce.h"

namespace dais {
namespace {

/// Pads of every axis from those of some: first all starts, then all ends.
template <typename Context>
Dims full_pads(const Context& c, const Dims& pads, const std::vector<int64_t>* axes, size_t rank) {
  std::vector<size_t> at(rank);
  for (size_t axis = 0; axis < rank; ++axis) at[axis] = axis;
  if (axes) at = checked_axes(c, *axes, rank);
  if (pads.size() != 2 * at.size())
    c.fail("there are " + std::to_string(pads.size()) + " pads for " + std::to_string(at.size()) +
               " axes",
           "Give a start and an end for each axis");
  Dims out(2 * rank, Dim(0));
  for (size_t i = 0; i < at.size(); ++i) {
    out[at[i]] = pads[i];
    out[rank + at[i]] = pads[at.size() + i];
  }
  return out;
}

void infer(Inference& c) {
  const auto& mode = c.attrs<Pad>().mode;
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    c.fail("the mode '" + mode + "' is unknown", "Use constant, reflect, edge or wrap");
  c.set(0, c.dtype(0));
  const Dims& in = c.shape(0);
  const auto pads = c.known(1);
  const auto axes = c.known_ints(3);
  Dims out;
  if (!pads || (c.has(3) && !axes)) {
    for (size_t axis = 0; axis < in.size(); ++axis) out.push_back(c.fresh());
    return c.set(0, c.dtype(0), out);
  }
  const Dims full = full_pads(c, *pads, axes ? &*axes : nullptr, in.size());
  for (size_t axis = 0; axis < in.size(); ++axis) {
    out.push_back(in[axis] + full[axis] + full[in.size() + axis]);
    if (out.back().is_constant() && *out.back().constant() < 0)
      c.fail("axis " + std::to_string(axis) + " of size " + in[axis].text() +
             " has more removed than there is");
  }
  c.set(0, c.dtype(0), out);
}

int64_t padded_size(const Call& c, size_t axis, int64_t size, int64_t before, int64_t after) {
  int64_t out = 0;
  if (__builtin_add_overflow(before, after, &out) || __builtin_add_overflow(out, size, &out) ||
      out < 0)
    c.fail("axis " + std::to_string(axis) + " of size " + std::to_string(size) +
           " cannot be padded by " + std::to_string(before) + " and " + std::to_string(after));
  return out;
}

/// Data and result of a padding.
struct Padding {
  Dims pads;
  Shape from, to;
};

/// Pads are input 1 or 2, axes input 3.
Padding padding_of(const Call& c, const Shape& from, size_t pads_input) {
  std::vector<int64_t> axes;
  if (c.has(3)) axes = c.in(3).to_ints();
  Padding out{
      full_pads(c, dims_of(c.in(pads_input).to_ints()), c.has(3) ? &axes : nullptr, from.rank()),
      from,
      {}};
  for (size_t axis = 0; axis < from.rank(); ++axis)
    out.to.push_back(padded_size(c, axis, from[axis], *out.pads[axis].constant(),
                                 *out.pads[from.rank() + axis].constant()));
  return out;
}

/// For results that are not empty.
IndexMaps maps_of(const Call& c, const Padding& padding, const std::string& mode) {
  std::vector<int64_t> pads;
  for (const Dim& dim : padding.pads) pads.push_back(*dim.constant());
  for (size_t axis = 0; axis < padding.from.rank(); ++axis)
    if (mode != "constant" && kept_elements(padding.from, pads, axis) <= 0)
      c.fail("axis " + std::to_string(axis) + " has nothing left to repeat");
  return pad_maps(mode, padding.from, padding.to, pads);
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const Padding padding = padding_of(c, x.shape(), 1);
  Tensor& y = c.out(0, padding.to);
  if (y.elements() == 0) return;
  const IndexMaps maps = maps_of(c, padding, c.attrs<Pad>().mode);
  Tensor fill;
  if (c.has(2)) {
    fill = c.in(2);
    if (fill.elements() != 1 || fill.dtype() != x.dtype())
      c.fail("the padding value " + fill.describe() + " is not one element of the data's type");
  }
  copy_mapped(x, maps, fill, y);
}

void infer_backward(Inference& c) {
  c.set(0, c.dtype(0));
  if (const auto sizes = c.known(1)) return c.set(0, c.dtype(0), *sizes);
  Dims out;
  for (size_t axis = 0; axis < c.rank(0); ++axis) out.push_back(c.fresh());
  c.set(0, c.dtype(0), out);
}

/// Adds dy to where each of its elements came from.
void reference_backward(Call& c) {
  const Tensor& dy = c.in(0);
  const Padding padding = padding_of(c, Shape(c.in(1).to_ints()), 2);
  c.require(dy.shape() == padding.to, "dy is not of the padded shape");
  std::vector<double> sums(static_cast<size_t>(padding.from.elements()));
  const auto values = widen<double>(dy);
  const Shape strides = strides_of(padding.from);
  const IndexMaps maps =
      values.empty() ? IndexMaps{} : maps_of(c, padding, c.attrs<PadBackward>().mode);
  std::vector<int64_t> index(dy.rank());
  for (const double value : values) {
    int64_t to = 0;
    for (size_t axis = 0; axis < index.size() && to >= 0; ++axis) {
      const int64_t from = maps[axis][static_cast<size_t>(index[axis])];
      to = from < 0 ? -1 : to + from * strides[axis];
    }
    if (to >= 0) sums[static_cast<size_t>(to)] += value;
    for (size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < dy.shape()[axis]) break;
      index[axis] = 0;
    }
  }
  store_elements(c.out(0, padding.from), 0, 1, padding.from.elements(), sums.data());
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  Value* axes = n.has(3) ? n.in[3] : nullptr;
  const std::string& mode = n.as<Pad>()->mode;
  Values out(n.in.size(), nullptr);
  if (mode != "constant") {
    out[0] = g.add(PadBackward{mode}, {dy[0], sizes_of(g, n.in[0]), n.in[1], axes});
    return out;
  }
  // Removing what was added, and the other way round.
  Value* opposite = g.add(Neg{}, {n.in[1]});
  out[0] = g.add(Pad{}, {dy[0], opposite, nullptr, axes});
  if (!n.has(2) || n.in[2]->constant()) return out;
  // The value's share is what the data does not get.
  const auto sum = [&](Value* x) { return Term(g, g.add(ReduceSum{.keepdims = false}, {x})); };
  out[2] = reshape_like(g, sum(dy[0]) - sum(out[0]), n.in[2]);
  return out;
}

Values gradient_backward(Graph& g, const Node& n, std::span<Value* const> dy) {
  const Pad attrs{n.as<PadBackward>()->mode};
  return {g.add(attrs, {dy[0], n.in[2], nullptr, n.has(3) ? n.in[3] : nullptr})};
}

/// Pads and value were attributes before opset 11; opset 1 called the former "paddings".
Values import_1(OnnxImport& x) {
  const auto pads = x.integers(x.attribute("pads") ? "pads" : "paddings");
  return x.emit(Pad{.mode = x.text("mode", "constant")},
                {x.input(0), x.ints(pads), x.scalar_like(x.number("value", 0), x.input(0))});
}

}  // namespace

const Op Pad::op{
    .name = "pad",
    .attrs = &AttrsOf<Pad>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{.type = "Pad", .since = 1, .until = 10, .import = import_1},
             {"Pad", 11},
             {.type = "Pad", .domain = "com.microsoft"}},
};

const Op PadBackward::op{
    .name = "pad_backward",
    .attrs = &AttrsOf<PadBackward>::info,
    .infer = infer_backward,
    .reference = reference_backward,
    .gradient = gradient_backward,
    .onnx = {{.type = "PadBackward", .domain = "dais"}},
};

namespace ops {
void define_pad(OpRegistry& registry) {
  registry.add(Pad::op);
  registry.add(PadBackward::op);
}
}  // namespace ops
}  // namespace dais
