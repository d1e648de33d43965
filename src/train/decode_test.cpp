#include "train/decode.h"

#include <gtest/gtest.h>

namespace dais::train {
namespace {

TEST(Decode, BestPathMergesRepeatsAndDropsBlanks) {
  const std::vector<std::string> classes{"<blank>", "a", "b"};
  // Frames: a a blank a b b; the second sample is blank throughout.
  const int64_t path[] = {1, 1, 0, 1, 2, 2};
  Tensor scores(DType::f32, {2, 6, 3});
  for (float& x : scores.data<float>()) x = 0;
  for (size_t t = 0; t < 6; ++t) {
    scores.data<float>()[t * 3 + static_cast<size_t>(path[t])] = 1;
    scores.data<float>()[(6 + t) * 3] = 1;
  }
  EXPECT_EQ(decode_transcript(scores, 0, 6, classes), "aab");
  EXPECT_EQ(decode_transcript(scores, 0, 2, classes), "a");
  EXPECT_EQ(decode_transcript(scores, 1, 6, classes), "");
}

TEST(Decode, OverlappingBoxesOfAClassGiveWayToTheBest) {
  const Tensor corners =
      Tensor::of<float>({1, 3, 4}, {0, 0, 0.5f, 0.5f, 0, 0, 0.5f, 0.45f, 0.6f, 0.6f, 0.9f, 0.9f});
  const Tensor scores = Tensor::of<float>({1, 3, 1}, {1, 2, -3});
  const auto found = decode_boxes(corners, scores, 0, 0.5, 0.5);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FLOAT_EQ(found[0].box[3], 0.45f);
}

TEST(Decode, EachBoxGetsAnAnchor) {
  const Tensor anchors =
      Tensor::of<float>({3, 4}, {0, 0, 0.5f, 0.5f, 0.5f, 0.5f, 1, 1, 0.4f, 0.5f, 1, 1});
  data::Batch batch;
  batch.input = Tensor(DType::f32, {1, 3, 10, 20});
  batch.target = Tensor::of<float>({1, 2, 4}, {10, 5, 20, 10, 0, 0, 2, 1});
  batch.classes = Tensor::of<int64_t>({1, 2}, {1, 0});
  batch.indices = {0};
  const AnchorTargets found = match_anchors(anchors, batch, 2);
  // The large box takes its own anchor and the one that overlaps it; the small one the nearest.
  const auto counts = found.counts.data<float>();
  EXPECT_EQ(std::vector<float>(counts.begin(), counts.end()), (std::vector<float>{1, 1, 1}));
  EXPECT_FLOAT_EQ(found.classes.data<float>()[0], 1);
  EXPECT_FLOAT_EQ(found.classes.data<float>()[3], 1);
  EXPECT_FLOAT_EQ(found.classes.data<float>()[5], 1);
  EXPECT_FLOAT_EQ(found.boxes.data<float>()[4], 0.5f);
}

}  // namespace
}  // namespace dais::train
