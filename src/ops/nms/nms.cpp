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

/// Calls body(batch, class, boxes kept) for each class of each batch entry. Inputs `first` and the
/// one behind it are the thresholds.
template <typename Body>
void for_classes(Call& c, bool center, int64_t limit, size_t first, Body&& body) {
  const Shape &boxes = c.in(0).shape(), &scores = c.in(1).shape();
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2])
    c.fail("boxes " + boxes.text() + " and scores " + scores.text() + " do not fit together");
  const float overlap = number_input(c, first), least = number_input(c, first + 1);
  const bool has_least = c.has(first + 1) && c.in(first + 1).elements() > 0;
  const WideView<float> corners(c.in(0)), values(c.in(1));
  for (int64_t batch = 0; batch < boxes[0]; ++batch) {
    std::vector<Box> all;
    for (int64_t i = 0; i < boxes[1]; ++i)
      all.push_back(read_box(corners.data() + (batch * boxes[1] + i) * 4, center));
    for (int64_t kind = 0; kind < scores[1]; ++kind) {
      const float* from = values.data() + (batch * scores[1] + kind) * scores[2];
      body(batch, kind, select(all, from, limit, overlap, has_least ? &least : nullptr));
    }
  }
}

void store_rows(Call& c, const std::vector<int64_t>& rows) {
  Tensor& y = c.out(0, Shape{std::ssize(rows) / 3, 3});
  std::copy(rows.begin(), rows.end(), y.data<int64_t>().begin());
}

void reference(Call& c) {
  const int64_t limit = c.has(2) && c.in(2).elements() > 0 ? c.in(2).to_ints()[0] : 0;
  std::vector<int64_t> rows;
  for_classes(c, c.attrs<NonMaxSuppression>().center_point_box, limit, 3,
              [&](int64_t batch, int64_t kind, const std::vector<int64_t>& kept) {
                for (const int64_t box : kept) rows.insert(rows.end(), {batch, kind, box});
              });
  store_rows(c, rows);
}

void infer_chosen(Inference& c) {
  c.set(0, DType::i32);
  c.set(0, DType::i32, {c.shape(0)[0], c.shape(1)[1], Dim(c.attrs<ChooseBoxes>().most)});
}

void reference_chosen(Call& c) {
  const auto& attrs = c.attrs<ChooseBoxes>();
  const Shape& scores = c.in(1).shape();
  Tensor& y = c.out(0, Shape{scores[0], scores[1], attrs.most});
  auto chosen = y.data<int32_t>();
  std::fill(chosen.begin(), chosen.end(), -1);
  for_classes(c, attrs.center_point_box, attrs.most, 2,
              [&](int64_t batch, int64_t kind, const std::vector<int64_t>& kept) {
                const int64_t first = (batch * scores[1] + kind) * attrs.most;
                std::copy(kept.begin(), kept.end(), chosen.begin() + first);
              });
}

void infer_list(Inference& c) { c.set(0, DType::i64, {c.fresh(), 3}); }

void reference_list(Call& c) {
  const Shape& shape = c.in(0).shape();
  const auto chosen = c.in(0).data<int32_t>();
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < std::ssize(chosen); ++i) {
    const int64_t row = i / shape[2], box = chosen[static_cast<size_t>(i)];
    if (box >= 0) rows.insert(rows.end(), {row / shape[1], row % shape[1], box});
  }
  store_rows(c, rows);
}

}  // namespace

const Op NonMaxSuppression::op{
    .name = "non_max_suppression",
    .attrs = &AttrsOf<NonMaxSuppression>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{"NonMaxSuppression", 10}},
};

const Op ChooseBoxes::op{
    .name = "choose_boxes",
    .attrs = &AttrsOf<ChooseBoxes>::info,
    .infer = infer_chosen,
    .reference = reference_chosen,
    .onnx = {},
};

const Op ListBoxes::op{
    .name = "list_boxes",
    .attrs = &AttrsOf<ListBoxes>::info,
    .infer = infer_list,
    .reference = reference_list,
    .onnx = {},
};

namespace ops {
void define_nms(OpRegistry& registry) { registry.add(NonMaxSuppression::op); }
}  // namespace ops
}  // namespace dais
