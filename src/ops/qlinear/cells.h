#pragma once

#include <cstring>

#include "ops/window.h"

namespace dais {

/// Which cells of X the window positions of one image see, for up to three spatial axes (missing
/// ones come first, with size 1).
struct Cells {
  static constexpr size_t kAxes = 3;
  int64_t in[kAxes] = {1, 1, 1}, out[kAxes] = {1, 1, 1}, begin[kAxes] = {0, 0, 0};
  int64_t kernel[kAxes] = {1, 1, 1}, stride[kAxes] = {1, 1, 1}, dilation[kAxes] = {1, 1, 1};
  int64_t taps = 1;
  std::vector<int64_t> offsets;  ///< of each tap's cell from the first one's

  Cells(const Window& window, const Activation& x, const Activation& y) {
    const size_t rank = x.space.size(), first = kAxes - rank;
    for (size_t axis = 0; axis < rank; ++axis) {
      in[first + axis] = x.space[axis];
      out[first + axis] = y.space[axis];
      begin[first + axis] = window.pad_begin(axis, x.space[axis], y.space[axis]);
      kernel[first + axis] = window.kernel[axis];
      stride[first + axis] = window.strides[axis];
      dilation[first + axis] = window.dilations[axis];
      taps *= window.kernel[axis];
    }
    for (int64_t a = 0; a < kernel[0]; ++a)
      for (int64_t b = 0; b < kernel[1]; ++b)
        for (int64_t c = 0; c < kernel[2]; ++c)
          offsets.push_back((a * dilation[0] * in[1] + b * dilation[1]) * in[2] + c * dilation[2]);
  }

  int64_t positions() const { return out[0] * out[1] * out[2]; }
};

/// Walks over window positions in order, image by image.
class CellWalk {
 public:
  CellWalk(const Cells& cells, int64_t position) : cells_(cells) {
    for (size_t axis = Cells::kAxes; axis-- > 0;) {
      at_[axis] = position % cells.out[axis];
      position /= cells.out[axis];
      last_[axis] = cells.in[axis] - (cells.kernel[axis] - 1) * cells.dilation[axis];
    }
    image_ = position;
    for (size_t axis = 0; axis < Cells::kAxes; ++axis) locate(axis);
  }

  int64_t image() const { return image_; }
  /// Whether every tap sees an element.
  bool inside() const {
    bool yes = true;
    for (size_t axis = 0; axis < Cells::kAxes; ++axis)
      yes &= start_[axis] >= 0 && start_[axis] < last_[axis];
    return yes;
  }
  /// Cell of the first tap, when inside.
  int64_t first() const { return cell(start_[0], start_[1], start_[2]); }
  int64_t start(size_t axis) const { return start_[axis]; }

  void next() {
    for (size_t axis = Cells::kAxes; axis-- > 0;) {
      if (++at_[axis] < cells_.out[axis]) return locate(axis);
      at_[axis] = 0;
      locate(axis);
    }
    ++image_;
  }

  /// Calls body(cell of its first element in the row) for every row of taps along the last axis;
  /// -1: the row lies in the padding.
  template <typename Body>
  void visit_rows(Body&& body) const {
    for (int64_t a = 0; a < cells_.kernel[0]; ++a)
      for (int64_t b = 0; b < cells_.kernel[1]; ++b) {
        const int64_t z = start_[0] + a * cells_.dilation[0],
                      y = start_[1] + b * cells_.dilation[1];
        const bool exists = z >= 0 && z < cells_.in[0] && y >= 0 && y < cells_.in[1];
        body(exists ? cell(z, y, 0) : -1);
      }
  }

  /// Calls body(cell, or -1 in the padding) for every tap.
  template <typename Body>
  void visit(Body&& body) const {
    visit_rows([&](int64_t row) {
      for (int64_t c = 0; c < cells_.kernel[2]; ++c) {
        const int64_t x = start_[2] + c * cells_.dilation[2];
        body(row < 0 || x < 0 || x >= cells_.in[2] ? -1 : row + x);
      }
    });
  }

 private:
  int64_t cell(int64_t z, int64_t y, int64_t x) const {
    return (z * cells_.in[1] + y) * cells_.in[2] + x;
  }
  void locate(size_t axis) { start_[axis] = at_[axis] * cells_.stride[axis] - cells_.begin[axis]; }

  const Cells& cells_;
  int64_t image_ = 0, at_[Cells::kAxes] = {}, start_[Cells::kAxes] = {}, last_[Cells::kAxes] = {};
};

/// memcpy for the short runs that windows are made of.
inline void copy_run(const uint8_t* from, int64_t count, uint8_t* to) {
  const auto pair = [&]<size_t size>(std::integral_constant<size_t, size>) {
    uint8_t head[size], tail[size];
    std::memcpy(head, from, size);
    std::memcpy(tail, from + count - size, size);
    std::memcpy(to, head, size);
    std::memcpy(to + count - size, tail, size);
  };
  if (count > 32)
    std::memcpy(to, from, static_cast<size_t>(count));
  else if (count >= 16)
    pair(std::integral_constant<size_t, 16>{});
  else if (count >= 8)
    pair(std::integral_constant<size_t, 8>{});
  else if (count >= 4)
    pair(std::integral_constant<size_t, 4>{});
  else
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

}  // namespace dais
