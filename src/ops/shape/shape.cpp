#include "ops/shape/shape.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/cost.h"

namespace dais {

std::pair<int64_t, int64_t> shape_window(const ShapeOf& attrs, size_t rank) {
  const auto limit = static_cast<int64_t>(rank);
  auto clamped = [&](int64_t bound) {
    return std::clamp(bound < 0 ? bound + limit : bound, int64_t{0}, limit);
  };
  const int64_t first = clamped(attrs.start), last = clamped(attrs.end.value_or(limit));
  return {first, std::max(first, last)};
}

namespace {

void infer_shape(Inference& c) {
  c.set(0, DType::i64, Dims{c.fresh()});
  const Dims& x = c.shape(0);
  const auto [first, last] = shape_window(c.attrs<ShapeOf>(), x.size());
  c.set(0, DType::i64, Dims{last - first});
  c.set_known(0, Dims(x.begin() + first, x.begin() + last));
}

void reference_shape(Call& c) {
  const Shape& x = c.in(0).shape();
  const auto [first, last] = shape_window(c.attrs<ShapeOf>(), x.rank());
  std::copy(x.begin() + first, x.begin() + last,
            c.out(0, Shape{last - first}).data<int64_t>().begin());
}

void infer_size(Inference& c) {
  c.set(0, DType::i64, Dims{});
  const Dims& x = c.shape(0);
  c.set_known(0, {product(x, 0, x.size())});
}

void reference_size(Call& c) { c.out(0, Shape{}).data<int64_t>()[0] = c.in(0).elements(); }

}  // namespace

const Op ShapeOf::op{
    .name = "shape",
    .attrs = &AttrsOf<ShapeOf>::info,
    .infer = infer_shape,
    .reference = reference_shape,
    .cost = cost_of_taking,
    .onnx = {{"Shape", 1}},
};

const Op Size::op{
    .name = "size",
    .attrs = &AttrsOf<Size>::info,
    .infer = infer_size,
    .reference = reference_size,
    .cost = cost_of_taking,
    .onnx = {{"Size", 1}},
};

namespace ops {
void define_shape(OpRegistry& registry) {
  registry.add(ShapeOf::op);
  registry.add(Size::op);
}
}  // namespace ops
}  // namespace dais
