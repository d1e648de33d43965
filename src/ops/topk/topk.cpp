#include "ops/topk/topk.h"

#include <algorithm>
#include <numeric>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/dims.h"
#include "ops/gradient.h"
#include "ops/order.h"
#include "ops/scatter/scatter.h"
#include "ops/strided.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  c.set(1, DType::i64);
  Dims out = c.shape(0);
  Dim& size = out[c.axis(c.attrs<TopK>().axis, out.size())];
  const auto k = c.known(1);
  if (k) {
    c.require(k->size() == 1, "k is not one number");
    const Dim& count = k->front();
    if (count.is_constant() &&
        (*count.constant() < 0 || (size.is_constant() && *count.constant() > *size.constant())))
      c.fail("k is " + count.text() + " on an axis of size " + size.text());
    size = count;
  } else {
    size = c.fresh();
  }
  c.set(0, c.dtype(0), out);
  c.set(1, DType::i64, out);
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const auto& attrs = c.attrs<TopK>();
  const size_t axis = normalize_axis(attrs.axis, x.rank());
  const AxisSplit split = split_axis(x.shape(), axis);
  c.require(c.in(1).elements() == 1, "k is not one number");
  const int64_t k = c.in(1).to_ints()[0];
  if (k < 0 || k > split.size)
    c.fail("k is " + std::to_string(k) + " on an axis of size " + std::to_string(split.size));
  Shape shape = x.shape();
  shape[axis] = k;
  Tensor& values = c.out(0, shape);
  Tensor unused;
  Tensor& places = c.outputs() > 1 ? c.out(1, shape) : unused = Tensor(DType::i64, shape);
  std::vector<int64_t> order(static_cast<size_t>(split.size));
  visit_dtype<NumericTypes>(x.dtype(), [&]<typename T>() {
    for (int64_t outer = 0; outer < split.outer; ++outer)
      for (int64_t inner = 0; inner < split.inner; ++inner) {
        const T* from = x.data<T>().data() + outer * split.size * split.inner + inner;
        const int64_t to = outer * k * split.inner + inner;
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
          const T &left = from[a * split.inner], &right = from[b * split.inner];
          if (attrs.largest ? ordered_before(right, left) : ordered_before(left, right))
            return true;
          if (attrs.largest ? ordered_before(left, right) : ordered_before(right, left))
            return false;
          return a < b;
        });
        for (int64_t i = 0; i < k; ++i) {
          const int64_t place = order[static_cast<size_t>(i)];
          values.storage<T>()[to + i * split.inner] = from[place * split.inner];
          places.storage<int64_t>()[to + i * split.inner] = place;
        }
      }
  });
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  need_outputs(g, n, 2);
  const ScatterElements attrs{.axis = n.as<TopK>()->axis, .reduction = "add"};
  return {g.add(attrs, {filled_like(g, 0, n.in[0]), n.outs[1], dy[0]}), nullptr};
}

/// k was an attribute before opset 10.
Values import_1(OnnxImport& x) {
  const int64_t k[] = {x.integer("k", 1)};
  return x.emit(TopK{.axis = x.integer("axis", -1)}, {x.input(0), x.ints(k)});
}

}  // namespace

const Op TopK::op{
    .name = "top_k",
    .attrs = &AttrsOf<TopK>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{.type = "TopK", .since = 1, .until = 9, .import = import_1}, {"TopK", 10}},
};

namespace ops {
void define_topk(OpRegistry& registry) { registry.add(TopK::op); }
}  // namespace ops
}  // namespace dais
