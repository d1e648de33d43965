#include "ops/nms/nms.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/order.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, DType::i64, {c.fresh(), 3});
  if (c.ranked(0)) c.require(c.rank(0) == 3, "the boxes are not [batch, n, 4]");
  if (c.ranked(1)) c.require(c.rank(1) == 3, "the scores are not [batch, classes, n]");
}

struct Box {
  float x0, y0, x1, y1;
  float area() const { return (x1 - x0) * (y1 - y0); }
};

Box read_box(const float* from, bool center) {
  if (center)
    return {from[0] - from[2] / 2, from[1] - from[3] / 2, from[0] + from[2] / 2,
            from[1] + from[3] / 2};
  return {std::min(from[1], from[3]), std::min(from[0], from[2]), std::max(from[1], from[3]),
          std::max(from[0], from[2])};
}

bool overlaps(const Box& a, const Box& b, float threshold) {
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (!(width > 0) || !(height > 0)) return false;
  const float common = width * height, all = a.area() + b.area() - common;
  return a.area() > 0 && b.area() > 0 && all > 0 && common / all > threshold;
}

float number_input(const Call& c, size_t i) {
  return c.has(i) && c.in(i).elements() > 0 ? static_cast<float>(c.in(i).to_double()) : 0;
}

/// Indices of the boxes kept for one class.
std::vector<int64_t> select(const std::vector<Box>& boxes, const float* scores, int64_t limit,
                            float overlap, const float* least) {
  std::vector<int64_t> order, kept;
  for (int64_t i = 0; i < std::ssize(boxes); ++i)
    if (!least || scores[i] > *least) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return ordered_before(scores[b], scores[a]); });
  for (int64_t candidate : order) {
    if (std::ssize(kept) >= limit) break;
    const bool covered = std::any_of(kept.begin(), kept.end(), [&](int64_t better) {
      return overlaps(boxes[static_cast<size_t>(candidate)], boxes[static_cast<size_t>(better)],
                      overlap);
    });
    if (!covered) kept.push_back(candidate);
  }
  return kept;
}

void reference(Call& c) {
  const Shape &boxes = c.in(0).shape(), &scores = c.in(1).shape();
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2])
    c.fail("boxes " + boxes.text() + " and scores " + scores.text() + " do not fit together");
  const int64_t limit = c.has(2) && c.in(2).elements() > 0 ? c.in(2).to_ints()[0] : 0;
  const float overlap = number_input(c, 3), least = number_input(c, 4);
  const bool has_least = c.has(4) && c.in(4).elements() > 0;
  const WideView<float> corners(c.in(0)), values(c.in(1));
  const bool center = c.attrs<NonMaxSuppression>().center_point_box;
  std::vector<int64_t> rows;
  for (int64_t batch = 0; batch < boxes[0]; ++batch) {
    std::vector<Box> all;
    for (int64_t i = 0; i < boxes[1]; ++i)
      all.push_back(read_box(corners.data() + (batch * boxes[1] + i) * 4, center));
    for (int64_t kind = 0; kind < scores[1]; ++kind) {
      const float* from = values.data() + (batch * scores[1] + kind) * scores[2];
      for (int64_t box : select(all, from, limit, overlap, has_least ? &least : nullptr))
        rows.insert(rows.end(), {batch, kind, box});
    }
  }
  Tensor& y = c.out(0, Shape{std::ssize(rows) / 3, 3});
  std::copy(rows.begin(), rows.end(), y.data<int64_t>().begin());
}

}  // namespace

const Op NonMaxSuppression::op{
    .name = "non_max_suppression",
    .attrs = &AttrsOf<NonMaxSuppression>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{"NonMaxSuppression", 10}},
};

namespace ops {
void define_nms(OpRegistry& registry) { registry.add(NonMaxSuppression::op); }
}  // namespace ops
}  // namespace dais
