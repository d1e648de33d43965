#include "ops/softmax/softmax.h"

#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  c.axis(c.attrs<Softmax>().axis, c.rank(0));
  c.set(0, c.dtype(0), c.shape(0));
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  Tensor& y = c.out(0, x.shape());
  const size_t axis = normalize_axis(c.attrs<Softmax>().axis, x.rank());
  const int64_t outer = x.shape().elements(0, axis), size = x.shape()[axis],
                inner = x.shape().elements(axis + 1, x.rank());
  visit_dtype<FloatTypes>(x.dtype(), [&]<typename T>() {
    const T* from = x.data<T>().data();
    T* to = y.data<T>().data();
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t base = o * size * inner + i;
        double top = -INFINITY, sum = 0;
        for (int64_t k = 0; k < size; ++k)
          top = std::fmax(top, number_cast<double>(from[base + k * inner]));
        for (int64_t k = 0; k < size; ++k)
          sum += std::exp(number_cast<double>(from[base + k * inner]) - top);
        for (int64_t k = 0; k < size; ++k)
          to[base + k * inner] =
              number_cast<T>(std::exp(number_cast<double>(from[base + k * inner]) - top) / sum);
      }
  });
}

}  // namespace

const Op Softmax::op{
    .name = "softmax",
    .attrs = &AttrsOf<Softmax>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{"Softmax", 13}},
};

namespace ops {
void define_softmax(OpRegistry& registry) { registry.add(Softmax::op); }
}  // namespace ops
}  // namespace dais
