// Rows of the gradients of pooling. Each image (channels-last) or plane (row-major) is one task.

#include <algorithm>

#include "base/threads.h"
#include "ops/pool/pool.h"
#include "ops/pool/pool_rows_cpu.h"
#include "ops/pool/pool_sizes.h"
#include "runtime/kernel.h"

namespace dais {

#define DAIS_POOL_LEVEL(level)                                                        \
  namespace level {                                                                   \
  void max_pool_spread(const float*, int64_t, const float*, float*, float*, int64_t); \
  void average_pool_spread(const float*, float*, int64_t, int64_t);                   \
  }
DAIS_POOL_LEVEL(plain)
DAIS_POOL_LEVEL(avx2)
DAIS_POOL_LEVEL(avx512)
#undef DAIS_POOL_LEVEL

namespace {

struct SpreadLoops {
  decltype(&plain::max_pool_spread) max;
  decltype(&plain::average_pool_spread) average;
};

const SpreadLoops& spread_loops(Isa isa) {
  static constexpr SpreadLoops levels[] = {{plain::max_pool_spread, plain::average_pool_spread},
                                           {avx2::max_pool_spread, avx2::average_pool_spread},
                                           {avx512::max_pool_spread, avx512::average_pool_spread}};
  return levels[std::min(static_cast<int>(isa), 2)];
}

/// One task: where its elements lie, and how many are adjacent for one place.
struct Part {
  int64_t x, y;
};

class BoundSpread : public BoundKernel {
 public:
  BoundSpread(PoolSizes sizes, bool channels_last, const SpreadLoops& loops)
      : sizes_(std::move(sizes)), loops_(loops) {
    width_ = channels_last ? sizes_.x.channels : 1;
    tasks_ = sizes_.x.batch * (channels_last ? 1 : sizes_.x.channels);
    x_size_ = sizes_.x.cells() * width_;
    y_size_ = sizes_.y.cells() * width_;
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(tasks_ * y_size_) * sizeof(float);
  }

 protected:
  template <typename Body>
  void each_task(Body&& body) const {
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(x_size_, 1));
    parallel_for(tasks_, grain, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) body(Part{task * x_size_, task * y_size_});
    });
  }
  /// Calls body(x offset, y offset, step, count) for the runs of a task.
  template <typename Body>
  void each_run(Body&& body) const {
    for (const Tap& tap : sizes_.taps.list) {
      if (width_ == 1) {
        body(tap.in, tap.out, sizes_.taps.step, tap.count);
        continue;
      }
      for (int64_t i = 0; i < tap.count; ++i)
        body((tap.in + i * sizes_.taps.step) * width_, (tap.out + i) * width_, int64_t{1}, width_);
    }
  }

  PoolSizes sizes_;
  const SpreadLoops& loops_;
  int64_t width_ = 1, tasks_ = 0, x_size_ = 0, y_size_ = 0;
};

class BoundMax : public BoundSpread {
 public:
  using BoundSpread::BoundSpread;
  Fault run(const Arguments& arguments) noexcept override {
    const auto* dy = static_cast<const float*>(arguments.in[0]);
    const auto* x = static_cast<const float*>(arguments.in[1]);
    const auto* y = static_cast<const float*>(arguments.in[2]);
    auto* left = static_cast<float*>(arguments.scratch);
    auto* dx = static_cast<float*>(arguments.out[0]);
    each_task([&](const Part& part) {
      std::copy_n(dy + part.y, y_size_, left + part.y);
      std::fill_n(dx + part.x, x_size_, 0.0F);
      each_run([&](int64_t from, int64_t to, int64_t step, int64_t count) {
        loops_.max(x + part.x + from, step, y + part.y + to, left + part.y + to, dx + part.x + from,
                   count);
      });
    });
    return {};
  }
};

class BoundAverage : public BoundSpread {
 public:
  BoundAverage(PoolSizes sizes, const AveragePoolBackward& attrs, const SpreadLoops& loops)
      : BoundSpread(std::move(sizes), attrs.channels_last, loops) {
    shares_.assign(static_cast<size_t>(sizes_.y.cells()), 1.0F);
    if (attrs.sum) return;
    const auto counts = pool_divisors(sizes_, attrs.count_include_pad);
    for (size_t i = 0; i < shares_.size(); ++i) shares_[i] = static_cast<float>(1 / counts[i]);
  }
  Fault run(const Arguments& arguments) noexcept override {
    const auto* dy = static_cast<const float*>(arguments.in[0]);
    auto* scaled = static_cast<float*>(arguments.scratch);
    auto* dx = static_cast<float*>(arguments.out[0]);
    each_task([&](const Part& part) {
      for (size_t place = 0; place < shares_.size(); ++place) {
        const int64_t at = part.y + static_cast<int64_t>(place) * width_;
        for (int64_t i = at; i < at + width_; ++i) scaled[i] = dy[i] * shares_[place];
      }
      std::fill_n(dx + part.x, x_size_, 0.0F);
      each_run([&](int64_t from, int64_t to, int64_t step, int64_t count) {
        loops_.average(scaled + part.y + to, dx + part.x + from, step, count);
      });
    });
    return {};
  }

 private:
  std::vector<float> shares_;
};

/// Sizes of a binding, from attributes that were checked when the node was made.
template <typename S>
std::optional<PoolSizes> sizes_of(const S& attrs, const Shape& x) {
  PoolSizes out;
  if (!fill_window(out.window, attrs.kernel_shape, attrs.strides, attrs.dilations, attrs.pads,
                   attrs.auto_pad, attrs.ceil_mode)
           .empty() ||
      x.rank() != out.window.rank() + 2)
    return std::nullopt;
  out.x = out.y = Activation(x, attrs.channels_last);
  for (size_t axis = 0; axis < out.window.rank(); ++axis) {
    out.y.space[axis] = out.window.positions(axis, out.x.space[axis]);
    out.begin.push_back(out.window.pad_begin(axis, out.x.space[axis], out.y.space[axis]));
  }
  out.taps = make_taps(out.window, out.begin, out.x.space, out.y.space);
  return out;
}

class SpreadKernel : public Kernel {
 public:
  explicit SpreadKernel(const KernelQuery& query)
      : node_(query.node), loops_(spread_loops(query.isa)) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    if (const auto* attrs = node_.as<MaxPoolBackward>()) {
      auto found = sizes_of(*attrs, sizes.in[1]);
      if (!found || !(sizes.in[0] == found->y.shape(attrs->channels_last))) return nullptr;
      return std::make_unique<BoundMax>(std::move(*found), attrs->channels_last, loops_);
    }
    const auto& attrs = *node_.as<AveragePoolBackward>();
    auto found = sizes_of(attrs, sizes.out[0]);
    if (!found || !(sizes.in[0] == found->y.shape(attrs.channels_last))) return nullptr;
    return std::make_unique<BoundAverage>(std::move(*found), attrs, loops_);
  }

 private:
  const Node& node_;
  const SpreadLoops& loops_;
};

Verdict accepts(const KernelQuery& query) {
  return query.in_dtype(0) == DType::f32 ? yes() : no("an element type other than f32");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<SpreadKernel>(query);
}

}  // namespace

void register_pool_backward(Kernels& kernels) {
  for (const Op* op : {&MaxPoolBackward::op, &AveragePoolBackward::op})
    kernels.add({.name = op == &MaxPoolBackward::op ? "max_pool_backward/loops"
                                                    : "average_pool_backward/loops",
                 .op = op,
                 .isa = Isa::plain,
                 .accepts = accepts,
                 .prepare = prepare});
}

}  // namespace dais
