#include <algorithm>

#include "base/threads.h"
#include "ops/lrn/lrn.h"
#include "ops/lrn/lrn_loops.h"
#include "ops/window.h"
#include "runtime/kernel.h"

namespace dais {

namespace plain {
extern const LrnLoops lrn_loops;
}
namespace avx2 {
extern const LrnLoops lrn_loops;
}
namespace avx512 {
extern const LrnLoops lrn_loops;
}

const LrnLoops& lrn_loops(Isa isa) {
  if (isa >= Isa::avx512) return avx512::lrn_loops;
  return isa == Isa::avx2 ? avx2::lrn_loops : plain::lrn_loops;
}

namespace {

constexpr int64_t kBand = 64;  ///< row-major cells that one task takes
constexpr int64_t kGrain = 1 << 13;

class BoundLrn : public BoundKernel {
 public:
  BoundLrn(const LrnSizes& sizes, int64_t batch, bool channels_last, int threads,
           const LrnLoops& loops)
      : sizes_(sizes),
        batch_(batch),
        channels_last_(channels_last),
        threads_(threads),
        loops_(loops) {}

  size_t scratch_bytes() const override {
    return channels_last_ ? static_cast<size_t>(room() * threads_) * sizeof(float) : 0;
  }

  Fault run(const Arguments& arguments) noexcept override {
    const auto* x = static_cast<const float*>(arguments.in[0]);
    auto* y = static_cast<float*>(arguments.out[0]);
    if (channels_last_)
      run_cells(x, y, static_cast<float*>(arguments.scratch));
    else
      run_planes(x, y);
    return {};
  }

 private:
  /// Squares of one cell, in whole cache lines.
  int64_t room() const { return (sizes_.channels + sizes_.before + sizes_.after + 15) / 16 * 16; }

  void run_cells(const float* x, float* y, float* scratch) const {
    const int64_t cells = batch_ * sizes_.cells, channels = sizes_.channels;
    const int64_t tasks = cells * channels < kGrain ? 1 : threads_;
    parallel_for(tasks, 1, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task)
        for (int64_t cell = cells * task / tasks; cell < cells * (task + 1) / tasks; ++cell)
          loops_.cell(sizes_, x + cell * channels, y + cell * channels, scratch + task * room());
    });
  }

  void run_planes(const float* x, float* y) const {
    const int64_t bands = (sizes_.cells + kBand - 1) / kBand,
                  image = sizes_.cells * sizes_.channels;
    const int64_t grain = std::max<int64_t>(1, kGrain / (kBand * sizes_.channels));
    parallel_for(batch_ * bands, grain, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t at = task / bands * image + task % bands * kBand;
        loops_.planes(sizes_, x + at, y + at, std::min(kBand, sizes_.cells - task % bands * kBand));
      }
    });
  }

  LrnSizes sizes_;
  int64_t batch_;
  bool channels_last_;
  int threads_;
  const LrnLoops& loops_;
};

class LrnKernel : public Kernel {
 public:
  explicit LrnKernel(const KernelQuery& query)
      : attrs_(query.attrs<LRN>()), threads_(query.threads), loops_(lrn_loops(query.isa)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Activation x(sizes.in[0], attrs_.channels_last);
    LrnSizes out;
    out.channels = x.channels;
    out.cells = x.cells();
    out.before = (attrs_.size - 1) / 2;
    out.after = attrs_.size - 1 - out.before;
    out.share = attrs_.alpha / static_cast<float>(attrs_.size);
    out.bias = attrs_.bias;
    out.beta = attrs_.beta;
    return std::make_unique<BoundLrn>(out, x.batch, attrs_.channels_last, threads_, loops_);
  }

 private:
  LRN attrs_;
  int threads_;
  const LrnLoops& loops_;
};

Verdict accepts(const KernelQuery& query) {
  if (query.in_dtype(0) != DType::f32) return no("an element type other than f32");
  if (!query.in(0).ranked() || query.in(0).shape->size() < 2) return no("there is no channel axis");
  if (query.attrs<LRN>().size < 1 || query.attrs<LRN>().size > 1 << 16)
    return no("size is out of range");
  return yes();
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<LrnKernel>(query);
}

}  // namespace

namespace ops {
void register_lrn_cpu(Kernels& kernels) {
  kernels.add({.name = "lrn/loops", .op = &LRN::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
