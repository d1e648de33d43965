// Pooling of f32 in both layouts, windowed and global.

#include <algorithm>

#include "base/threads.h"
#include "ops/pool/pool.h"
#include "ops/pool/pool_loops.h"
#include "ops/pool/pool_rows_cpu.h"
#include "ops/window.h"
#include "runtime/kernel.h"

namespace dais {

namespace plain {
extern const PoolLoops pool_loops;
}
namespace avx2 {
extern const PoolLoops pool_loops;
}
namespace avx512 {
extern const PoolLoops pool_loops;
}

const PoolLoops& pool_loops(Isa isa) {
  if (isa >= Isa::avx512) return avx512::pool_loops;
  return isa == Isa::avx2 ? avx2::pool_loops : plain::pool_loops;
}

namespace {

/// Work that is worth a thread of its own, in elements read.
constexpr int64_t kGrainElements = 1 << 15;

int64_t grain_of(int64_t elements_each) {
  return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(elements_each, 1));
}

template <typename S>
constexpr bool is_average = std::is_same_v<S, AveragePool> || std::is_same_v<S, GlobalAveragePool>;

class BoundWindows : public BoundKernel {
 public:
  BoundWindows(PoolSizes sizes, std::vector<float> factors, bool channels_last,
               const PoolLoops& loops)
      : sizes_(sizes), factors_(std::move(factors)), channels_last_(channels_last), loops_(loops) {
    sizes_.factors = factors_.data();
  }

  Fault run(const Arguments& arguments) noexcept override {
    const auto* x = static_cast<const float*>(arguments.in[0]);
    auto* y = static_cast<float*>(arguments.out[0]);
    const PoolSizes& s = sizes_;
    const int64_t window = s.kernel[0] * s.kernel[1] * s.kernel[2];
    const int64_t row = s.out[2] * window;
    if (channels_last_)
      parallel_for(s.batch * s.out[0] * s.out[1], grain_of(row * s.channels),
                   [&](int64_t first, int64_t last) { loops_.rows(s, x, y, first, last); });
    else
      parallel_for(s.batch * s.channels, grain_of(row * s.out[0] * s.out[1]),
                   [&](int64_t first, int64_t last) { loops_.planes(s, x, y, first, last); });
    return {};
  }

 private:
  PoolSizes sizes_;
  std::vector<float> factors_;
  bool channels_last_;
  const PoolLoops& loops_;
};

/// Cells of a window axis that count towards a mean.
int64_t counted_cells(const Window& w, size_t axis, int64_t size, int64_t begin, int64_t positions,
                      int64_t position, bool include_pad) {
  const int64_t start = position * w.strides[axis] - begin, step = w.dilations[axis];
  int64_t low = 0, limit = size;
  if (include_pad) {
    const bool given = w.padding == Window::Padding::given;
    const int64_t reach = (positions - 1) * w.strides[axis] + w.extent(axis) - size - begin;
    limit += given ? w.pads[w.rank() + axis] : std::max<int64_t>(reach, 0);
  } else if (start < 0) {
    low = (-start + step - 1) / step;
  }
  const int64_t high = std::clamp<int64_t>((limit - start + step - 1) / step, 0, w.kernel[axis]);
  return std::max<int64_t>(high - low, 0);
}

std::vector<float> mean_factors(const Window& w, const Activation& x, const Activation& y,
                                bool include_pad) {
  std::vector<double> counts(static_cast<size_t>(y.cells()), 1);
  int64_t inner = 1;
  for (size_t axis = w.rank(); axis-- > 0;) {
    const int64_t positions = y.space[axis];
    const int64_t begin = w.pad_begin(axis, x.space[axis], positions);
    for (size_t i = 0; i < counts.size(); ++i)
      counts[i] *= static_cast<double>(counted_cells(w, axis, x.space[axis], begin, positions,
                                                     static_cast<int64_t>(i) / inner % positions,
                                                     include_pad));
    inner *= positions;
  }
  std::vector<float> out;
  for (const double count : counts) out.push_back(static_cast<float>(1 / count));
  return out;
}

template <typename S>
class WindowKernel : public Kernel {
 public:
  explicit WindowKernel(const KernelQuery& query)
      : attrs_(query.attrs<S>()), loops_(pool_loops(query.isa)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    Window window;
    if (!fill_window(window, attrs_.kernel_shape, attrs_.strides, attrs_.dilations, attrs_.pads,
                     attrs_.auto_pad, attrs_.ceil_mode)
             .empty())
      return nullptr;
    const Activation x(sizes.in[0], attrs_.channels_last), y(sizes.out[0], attrs_.channels_last);
    PoolSizes out;
    out.batch = x.batch;
    out.channels = x.channels;
    out.average = is_average<S>;
    const size_t skipped = 3 - window.rank();
    for (size_t axis = 0; axis < window.rank(); ++axis) {
      const size_t to = skipped + axis;
      out.in[to] = x.space[axis];
      out.out[to] = y.space[axis];
      out.kernel[to] = window.kernel[axis];
      out.stride[to] = window.strides[axis];
      out.dilation[to] = window.dilations[axis];
      out.begin[to] = window.pad_begin(axis, x.space[axis], y.space[axis]);
    }
    std::vector<float> factors;
    if constexpr (is_average<S>) factors = mean_factors(window, x, y, attrs_.count_include_pad);
    return std::make_unique<BoundWindows>(out, std::move(factors), attrs_.channels_last, loops_);
  }

