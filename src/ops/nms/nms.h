#pragma once

#include "ir/op.h"

namespace dais {

/// (boxes [batch, n, 4], scores [batch, classes, n], max per class?, IoU threshold?, score
/// threshold?): for each class of each batch entry, boxes by falling score that overlap no better
/// one by more than the IoU threshold: rows (batch, class, box). Boxes are two corners
/// (y, x, y, x) or, with center_point_box, (x, y, width, height).
struct NonMaxSuppression {
  bool center_point_box = false;
  static constexpr auto fields =
      std::tuple{field("center_point_box", &NonMaxSuppression::center_point_box)};
  static const Op op;
};

/// What plans for devices make of NonMaxSuppression is this, whose sizes are known before it runs,
/// and ListBoxes behind it; models have neither. (boxes, scores, IoU threshold?, score threshold?)
/// to chosen i32 [batch, classes, most]: the boxes of each class by falling score, and -1 behind
/// them.
struct ChooseBoxes {
  bool center_point_box = false;
  int64_t most = 0;
  static constexpr auto fields = std::tuple{
      field("center_point_box", &ChooseBoxes::center_point_box), field("most", &ChooseBoxes::most)};
  static const Op op;
};

/// Chosen boxes as rows (batch, class, box) i64.
struct ListBoxes {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
