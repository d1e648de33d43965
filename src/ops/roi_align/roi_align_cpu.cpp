// Pooling of boxes in f32: the samples of a bin are worked out once, some at a time, and every
// channel is read at them.
#include <algorithm>

#include "base/threads.h"
#include "ops/roi_align/box_rules.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

constexpr int64_t kBlock = 64;  ///< samples that are worked out together

struct Taps {
  int64_t at[4];
  float weight[4];
};

class BoundRoiAlign : public BoundKernel {
 public:
  BoundRoiAlign(const RoiAlign& attrs, const Shape& image, int64_t boxes, bool wide_indices)
      : rules_(box_rules(attrs)),
        batches_(image[0]),
        channels_(image[1]),
        height_(image[2]),
        width_(image[3]),
        boxes_(boxes),
        wide_indices_(wide_indices),
        average_(attrs.mode == "avg") {}

  Fault run(const Arguments& arguments) noexcept override {
    for (int64_t n = 0; n < boxes_; ++n) {
      const int64_t batch = batch_of(arguments, n);
      if (batch < 0 || batch >= batches_)
        return {"a box belongs to a batch that is not there", batch};
      if (!grid_of(arguments, n).fits) return {"a box is too large to be sampled", n};
    }
    const int64_t rows = rules_.bin_rows;
    parallel_for(boxes_ * rows, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) run_bins(arguments, i / rows, i % rows);
    });
    return {};
  }

 private:
  int64_t batch_of(const Arguments& arguments, int64_t n) const {
    const int64_t batch = wide_indices_ ? static_cast<const int64_t*>(arguments.in[2])[n]
                                        : static_cast<const int32_t*>(arguments.in[2])[n];
    return batch < 0 ? batch + batches_ : batch;
  }

  BoxGrid grid_of(const Arguments& arguments, int64_t n) const {
    return BoxGrid::of(rules_, static_cast<const float*>(arguments.in[1]) + n * 4);
  }

  /// One row of a box's bins.
  void run_bins(const Arguments& arguments, int64_t n, int64_t row) const {
    const BoxGrid box = grid_of(arguments, n);
    const int64_t bins = rules_.bin_rows * rules_.bin_columns, area = height_ * width_;
    const float* image =
        static_cast<const float*>(arguments.in[0]) + batch_of(arguments, n) * channels_ * area;
    float* out =
        static_cast<float*>(arguments.out[0]) + n * channels_ * bins + row * rules_.bin_columns;
    for (int64_t column = 0; column < rules_.bin_columns; ++column)
      run_bin(box, row, column, image, out + column);
  }

  void run_bin(const BoxGrid& box, int64_t row, int64_t column, const float* image,
               float* out) const {
    const int64_t samples = box.rows * box.columns, area = height_ * width_;
    const int64_t bins = rules_.bin_rows * rules_.bin_columns;
    for (int64_t channel = 0; channel < channels_; ++channel) out[channel * bins] = 0;
    const float scale = average_ && samples > 0 ? 1.0F / static_cast<float>(samples) : 1.0F;
    for (int64_t first = 0; first < samples; first += kBlock) {
      Taps taps[kBlock];
      const int64_t count = std::min(kBlock, samples - first);
      for (int64_t k = 0; k < count; ++k) {
        const BoxSample one = box.sample(row, column, first + k, height_, width_);
        for (size_t i = 0; i < 4; ++i)
          taps[k].at[i] = one.at[i], taps[k].weight[i] = static_cast<float>(one.weight[i]);
      }
      for (int64_t channel = 0; channel < channels_; ++channel) {
        float& to = out[channel * bins];
        const float* plane = image + channel * area;
        if (average_)
          to += sum(taps, count, plane) * scale;
        else
          to = largest(taps, count, plane, first == 0 ? nullptr : &to);
      }
    }
  }

  static float sum(const Taps* taps, int64_t count, const float* plane) {
    float total = 0;
    for (int64_t k = 0; k < count; ++k)
      for (int i = 0; i < 4; ++i) total += taps[k].weight[i] * plane[taps[k].at[i]];
    return total;
  }

  static float largest(const Taps* taps, int64_t count, const float* plane, const float* before) {
    float top = before ? *before : taps[0].weight[0] * plane[taps[0].at[0]];
    for (int64_t k = 0; k < count; ++k)
      for (int i = 0; i < 4; ++i) top = std::max(top, taps[k].weight[i] * plane[taps[k].at[i]]);
    return top;
  }

  BoxRules rules_;
  int64_t batches_, channels_, height_, width_, boxes_;
  bool wide_indices_, average_;
};

class RoiAlignKernel : public Kernel {
 public:
  explicit RoiAlignKernel(const Node& node) : node_(node) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape &image = sizes.in[0], &boxes = sizes.in[1];
    const bool fits =
        image.rank() == 4 && boxes.rank() == 2 && boxes[1] == 4 && sizes.in[2] == Shape{boxes[0]};
    if (!fits || image[2] * image[3] == 0 || sizes.out[0].elements() == 0) return nullptr;
    return std::make_unique<BoundRoiAlign>(*node_.as<RoiAlign>(), image, boxes[0],
                                           node_.in[2]->type.dtype == DType::i64);
  }

 private:
  const Node& node_;
};

Verdict accepts(const KernelQuery& query) {
  if (query.in_dtype(0) != DType::f32 || query.in_dtype(1) != DType::f32)
    return no("features or boxes are not f32");
  const DType batches = query.in_dtype(2);
  return batches == DType::i64 || batches == DType::i32 ? yes() : no("batches of a rare type");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<RoiAlignKernel>(query.node);
}

}  // namespace

namespace ops {
void register_roi_align_cpu(Kernels& kernels) {
  kernels.add(
      {.name = "roi_align/bins", .op = &RoiAlign::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