 private:
  S attrs_;
  const PoolLoops& loops_;
};

class BoundGlobal : public BoundKernel {
 public:
  BoundGlobal(Activation sizes, bool average, bool channels_last, const PoolLoops& loops)
      : sizes_(std::move(sizes)),
        cells_(sizes_.cells()),
        average_(average),
        channels_last_(channels_last),
        loops_(loops) {}

  Fault run(const Arguments& arguments) noexcept override {
    const auto* x = static_cast<const float*>(arguments.in[0]);
    auto* y = static_cast<float*>(arguments.out[0]);
    const int64_t channels = sizes_.channels;
    if (!channels_last_) {
      parallel_for(sizes_.batch * channels, grain_of(cells_), [&](int64_t first, int64_t last) {
        for (int64_t plane = first; plane < last; ++plane)
          y[plane] = loops_.plane(average_, x + plane * cells_, cells_);
      });
      return {};
    }
    constexpr int64_t band = 16;  // a cache line of channels
    const int64_t bands = (channels + band - 1) / band;
    parallel_for(sizes_.batch * bands, grain_of(cells_ * band), [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t n = task / bands, c = task % bands * band;
        loops_.columns(average_, x + n * cells_ * channels + c, cells_, channels,
                       std::min(band, channels - c), y + n * channels + c);
      }
    });
    return {};
  }

 private:
  Activation sizes_;
  int64_t cells_;
  bool average_, channels_last_;
  const PoolLoops& loops_;
};

template <typename S>
class GlobalKernel : public Kernel {
 public:
  explicit GlobalKernel(const KernelQuery& query)
      : channels_last_(query.attrs<S>().channels_last), loops_(pool_loops(query.isa)) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    return std::make_unique<BoundGlobal>(Activation(sizes.in[0], channels_last_), is_average<S>,
                                         channels_last_, loops_);
  }

 private:
  bool channels_last_;
  const PoolLoops& loops_;
};

Verdict accepts_f32(const KernelQuery& query) {
  return query.in_dtype(0) == DType::f32 ? yes() : no("an element type other than f32");
}

Verdict accepts_window(const KernelQuery& query) {
  if (query.node.outs.size() > 1) return no("indices are wanted too");
  if (!query.in(0).ranked() || query.in(0).shape->size() > 5)
    return no("one to three spatial axes are wanted");
  return accepts_f32(query);
}

Verdict accepts_global(const KernelQuery& query) {
  if (!query.in(0).ranked() || query.in(0).shape->size() < 3)
    return no("at least one spatial axis is wanted");
  return accepts_f32(query);
}

template <typename KernelType>
std::unique_ptr<Kernel> make(const KernelQuery& query) {
  return std::make_unique<KernelType>(query);
}

}  // namespace

namespace ops {
void register_pool_cpu(Kernels& kernels) {
  register_pool_backward(kernels);
  const auto window = [&]<typename S>(std::string_view name) {
    kernels.add(
        {.name = name, .op = &S::op, .accepts = accepts_window, .prepare = make<WindowKernel<S>>});
  };
  const auto global = [&]<typename S>(std::string_view name) {
    kernels.add(
        {.name = name, .op = &S::op, .accepts = accepts_global, .prepare = make<GlobalKernel<S>>});
  };
  window.operator()<MaxPool>("max_pool/loops");
  window.operator()<AveragePool>("average_pool/loops");
  global.operator()<GlobalAveragePool>("global_average_pool/loops");
  global.operator()<GlobalMaxPool>("global_max_pool/loops");
}
}  // namespace ops
}  // namespace dais
