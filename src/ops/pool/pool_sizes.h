#pragma once

#include "ir/call.h"
#include "ops/window.h"

namespace dais {

template <typename S, typename Context>
Window pool_window(const Context& c, const S& attrs) {
  return make_window(c, attrs.kernel_shape, attrs.strides, attrs.dilations, attrs.pads,
                     attrs.auto_pad, attrs.ceil_mode);
}

/// The sizes of one pooling.
struct PoolSizes {
  Window window;
  Activation x, y;
  std::vector<int64_t> begin;
  Taps taps;
};

template <typename S>
PoolSizes pool_sizes(const Call& c, const S& attrs, const Shape& x) {
  PoolSizes out{.window = pool_window(c, attrs), .x = {}, .y = {}, .begin = {}, .taps = {}};
  c.require(x.rank() >= 3 && out.window.rank() + 2 == x.rank(),
            "kernel_shape must have one entry per spatial axis");
  out.x = out.y = Activation(x, attrs.channels_last);
  for (size_t axis = 0; axis < out.window.rank(); ++axis) {
    out.y.space[axis] = out.window.positions(axis, out.x.space[axis]);
    out.begin.push_back(out.window.pad_begin(axis, out.x.space[axis], out.y.space[axis]));
  }
  out.taps = make_taps(out.window, out.begin, out.x.space, out.y.space);
  return out;
}

/// What the sum of each window of a plane is divided by for its mean.
std::vector<double> pool_divisors(const PoolSizes& sizes, bool include_pad);

Values gradient_max_pool(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_average_pool(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_lp_pool(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_global_average(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_global_max(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_global_lp(Graph& g, const Node& n, std::span<Value* const> dy);

}  // namespace dais
