#include "train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dais::train {
namespace {

TEST(Metrics, ConfusionGivesPrecisionRecallAndIou) {
  Confusion c(3);
  c.add(0, 0, 5);
  c.add(0, 1, 1);
  c.add(1, 1, 2);
  c.add(1, 0, 2);
  EXPECT_DOUBLE_EQ(c.accuracy(), 0.7);
  EXPECT_DOUBLE_EQ(c.precision(0), 5.0 / 7);
  EXPECT_DOUBLE_EQ(c.recall(0), 5.0 / 6);
  EXPECT_DOUBLE_EQ(c.iou(0), 5.0 / 8);
  EXPECT_TRUE(std::isnan(c.recall(2)));
  EXPECT_DOUBLE_EQ(c.mean_iou(), (5.0 / 8 + 2.0 / 5) / 2);
}

TEST(Metrics, TopKCountsClassesAhead) {
  ClassScores scores(4, 2);
  const float row[] = {0.1f, 0.5f, 0.3f, 0.5f};
  for (int64_t truth = 0; truth < 4; ++truth) scores.add(row, truth);
  EXPECT_DOUBLE_EQ(scores.accuracy(), 0.25);
  EXPECT_DOUBLE_EQ(scores.top_k(), 0.5);
}

TEST(Metrics, BoxOverlap) {
  EXPECT_DOUBLE_EQ(box_iou({0, 0, 2, 2}, {1, 1, 3, 3}), 1.0 / 7);
  EXPECT_DOUBLE_EQ(box_iou({0, 0, 1, 1}, {2, 2, 3, 3}), 0);
  EXPECT_DOUBLE_EQ(box_iou({0, 0, 0, 0}, {0, 0, 0, 0}), 0);
}

// Three boxes; by falling score: right, wrong (second hit on one box), right. Precision envelope
// 1 up to a third, 2/3 up to two thirds.
TEST(Metrics, AveragePrecisionByHand) {
  DetectionScores scores;
  scores.add_image({{{0, 0, 10, 10}, 0, 0.9f}, {{0, 0, 10, 9}, 0, 0.8f}}, {{{0, 0, 10, 10}, 0}});
  scores.add_image({{{5, 5, 9, 9}, 0, 0.7f}}, {{{5, 5, 9, 9}, 0}, {{20, 20, 30, 30}, 0}});
  EXPECT_NEAR(scores.average_precision(0, 0.5), 1.0 / 3 + 2.0 / 9, 1e-12);
  EXPECT_NEAR(scores.mean_average_precision(0.5), 5.0 / 9, 1e-12);
  EXPECT_TRUE(std::isnan(scores.average_precision(1, 0.5)));
}

TEST(Metrics, IgnoredBoxesCountNeitherWay) {
  DetectionScores scores;
  scores.add_image({{{0, 0, 10, 10}, 0, 0.9f}, {{20, 20, 30, 30}, 0, 0.8f}},
                   {{{0, 0, 10, 10}, 0, true}, {{20, 20, 30, 30}, 0}});
  EXPECT_DOUBLE_EQ(scores.average_precision(0, 0.5), 1);
}

TEST(Metrics, EditDistances) {
  const int64_t kitten[] = {'k', 'i', 't', 't', 'e', 'n'};
  const int64_t sitting[] = {'s', 'i', 't', 't', 'i', 'n', 'g'};
  EXPECT_EQ(edit_distance(kitten, sitting), 3);
  EXPECT_EQ(edit_distance(kitten, {}), 6);
}

TEST(Metrics, WordAndCharacterErrors) {
  TranscriptScores scores;
  scores.add("the cat sat", "the bat sat down");
  EXPECT_DOUBLE_EQ(scores.word_error_rate(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores.character_error_rate(), 6.0 / 11);
  TranscriptScores umlaut;
  umlaut.add("ü", "u");
  EXPECT_DOUBLE_EQ(umlaut.character_error_rate(), 1);
}

}  // namespace
}  // namespace dais::train
