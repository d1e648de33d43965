// The gradient of layer normalisation: rows as the forward direction has them. Sums for scale and
// bias are made by chunk of rows, whose number follows from the sizes alone, and added up in f64.

#include <algorithm>

#include "base/threads.h"
#include "ops/norm/batch_rows_cpu.h"
#include "ops/norm/norm.h"
#include "runtime/kernel.h"

namespace dais {

#define DAIS_LAYER_LEVEL(level)                                                                   \
  namespace level {                                                                               \
  void layer_norm_back_rows(const float*, const float*, const float*, const float*, const float*, \
                            int64_t, int64_t, float*, float*, float*);                            \
  }
DAIS_LAYER_LEVEL(plain)
DAIS_LAYER_LEVEL(avx2)
DAIS_LAYER_LEVEL(avx512)
#undef DAIS_LAYER_LEVEL

namespace {

using Loop = decltype(&plain::layer_norm_back_rows);
Loop loop_of(Isa isa) {
  static constexpr Loop levels[] = {plain::layer_norm_back_rows, avx2::layer_norm_back_rows,
                                    avx512::layer_norm_back_rows};
  return levels[std::min(static_cast<int>(isa), 2)];
}

constexpr int64_t kChunk = 64;  ///< rows whose sums are kept in f32

class BoundLayerBack : public BoundKernel {
 public:
  BoundLayerBack(Loop loop, int64_t rows, int64_t size)
      : loop_(loop), rows_(rows), size_(size), chunks_((rows + kChunk - 1) / kChunk) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(chunks_ * 2 * size_) * sizeof(float);
  }

  Fault run(const Arguments& arguments) noexcept override {
    const auto in = [&](size_t i) { return static_cast<const float*>(arguments.in[i]); };
    auto* sums = static_cast<float*>(arguments.scratch);
    auto* dx = static_cast<float*>(arguments.out[0]);
    std::fill_n(sums, chunks_ * 2 * size_, 0.0F);
    const int64_t grain = std::max<int64_t>(1, 16384 / (kChunk * size_));
    parallel_for(chunks_, grain, [&](int64_t first, int64_t last) {
      for (int64_t chunk = first; chunk < last; ++chunk) {
        const int64_t row = chunk * kChunk, at = row * size_;
        float* dscale = sums + chunk * 2 * size_;
        loop_(in(0) + at, in(1) + at, in(2), in(3) + row, in(4) + row,
              std::min(kChunk, rows_ - row), size_, dx + at, dscale, dscale + size_);
      }
    });
    for (size_t i = 0; i < 2; ++i)
      if (i + 1 < arguments.out.size() && arguments.out[i + 1])
        add_up(sums + static_cast<int64_t>(i) * size_, static_cast<float*>(arguments.out[i + 1]));
    return {};
  }

 private:
  void add_up(const float* sums, float* out) const {
    for (int64_t i = 0; i < size_; ++i) {
      double total = 0;
      for (int64_t chunk = 0; chunk < chunks_; ++chunk)
        total += static_cast<double>(sums[chunk * 2 * size_ + i]);
      out[i] = static_cast<float>(total);
    }
  }

  Loop loop_;
  int64_t rows_, size_, chunks_;
};

class LayerBackKernel : public Kernel {
 public:
  explicit LayerBackKernel(const KernelQuery& query)
      : node_(query.node), loop_(loop_of(query.isa)) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape &x = sizes.in[1], &scale = sizes.in[2];
    const size_t axis = normalize_axis(node_.as<LayerNormalizationBackward>()->axis, x.rank());
    const int64_t rows = x.elements(0, axis), size = x.elements(axis, x.rank());
    if (rows == 0 || size == 0 || scale.elements() != size || !(sizes.in[0] == x) ||
        sizes.in[3].elements() != rows || sizes.in[4].elements() != rows)
      return nullptr;
    return std::make_unique<BoundLayerBack>(loop_, rows, size);
  }

 private:
  const Node& node_;
  Loop loop_;
};

Verdict accepts(const KernelQuery& query) {
  for (size_t i = 0; i < query.node.in.size(); ++i)
    if (query.in_dtype(i) != DType::f32) return no("an element type other than f32");
  const Type &x = query.in(1), &scale = query.in(2);
  if (!x.ranked() || !scale.ranked()) return no("a rank is unknown");
  const size_t axis =
      normalize_axis(query.attrs<LayerNormalizationBackward>().axis, x.shape->size());
  const Dims row(x.shape->begin() + static_cast<std::ptrdiff_t>(axis), x.shape->end());
  return *scale.shape == row ? yes() : no("scale does not have one value per element of a row");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<LayerBackKernel>(query);
}

}  // namespace

void register_layer_norm_backward(Kernels& kernels) {
  kernels.add({.name = "layer_norm_backward/rows",
               .op = &LayerNormalizationBackward::op,
               .isa = Isa::plain,
               .accepts = accepts,
               .prepare = prepare});
}

}  // namespace dais
