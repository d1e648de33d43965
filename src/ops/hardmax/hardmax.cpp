#include "ops/hardmax/hardmax.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/order.h"
#include "ops/softmax/flattened.h"
#include "ops/strided.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  c.axis(c.attrs<Hardmax>().axis, c.rank(0));
  c.set(0, c.dtype(0), c.shape(0));
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const size_t axis = normalize_axis(c.attrs<Hardmax>().axis, x.rank());
  const AxisSplit split = split_axis(x.shape(), axis);
  Tensor& y = c.out(0, x.shape());
  visit_dtype<FloatTypes>(x.dtype(), [&]<typename T>() {
    for (int64_t outer = 0; outer < split.outer; ++outer)
      for (int64_t inner = 0; inner < split.inner; ++inner) {
        const int64_t base = outer * split.size * split.inner + inner;
        const T* from = x.data<T>().data() + base;
        int64_t best = 0;
        for (int64_t i = 1; i < split.size; ++i)
          if (ordered_before(from[best * split.inner], from[i * split.inner])) best = i;
        for (int64_t i = 0; i < split.size; ++i)
          y.storage<T>()[base + i * split.inner] = number_cast<T>(i == best ? 1.0f : 0.0f);
      }
  });
}

}  // namespace

const Op Hardmax::op{
    .name = "hardmax",
    .attrs = &AttrsOf<Hardmax>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{"Hardmax", 13},
             {.type = "Hardmax", .until = 12, .import = import_flattened<Hardmax>}},
};

namespace ops {
void define_hardmax(OpRegistry& registry) { registry.add(Hardmax::op); }
}  // namespace ops
}  // namespace dais
