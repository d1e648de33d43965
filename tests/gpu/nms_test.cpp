// Non-maximum suppression on the device: the same boxes in the same order as on the CPU.
#include "ops/nms/nms.h"

#include <algorithm>

#include "api/compile.h"
#include "runtime/session.h"
#include "watched_row.h"

namespace dais {
namespace {

/// Corners in any order, which overlap now and then.
Tensor boxes_of(const Shape& shape) { return sample<float>(shape, 5, 3); }

TEST(BoxRows, ChosenByFallingScore) {
  const WatchedCase exact{.tolerance = {0, 0}};
  const Tensor overlap = Tensor::scalar(0.3f), least = Tensor::of<float>({1}, {-0.5f});
  for (const bool center : {false, true})
    for (const int64_t count : {1, 70, 300}) {
      const Tensor boxes = boxes_of({2, count, 4}), scores = sample<float>({2, 3, count}, 1, 4);
      const ChooseBoxes attrs{.center_point_box = center, .most = 9};
      watch_row(attrs, {boxes, scores, overlap, least}, exact);
      watch_row(attrs, {boxes, scores}, exact);
      watch_row(attrs, {boxes, scores, Tensor(), least}, exact);
    }
}

/// Equal scores keep their order, NaN comes first, and minus infinity is a score like others.
TEST(BoxRows, OddScores) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Tensor boxes(DType::f32, {1, 6, 4});
  for (int64_t i = 0; i < 6; ++i) {
    float* box = boxes.storage<float>() + 4 * i;
    const int64_t pair = i / 2;
    box[0] = box[1] = static_cast<float>(10 * pair);
    box[2] = box[3] = box[0] + 5;
  }
  const Tensor scores = Tensor::of<float>(
      {1, 2, 6},
      {0.5f, 0.5f, 0, -0.0f, nan, 0.5f, -INFINITY, -INFINITY, -INFINITY, INFINITY, -INFINITY, nan});
  watch_row(ChooseBoxes{.most = 6}, {boxes, scores, Tensor::scalar(0.5f)}, {.tolerance = {0, 0}});
}

struct Suppression {
  Graph graph;
  std::vector<Datum> inputs;

  explicit Suppression(int64_t limit, int64_t count = 40) {
    inputs = {boxes_of({2, count, 4}), sample<float>({2, 3, count}, 1, 4)};
    Values in;
    for (const Datum& input : inputs) in.push_back(graph.add_input(Type::of(input.tensor), {}));
    in.push_back(graph.add_constant(Tensor::scalar(limit)));
    in.push_back(graph.add_constant(Tensor::scalar(0.3f)));
    in.push_back(graph.add_constant(Tensor(DType::f32, Shape{0})));
    graph.outputs = {graph.add(NonMaxSuppression{}, in)};
  }
};

TEST(BoxRows, SuppressionIsChosenThereAndListedHere) {
  for (const int64_t limit : {int64_t{3}, std::numeric_limits<int64_t>::max()}) {
    const Suppression given(limit);
    Session plain(compile(given.graph.clone()).plan);
    CompileOptions options;
    options.backend = test_backend();
    Session session(compile(given.graph.clone(), options).plan);
    EXPECT_TRUE(session.run(given.inputs)[0].tensor.identical(plain.run(given.inputs)[0].tensor));
    const auto& steps = session.plan().steps();
    EXPECT_EQ(std::count_if(steps.begin(), steps.end(),
                            [](const Step& step) {
                              return step.place == Place::device &&
                                     step.node->as<ChooseBoxes>() != nullptr;
                            }),
              1);
  }
}

/// Whoever asks for no boxes gets none; more boxes than shared memory holds stay on the CPU.
TEST(BoxRows, SuppressionThatStaysWhole) {
  for (const auto& [limit, count] : {std::pair{0, 40}, {2, 100000}}) {
    const Suppression given(limit, count);
    CompileOptions options;
    options.backend = test_backend();
    const auto plan = compile(given.graph.clone(), options).plan;
    EXPECT_TRUE(std::any_of(plan->steps().begin(), plan->steps().end(), [](const Step& step) {
      return step.node->as<NonMaxSuppression>() != nullptr;
    }));
  }
}

}  // namespace
}  // namespace dais
