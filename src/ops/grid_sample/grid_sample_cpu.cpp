// Sampling in f32: the elements and weights of a few places are worked out once, then every channel
// is sampled at them.
#include <algorithm>

#include "base/threads.h"
#include "ops/grid_sample/samplers.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

constexpr int64_t kTaps = 1024, kPlaces = 64;  ///< of one block
constexpr int64_t kParallelElements = 8192;

/// Elements of a channel and their weights, place after place.
struct Block {
  int64_t offset[kTaps];
  float weight[kTaps];
  int end[kPlaces];
  int size = 0;

  /// Adds the product of the axes' taps; those that stand for zero are left out.
  void add(const AxisSampler::Taps* taps, int count, const int64_t* steps, size_t axes, int place) {
    const int first = size;
    offset[size] = 0;
    weight[size++] = 1;
    for (size_t axis = 0; axis < axes; ++axis) cross(taps[axis], count, steps[axis], first);
    end[place] = size;
  }

 private:
  void cross(const AxisSampler::Taps& taps, int count, int64_t step, int first) {
    int64_t base[kMostTaps];
    float scale[kMostTaps];
    const int before = size - first;
    std::copy_n(offset + first, before, base);
    std::copy_n(weight + first, before, scale);
    size = first;
    for (int i = 0; i < before; ++i)
      for (int k = 0; k < count; ++k) {
        if (taps.index[k] < 0) continue;
        offset[size] = base[i] + taps.index[k] * step;
        weight[size++] = scale[i] * taps.weight[k];
      }
  }

  static constexpr int kMostTaps = 64;  ///< of a place: four along each of three axes
};

class BoundGridSample : public BoundKernel {
 public:
  BoundGridSample(const GridSample& attrs, const Shape& image, const Shape& out)
      : samplers_(make_samplers(attrs, image)),
        taps_(sample_taps(sample_mode(attrs))),
        batches_(image[0]),
        channels_(image[1]),
        area_(image.elements(2, image.rank())),
        places_(out.elements(2, out.rank())) {
    const Shape strides = strides_of(image);
    steps_.assign(strides.begin() + 2, strides.end());
    int64_t taps = 1;
    for (size_t axis = 0; axis < steps_.size(); ++axis) taps *= 4;
    block_ = std::min(kPlaces, kTaps / taps);
  }

  Fault run(const Arguments& arguments) noexcept override {
    const int64_t blocks = (places_ + block_ - 1) / block_;
    const int64_t grain = std::max<int64_t>(1, kParallelElements / (block_ * channels_));
    parallel_for(batches_ * blocks, grain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) run_block(arguments, i / blocks, i % blocks * block_);
    });
    return {};
  }

 private:
  void run_block(const Arguments& arguments, int64_t batch, int64_t first) const {
    const auto axes = steps_.size();
    const int64_t count = std::min(block_, places_ - first);
    const float* grid = static_cast<const float*>(arguments.in[1]) +
                        (batch * places_ + first) * static_cast<int64_t>(axes);
    Block block;
    AxisSampler::Taps taps[3];
    for (int place = 0; place < count; ++place, grid += axes) {
      for (size_t axis = 0; axis < axes; ++axis)
        taps[axis] = samplers_[axis].at(grid[axes - 1 - axis]);
      block.add(taps, taps_, steps_.data(), axes, place);
    }
    for (int64_t channel = batch * channels_; channel < (batch + 1) * channels_; ++channel) {
      const float* plane = static_cast<const float*>(arguments.in[0]) + channel * area_;
      float* out = static_cast<float*>(arguments.out[0]) + channel * places_ + first;
      for (int place = 0, at = 0; place < count; ++place) {
        float sum = 0;
        for (; at < block.end[place]; ++at) sum += plane[block.offset[at]] * block.weight[at];
        out[place] = sum;
      }
    }
  }

  std::vector<AxisSampler> samplers_;
  int taps_;
  std::vector<int64_t> steps_;
  int64_t batches_, channels_, area_, places_, block_;
};

class GridSampleKernel : public Kernel {
 public:
  explicit GridSampleKernel(const GridSample& attrs) : attrs_(attrs) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape &image = sizes.in[0], &grid = sizes.in[1];
    const auto axes = static_cast<int64_t>(image.rank()) - 2;
    const bool fits = axes >= 1 && axes <= 3 && grid.rank() == image.rank() &&
                      grid.back() == axes && grid[0] == image[0];
    if (!fits || image.elements() == 0 || sizes.out[0].elements() == 0) return nullptr;
    return std::make_unique<BoundGridSample>(attrs_, image, sizes.out[0]);
  }

 private:
  const GridSample& attrs_;
};

Verdict accepts(const KernelQuery& query) {
  if (query.in_dtype(0) != DType::f32 || query.in_dtype(1) != DType::f32)
    return no("image or grid is not f32");
  return yes();
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<GridSampleKernel>(query.attrs<GridSample>());
}

}  // namespace

namespace ops {
void register_grid_sample_cpu(Kernels& kernels) {
  kernels.add({.name = "grid_sample/blocks",
               .op = &GridSample::op,
               .accepts = accepts,
               .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
