#include "ops/generate/generate.h"

#include <algorithm>
#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/elementwise/elements.h"
#include "ops/generate/windows.h"

namespace dais {
namespace {

void infer_constant_of_shape(Inference& c) {
  const Tensor& value = c.attrs<ConstantOfShape>().value;
  if (value && value.elements() != 1) c.fail("value has " + value.describe() + ", not one element");
  const DType dtype = value ? value.dtype() : DType::f32;
  c.set(0, dtype);
  if (auto sizes = c.known(0)) {
    for (const Dim& size : *sizes)
      if (size.is_constant() && *size.constant() < 0)
        c.fail("size " + size.text() + " is negative");
    c.set(0, dtype, *sizes);
    const Dim count = product(*sizes, 0, sizes->size());
    if (sizes->size() <= 1 && IntegerTypes::contains(dtype) && count.is_constant() &&
        *count.constant() <= 64)
      c.set_known(0, Dims(static_cast<size_t>(*count.constant()), value.to_ints()[0]));
    return;
  }
  const Dims& list = c.shape(0);
  if (list.size() == 1 && list[0].is_constant() && *list[0].constant() <= int64_t{kMaxRank}) {
    Dims shape;
    for (int64_t i = 0; i < *list[0].constant(); ++i) shape.push_back(c.fresh());
    c.set(0, dtype, std::move(shape));
  }
}

void reference_constant_of_shape(Call& c) {
  const Tensor& value = c.attrs<ConstantOfShape>().value;
  const Tensor filler = value ? value : Tensor::scalar<float>(0);
  Tensor& y = c.out(0, filler.dtype(), Shape(c.in(0).to_ints()));
  visit_storage(filler.dtype(), [&]<typename U>() {
    std::fill_n(y.storage<U>(), y.elements(), *filler.storage<U>());
  });
}

/// How many steps lead from start to the limit. Fails when they cannot be counted.
template <typename Where>
int64_t count_steps(const Where& c, double start, double limit, double delta) {
  if (delta == 0 || delta != delta) c.fail("delta is zero", "Use a step towards the limit");
  const double steps = std::ceil((limit - start) / delta);
  if (!(steps < 9e18)) c.fail("the range has no end");
  return steps > 0 ? static_cast<int64_t>(steps) : 0;
}
int64_t count_steps(const Call& c, int64_t start, int64_t limit, int64_t delta) {
  c.require(delta != 0, "delta is zero");
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  const uint64_t distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                      : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
  const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
  return static_cast<int64_t>((distance - 1) / step + 1);
}

void infer_range_of_integers(Inference& c, const Dim& start, const Dim& limit, const Dim& delta) {
  if (!delta.is_constant() || delta.is(0)) return;
  const int64_t step = *delta.constant();
  Dim count = step > 0 ? ceildiv(limit - start, delta) : ceildiv(start - limit, Dim(-step));
  if (count.is_constant()) count = max(count, 0);
  c.set(0, c.dtype(0), Dims{count});
  if (!count.is_constant() || *count.constant() > 64) return;
  Dims values;
  for (int64_t i = 0; i < *count.constant(); ++i) values.push_back(start + Dim(i) * delta);
  c.set_known(0, std::move(values));
}

void infer_range(Inference& c) {
  const DType dtype = c.dtype(0);
  for (size_t i = 1; i < 3; ++i)
    if (c.dtype(i) != dtype) c.fail("start, limit and delta are of different types");
  c.set(0, dtype, Dims{c.fresh()});
  const auto start = c.known(0), limit = c.known(1), delta = c.known(2);
  if (start && limit && delta && start->size() == 1 && limit->size() == 1 && delta->size() == 1)
    return infer_range_of_integers(c, (*start)[0], (*limit)[0], (*delta)[0]);
  const Tensor* numbers[] = {c.constant(0), c.constant(1), c.constant(2)};
  if (!is_float(dtype)) return;
  for (const Tensor* number : numbers)
    if (!number || number->elements() != 1) return;
  c.set(0, dtype,
        Dims{count_steps(c, numbers[0]->to_double(), numbers[1]->to_double(),
                         numbers[2]->to_double())});
}

void reference_range(Call& c) {
  for (size_t i = 0; i < 3; ++i) c.require(c.in(i).elements() == 1, "an input is not one number");
  const DType dtype = c.in(0).dtype();
  // Unsigned bounds are few enough to be read as signed ones.
  visit_compute(is_float(dtype) ? Wide::real : Wide::integer, [&]<typename C>() {
    if constexpr (!std::is_same_v<C, uint64_t>) {
      const C start = widen<C>(c.in(0))[0], limit = widen<C>(c.in(1))[0],
              delta = widen<C>(c.in(2))[0];
      Tensor& y = c.out(0, dtype, Shape{count_steps(c, start, limit, delta)});
      std::vector<C> values(static_cast<size_t>(y.elements()));
      for (size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<C>(i) * delta;
      store_elements(y, 0, 1, y.elements(), values.data());
    }
  });
}

DType eye_dtype(const EyeLike& attrs, DType like) {
  return attrs.dtype == DType::undefined ? like : attrs.dtype;
}

void infer_eye(Inference& c) {
  const DType dtype = eye_dtype(c.attrs<EyeLike>(), c.dtype(0));
  c.set(0, dtype);
  c.require(c.rank(0) == 2, "the input is not a matrix");
  c.set(0, dtype, c.shape(0));
}

void reference_eye(Call& c) {
  const EyeLike& attrs = c.attrs<EyeLike>();
  const Shape& shape = c.in(0).shape();
  Tensor& y = c.out(0, eye_dtype(attrs, c.in(0).dtype()), shape);
  std::fill_n(static_cast<uint8_t*>(y.raw()), y.bytes(), uint8_t{0});
  const double one = 1;
  for (int64_t row = 0; row < shape[0]; ++row) {
    // Compared without adding, since k may be any number.
    if (attrs.k < -row || attrs.k >= shape[1] - row) continue;
    store_elements(y, row * shape[1] + row + attrs.k, 1, 1, &one);
  }
}

void infer_one_hot(Inference& c) {
  const DType dtype = c.dtype(2);
  c.set(0, dtype);
  Dims shape = c.shape(0);
  const size_t axis = c.axis(c.attrs<OneHot>().axis, shape.size() + 1);
  const auto depth = c.known(1);
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis),
               depth && depth->size() == 1 ? (*depth)[0] : c.fresh());
  c.set(0, dtype, std::move(shape));
}

void reference_one_hot(Call& c) {
  const Tensor &indices = c.in(0), &values = c.in(2);
  c.require(c.in(1).elements() == 1, "depth is not one number");
  c.require(values.elements() == 2, "values are not the pair [off, on]");
  const int64_t depth = widen<int64_t>(c.in(1))[0];
  c.require(depth >= 0, "depth is negative");
  const size_t axis = normalize_axis(c.attrs<OneHot>().axis, indices.rank() + 1);
  std::vector<int64_t> sizes = indices.shape().vector();
  sizes.insert(sizes.begin() + static_cast<ptrdiff_t>(axis), depth);
  Tensor& y = c.out(0, values.dtype(), Shape(sizes));
  const auto at = widen<int64_t>(indices);
  const int64_t inner = indices.shape().elements(axis, indices.rank());
  visit_storage(values.dtype(), [&]<typename U>() {
    const U* pair = values.storage<U>();
    std::fill_n(y.storage<U>(), y.elements(), pair[0]);
    for (size_t i = 0; i < at.size(); ++i) {
      const int64_t index = at[i] < 0 ? at[i] + depth : at[i];
      if (index < 0 || index >= depth) continue;
      const auto place = static_cast<int64_t>(i);
      y.storage<U>()[(place / inner * depth + index) * inner + place % inner] = pair[1];
    }
  });
}

}  // namespace

