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

}  // namespace dais
