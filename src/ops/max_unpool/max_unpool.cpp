#include "ops/max_unpool/max_unpool.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/gather/gather.h"
#include "ops/gradient.h"
#include "ops/reshape/reshape.h"
#include "ops/window.h"

namespace dais {
namespace {

/// The shape that pooling with this window came from.
template <typename Context>
Dims implied_shape(const Context& c, const Dims& in) {
  const auto& attrs = c.template attrs<MaxUnpool>();
  const Window window = make_window(c, attrs.kernel_shape, attrs.strides, {}, attrs.pads, "NOTSET");
  const size_t axes = window.rank();
  if (in.size() != axes + 2) c.fail("the input's rank does not fit the kernel's");
  Dims out{in[0], in[1]};
  for (size_t i = 0; i < axes; ++i)
    out.push_back((in[i + 2] - 1) * window.strides[i] + window.kernel[i] - window.pads[i] -
                  window.pads[axes + i]);
  return out;
}

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& in = c.shape(0);
  const Dims implied = implied_shape(c, in);
  if (!c.has(2)) return c.set(0, c.dtype(0), implied);
  if (auto known = c.known(2)) return c.set(0, c.dtype(0), *known);
  Dims out;
  for (size_t i = 0; i < in.size(); ++i) out.push_back(c.fresh());
  c.set(0, c.dtype(0), out);
}

void reference(Call& c) {
  const Tensor &x = c.in(0), &indices = c.in(1);
  if (!(x.shape() == indices.shape()))
    c.fail("values " + x.shape().text() + " and indices " + indices.shape().text() + " differ");
  const Shape implied = shape_of(implied_shape(c, dims_of(x.shape())));
  Shape shape = implied;
  if (c.has(2)) shape = Shape(c.in(2).to_ints());
  c.require(shape.rank() == implied.rank(), "output_shape does not fit the input's rank");
  const Shape strides = strides_of(shape);
  const int64_t count = implied.elements();
  const auto places = indices.to_ints();
  Tensor& y = c.out(0, shape);
  visit_storage(x.dtype(), [&]<typename T>() {
    std::fill_n(y.storage<T>(), y.elements(), T{});
    for (size_t i = 0; i < places.size(); ++i) {
      int64_t rest = places[i], offset = 0;
      if (rest < 0 || rest >= count)
        c.fail("index " + std::to_string(rest) + " is outside " + implied.text());
      bool inside = true;
      for (size_t axis = implied.rank(); axis-- > 0;) {
        const int64_t at = rest % implied[axis];
        inside = inside && at < shape[axis];
        offset += at * strides[axis];
        rest /= implied[axis];
      }
      if (!inside) c.fail("index " + std::to_string(places[i]) + " is outside " + shape.text());
      y.storage<T>()[offset] = x.storage<T>()[i];
    }
  });
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  if (n.has(2)) no_gradient(n, "output_shape moves the places of values");
  Value* flat = g.add(Reshape{}, {dy[0], ints(g, {-1})});
  return {g.add(Gather{}, {flat, n.in[1]}), nullptr};
}

}  // namespace

const Op MaxUnpool::op{
    .name = "max_unpool",
    .attrs = &AttrsOf<MaxUnpool>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{"MaxUnpool", 9}},
};

namespace ops {
void define_max_unpool(OpRegistry& registry) { registry.add(MaxUnpool::op); }
}  // namespace ops
}  // namespace dais