const Op ConstantOfShape::op{
    .name = "constant_of_shape",
    .attrs = &AttrsOf<ConstantOfShape>::info,
    .infer = infer_constant_of_shape,
    .reference = reference_constant_of_shape,
    .onnx = {{"ConstantOfShape", 9}},
};
const Op Range::op{
    .name = "range",
    .attrs = &AttrsOf<Range>::info,
    .infer = infer_range,
    .reference = reference_range,
    .onnx = {{"Range", 11}, {.type = "Range", .domain = "com.microsoft"}},
};
const Op EyeLike::op{
    .name = "eye_like",
    .attrs = &AttrsOf<EyeLike>::info,
    .infer = infer_eye,
    .reference = reference_eye,
    .onnx = {{"EyeLike", 9}},
};
const Op OneHot::op{
    .name = "one_hot",
    .attrs = &AttrsOf<OneHot>::info,
    .infer = infer_one_hot,
    .reference = reference_one_hot,
    .onnx = {{"OneHot", 9}},
};

namespace ops {
void define_generate(OpRegistry& registry) {
  for (const Op* op : {&ConstantOfShape::op, &Range::op, &EyeLike::op, &OneHot::op})
    registry.add(*op);
  define_windows(registry);
}
}  // namespace ops
}  // namespace dais
