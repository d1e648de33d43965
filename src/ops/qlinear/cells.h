#pragma once

#include "ops/window.h"

namespace dais {

/// Which cells of X the window positions of one image see, for up to three spatial axes.
struct Cells {
  Window window;
  std::vector<int64_t> in, out, begin;
  int64_t taps = 1;

  Cells() = default;
  Cells(const Window& of, const Activation& x, const Activation& y)
      : window(of), in(x.space), out(y.space) {
    for (size_t axis = 0; axis < in.size(); ++axis) {
      begin.push_back(window.pad_begin(axis, in[axis], out[axis]));
      taps *= window.kernel[axis];
    }
  }

  int64_t positions() const {
    int64_t count = 1;
    for (const int64_t size : out) count *= size;
    return count;
  }

  /// Calls body(tap, cell, or -1 in the padding) for every tap of a position.
  template <typename Body>
  void visit(int64_t position, Body&& body) const {
    const size_t rank = in.size();
    int64_t start[3] = {}, cell[3] = {};
    for (size_t axis = rank; axis-- > 0;) {
      start[axis] = position % out[axis] * window.strides[axis] - begin[axis];
      position /= out[axis];
    }
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t from = 0;
      for (size_t axis = 0; axis < rank; ++axis) {
        const int64_t at = start[axis] + cell[axis] * window.dilations[axis];
        from = at < 0 || at >= in[axis] || from < 0 ? -1 : from * in[axis] + at;
      }
      body(tap, from);
      for (size_t axis = rank; axis-- > 0;) {
        if (++cell[axis] < window.kernel[axis]) break;
        cell[axis] = 0;
      }
    }
  }
};

}  // namespace dais
