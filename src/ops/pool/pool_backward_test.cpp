#include "ops/pool/pool.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

template <typename S>
S window(bool channels_last) {
  S out;
  out.kernel_shape = {3, 2};
  out.strides = {2, 1};
  out.pads = {1, 0, 1, 1};
  out.channels_last = channels_last;
  return out;
}

TEST(PoolBackwardRows, AgreeInBothLayouts) {
  for (const bool last : {false, true}) {
    const Shape x = last ? Shape{2, 7, 6, 19} : Shape{2, 19, 7, 6};
    // Few different values, so that windows have equal elements.
    Tensor values = sample<float>(x, 3);
    for (float& value : values.data<float>()) value = std::round(value);
    Graph graph;
    Value* in = graph.add_input(Type::of(values), "x");
    graph.outputs = {graph.add(window<MaxPool>(last), {in})};
    const Datum fed(values);
    const Tensor y = evaluate(graph, std::span(&fed, 1))[0].tensor;
    const Tensor dy = sample<float>(y.shape(), 2, 5);
    const RowTolerance tolerance{.relative = 1e-5, .absolute = 1e-6};
    EXPECT_GT(check_rows(window<MaxPoolBackward>(last), {dy, values, y}, tolerance), 0);
    for (const bool include : {false, true}) {
      auto average = window<AveragePoolBackward>(last);
      average.count_include_pad = include;
      EXPECT_GT(check_rows(average, {dy, Tensor::ints(x.dims())}, tolerance, {1}), 0);
    }
  }
}

}  // namespace
}  // namespace dais
