#include "ops/center_crop_pad/center_crop_pad.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/gather/gather.h"
#include "ops/gradient.h"
#include "ops/pad/mapped_copy.h"

namespace dais {
namespace {

template <typename Context>
Dims wanted_sizes(const Context& c, Dims in, const Dims& sizes) {
  const auto& given = c.template attrs<CenterCropPad>().axes;
  std::vector<size_t> axes = checked_axes(c, given, in.size());
  if (given.empty())
    for (size_t axis = 0; axis < in.size(); ++axis) axes.push_back(axis);
  if (axes.size() != sizes.size())
    c.fail("there are " + std::to_string(sizes.size()) + " sizes for " +
           std::to_string(axes.size()) + " axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i].is_constant() && *sizes[i].constant() < 0) c.fail("a size is negative");
    in[axes[i]] = sizes[i];
  }
  return in;
}

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& in = c.shape(0);
  Dims sizes;
  if (auto known = c.known(1)) {
    sizes = *known;
  } else {
    const auto& axes = c.attrs<CenterCropPad>().axes;
    for (size_t i = 0; i < (axes.empty() ? in.size() : axes.size()); ++i)
      sizes.push_back(c.fresh());
  }
  c.set(0, c.dtype(0), wanted_sizes(c, in, sizes));
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const Shape shape = shape_of(wanted_sizes(c, dims_of(x.shape()), dims_of(c.in(1).to_ints())));
  Tensor& y = c.out(0, shape);
  if (shape.elements() == 0) return;
  IndexMaps maps(x.rank());
  for (size_t axis = 0; axis < x.rank(); ++axis) {
    const int64_t size = x.shape()[axis], wanted = shape[axis];
    // The odd element stays behind the centre on either way.
    const int64_t shift = wanted < size ? (size - wanted) / 2 : -((wanted - size) / 2);
    for (int64_t i = 0; i < wanted; ++i)
      maps[axis].push_back(i + shift < 0 || i + shift >= size ? -1 : i + shift);
  }
  copy_mapped(x, maps, {}, y);
}

/// What was cropped is filled with zeros, what was added is cut off, around the same centre.
Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<CenterCropPad>();
  Value* sizes = sizes_of(g, n.in[0]);
  if (!attrs.axes.empty()) sizes = g.add(Gather{}, {sizes, ints(g, attrs.axes)});
  return {g.add(attrs, {dy[0], sizes}), nullptr};
}

}  // namespace

const Op CenterCropPad::op{
    .name = "center_crop_pad",
    .attrs = &AttrsOf<CenterCropPad>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{"CenterCropPad", 18}},
};

namespace ops {
void define_center_crop_pad(OpRegistry& registry) { registry.add(CenterCropPad::op); }
}  // namespace ops
}  // namespace dais
