#include "ir/call.h"
#include "ir/inference.h"
#include "ops/elementwise/elements.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_gradient.h"
#include "ops/strided.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  if (const auto sizes = c.known(1)) return c.set(0, c.dtype(0), *sizes);
  const Dims& count = c.shape(1);
  c.require(count.size() == 1, "the sizes are not a list");
  if (!count[0].is_constant()) return;
  c.require(*count[0].constant() <= int64_t{kMaxRank}, "there are too many sizes");
  Dims shape;
  for (int64_t i = 0; i < *count[0].constant(); ++i) shape.push_back(c.fresh());
  c.set(0, c.dtype(0), std::move(shape));
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const Shape shape(c.in(1).to_ints());
  c.require(shape.rank() <= x.rank() && broadcast(x.shape(), shape) == x.shape(),
            "the sizes do not broadcast to the input");
  Tensor& y = c.out(0, shape);
  std::vector<double> sums(static_cast<size_t>(y.elements()));
  const auto values = widen<double>(x);
  const StridedLoop<1> loop(x.shape(), {broadcast_strides(shape, x.shape())});
  const double* from = values.data();
  loop.rows([&](const std::array<int64_t, 1>& at) {
    for (int64_t i = 0; i < loop.size(); ++i)
      sums[static_cast<size_t>(at[0] + i * loop.step(0))] += *from++;
  });
  store_elements(y, 0, 1, y.elements(), sums.data());
}

}  // namespace

const Op SumTo::op{
    .name = "sum_to",
    .attrs = &AttrsOf<SumTo>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient_sum_to,
    .onnx = {{.type = "SumTo", .domain = "dais"}},
};

}  // namespace dais
