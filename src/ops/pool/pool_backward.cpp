// Gradients of pooling, and what average pooling divides by.
#include <algorithm>

#include "base/threads.h"
#include "ir/inference.h"
#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gradient.h"
#include "ops/pool/pool.h"
#include "ops/pool/pool_sizes.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"
#include "ops/wide.h"

namespace dais {
namespace {

/// How many cells of the window at `position` lie within the padded axis.
int64_t cells_within(const PoolSizes& s, size_t axis, int64_t position) {
  const Window& w = s.window;
  const bool given = w.padding == Window::Padding::given;
  const int64_t start = position * w.strides[axis] - s.begin[axis];
  const int64_t end_pad =
      given ? w.pads[w.rank() + axis]
            : std::max<int64_t>((s.y.space[axis] - 1) * w.strides[axis] + w.extent(axis) -
                                    s.x.space[axis] - s.begin[axis],
                                0);
  const int64_t limit = s.x.space[axis] + end_pad;
  return std::clamp<int64_t>((limit - start + w.dilations[axis] - 1) / w.dilations[axis], 0,
                             w.kernel[axis]);
}

void infer_max(Inference& c) {
  c.set(0, c.dtype(1));
  c.set(0, c.dtype(1), c.shape(1));
}

void reference_max(Call& c) {
  const auto& attrs = c.attrs<MaxPoolBackward>();
  const Tensor& x = c.in(1);
  const PoolSizes s = pool_sizes(c, attrs, x.shape());
  const Shape shape = s.y.shape(attrs.channels_last);
  c.require(c.in(0).shape() == shape && c.in(2).shape() == shape,
            "dy and Y are not of the output's shape");
  const auto dy = load_channels_first<double>(c.in(0), attrs.channels_last);
  const auto values = load_channels_first<double>(x, attrs.channels_last);
  const auto tops = load_channels_first<double>(c.in(2), attrs.channels_last);
  const int64_t planes = s.x.batch * s.x.channels, step = s.taps.step;
  const int64_t x_cells = s.x.cells(), y_cells = s.y.cells();
  std::vector<double> out(values.size());
  parallel_for(planes, 1, [&](int64_t first, int64_t last) {
    for (int64_t plane = first; plane < last; ++plane) {
      std::vector<bool> found(static_cast<size_t>(y_cells));
      const double* from = values.data() + plane * x_cells;
      for (const Tap& tap : s.taps.list)
        for (int64_t i = 0; i < tap.count; ++i) {
          const int64_t cell = tap.in + i * step, position = tap.out + i;
          const auto at = static_cast<size_t>(plane * y_cells + position);
          if (found[static_cast<size_t>(position)] || from[cell] != tops[at]) continue;
          found[static_cast<size_t>(position)] = true;
          out[static_cast<size_t>(plane * x_cells + cell)] += dy[at];
        }
    }
  });
  store_channels_first(c.out(0, x.shape()), std::move(out), attrs.channels_last);
}

void infer_average(Inference& c) {
  c.set(0, c.dtype(0));
  if (const auto sizes = c.known(1)) return c.set(0, c.dtype(0), *sizes);
  const bool last = c.attrs<AveragePoolBackward>().channels_last;
  const Dims& dy = c.shape(0);
  c.require(dy.size() >= 3, "dy must have at least one spatial axis");
  Dims space = space_of(dy, last);
  for (Dim& size : space) size = c.fresh();
  c.set(0, c.dtype(0), activation_dims(dy[0], dy[channel_axis(dy.size(), last)], space, last));
}

void reference_average(Call& c) {
  const auto& attrs = c.attrs<AveragePoolBackward>();
  const Shape shape(c.in(1).to_ints());
  const PoolSizes s = pool_sizes(c, attrs, shape);
  c.require(c.in(0).shape() == s.y.shape(attrs.channels_last), "dy is not of the output's shape");
  auto dy = load_channels_first<double>(c.in(0), attrs.channels_last);
  if (!attrs.sum) {
    const auto counts = pool_divisors(s, attrs.count_include_pad);
    for (size_t i = 0; i < dy.size(); ++i) dy[i] /= counts[i % counts.size()];
  }
  const int64_t planes = s.x.batch * s.x.channels, step = s.taps.step;
  const int64_t x_cells = s.x.cells(), y_cells = s.y.cells();
  std::vector<double> out(static_cast<size_t>(planes * x_cells));
  parallel_for(planes, 1, [&](int64_t first, int64_t last) {
    for (int64_t plane = first; plane < last; ++plane)
      for (const Tap& tap : s.taps.list)
        for (int64_t i = 0; i < tap.count; ++i)
          out[static_cast<size_t>(plane * x_cells + tap.in + i * step)] +=
              dy[static_cast<size_t>(plane * y_cells + tap.out + i)];
  });
  store_channels_first(c.out(0, shape), std::move(out), attrs.channels_last);
}

/// The window of any pooling op.
template <typename To, typename From>
To window_like(const From& from) {
  To out;
  out.auto_pad = from.auto_pad;
  out.ceil_mode = from.ceil_mode;
  out.dilations = from.dilations;
  out.kernel_shape = from.kernel_shape;
  out.pads = from.pads;
  out.strides = from.strides;
  out.channels_last = from.channels_last;
  return out;
}

/// x^(p-1) with the sign of x.
Term signed_power(const Term& x, int64_t p) {
  if (p == 1) return apply<Sign>(x);
  if (p == 2) return x;
  Graph& g = *x.graph;
  Value* power = number_like(g, static_cast<double>(p - 1), x);
  return apply<Sign>(x) * Term(g, g.add(Pow{}, {apply<Abs>(x), power}));
}

/// dy / y^(p-1), zero where y is.
Term over_norm(const Term& dy, const Term& y, int64_t p) {
  if (p == 1) return dy;
  Graph& g = *dy.graph;
  Term power = y;
  if (p > 2) power = Term(g, g.add(Pow{}, {y, number_like(g, static_cast<double>(p - 1), y)}));
  return where(y > 0, dy / power, 0);
}

}  // namespace

std::vector<double> pool_divisors(const PoolSizes& s, bool include_pad) {
  std::vector<double> out(static_cast<size_t>(s.y.cells()), include_pad ? 1 : 0);
  if (!include_pad) {
    for (const Tap& tap : s.taps.list)
      for (int64_t i = 0; i < tap.count; ++i) ++out[static_cast<size_t>(tap.out + i)];
    return out;
  }
  int64_t inner = 1;
  for (size_t axis = s.window.rank(); axis-- > 0;) {
    const int64_t size = s.y.space[axis];
    for (size_t i = 0; i < out.size(); ++i)
      out[i] *= static_cast<double>(cells_within(s, axis, static_cast<int64_t>(i) / inner % size));
    inner *= size;
  }
  return out;
}

Values gradient_max_pool(Graph& g, const Node& n, std::span<Value* const> dy) {
  return {g.add(window_like<MaxPoolBackward>(*n.as<MaxPool>()), {dy[0], n.in[0], n.outs[0]})};
}

Values gradient_average_pool(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<AveragePool>();
  auto back = window_like<AveragePoolBackward>(attrs);
  back.count_include_pad = attrs.count_include_pad;
  return {g.add(back, {dy[0], sizes_of(g, n.in[0])})};
}

Values gradient_lp_pool(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<LpPool>();
  auto back = window_like<AveragePoolBackward>(attrs);
  back.sum = true;
  const Term scaled = over_norm({g, dy[0]}, {g, n.outs[0]}, attrs.p);
  const Term spread(g, g.add(back, {scaled, sizes_of(g, n.in[0])}));
  return {spread * signed_power({g, n.in[0]}, attrs.p)};
}

Values gradient_global_average(Graph& g, const Node& n, std::span<Value* const> dy) {
  const Term from(g, dy[0]);
  rank_for_gradient(n, n.in[0]);
  const bool last = n.as<GlobalAveragePool>()->channels_last;
  const Dims space = space_of(*n.in[0]->type.shape, last);
  const Dim cells = product(space, 0, space.size());
  if (cells.is_constant())
    return {expand_like(g, from / static_cast<double>(*cells.constant()), n.in[0])};
  Value* count = g.add(Div{}, {g.add(Size{}, {n.in[0]}), g.add(Size{}, {dy[0]})});
  const Term number(g, g.add(Cast{.to = dy[0]->type.dtype}, {count}));
  return {expand_like(g, from / number, n.in[0])};
}

Values gradient_global_max(Graph& g, const Node& n, std::span<Value* const> dy) {
  const Term chosen(g, g.add(Equal{}, {n.in[0], n.outs[0]}));
  const Term ones(g, g.add(Cast{.to = dy[0]->type.dtype}, {chosen}));
  return {ones * (Term(g, dy[0]) / Term(g, reduce_to(g, ones, n.outs[0])))};
}

Values gradient_global_lp(Graph& g, const Node& n, std::span<Value* const> dy) {
  const int64_t p = n.as<GlobalLpPool>()->p;
  return {over_norm({g, dy[0]}, {g, n.outs[0]}, p) * signed_power({g, n.in[0]}, p)};
}

namespace {

/// Both are linear in dy: their gradients gather what they spread.
Values gradient_average_back(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<AveragePoolBackward>();
  if (attrs.sum) no_gradient(n, "the gradient of a sum over windows is not differentiated again");
  auto forward = window_like<AveragePool>(attrs);
  forward.count_include_pad = attrs.count_include_pad;
  return {g.add(forward, {dy[0]}), nullptr};
}

}  // namespace

const Op MaxPoolBackward::op{
    .name = "max_pool_backward",
    .attrs = &AttrsOf<MaxPoolBackward>::info,
    .infer = infer_max,
    .reference = reference_max,
    .onnx = {{.type = "MaxPoolBackward", .domain = "dais"}},
};
const Op AveragePoolBackward::op{
    .name = "average_pool_backward",
    .attrs = &AttrsOf<AveragePoolBackward>::info,
    .infer = infer_average,
    .reference = reference_average,
    .gradient = gradient_average_back,
    .onnx = {{.type = "AveragePoolBackward", .domain = "dais"}},
};

}  // namespace dais
