// Blocks of channels to blocks of pixels, by whole rows of the result. Bound by memory.

#include <algorithm>

#include "base/threads.h"
#include "ops/depth_to_space/depth_to_space.h"
#include "ops/transpose/copy_plan_cpu.h"
#include "ops/window.h"

namespace dais {
namespace {

constexpr int64_t kGrain = 1 << 14;

struct Picture {
  int64_t batch, height, width, channels;  ///< of the result
  int64_t block;
  bool inner;
};

/// Row `row` of batch * height of a channels-last result.
void last_row(const Picture& p, const uint32_t* x, uint32_t* y, int64_t row) {
  const int64_t part = row % p.block, run = p.block * p.channels;
  const int64_t depth = run * p.block, columns = p.width / p.block;
  const uint32_t* from = x + row / p.block * columns * depth;
  uint32_t* to = y + row * p.width * p.channels;
  if (!p.inner || p.channels == 1) {
    for (int64_t w = 0; w < columns; ++w)
      std::copy_n(from + w * depth + part * run, run, to + w * run);
    return;
  }
  const int64_t square = p.block * p.block;
  for (int64_t w = 0; w < columns; ++w)
    for (int64_t b = 0; b < p.block; ++b)
      for (int64_t c = 0; c < p.channels; ++c)
        *to++ = from[w * depth + c * square + part * p.block + b];
}

/// Row `row` of batch * channels * height of a row-major result.
void first_row(const Picture& p, const uint32_t* x, uint32_t* y, int64_t row) {
  const int64_t h = row % p.height, c = row / p.height % p.channels;
  const int64_t n = row / (p.height * p.channels), part = h % p.block;
  const int64_t columns = p.width / p.block, plane = p.height / p.block * columns;
  const int64_t square = p.block * p.block;
  uint32_t* to = y + row * p.width;
  for (int64_t b = 0; b < p.block; ++b) {
    const int64_t within = part * p.block + b;
    const int64_t channel = p.inner ? c * square + within : within * p.channels + c;
    const uint32_t* from = x + (n * p.channels * square + channel) * plane + h / p.block * columns;
    for (int64_t w = 0; w < columns; ++w) to[w * p.block + b] = from[w];
  }
}

Fault run(const Node& node, const Sizes& sizes, const Arguments& arguments) noexcept {
  const auto& attrs = *node.as<DepthToSpace>();
  const bool last = attrs.channels_last;
  const Shape& y = sizes.out[0];
  const Picture picture{y[0],
                        y[last ? 1 : 2],
                        y[last ? 2 : 3],
                        y[last ? 3 : 1],
                        attrs.blocksize,
                        attrs.mode == "CRD"};
  const auto* from = static_cast<const uint32_t*>(arguments.in[0]);
  auto* to = static_cast<uint32_t*>(arguments.out[0]);
  const int64_t row_size = picture.width * (last ? picture.channels : 1);
  const int64_t rows = picture.batch * picture.height * (last ? 1 : picture.channels);
  const auto one_row = last ? last_row : first_row;
  parallel_for(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(row_size, 1)),
               [&](int64_t first, int64_t end) {
                 for (int64_t row = first; row < end; ++row) one_row(picture, from, to, row);
               });
  return {};
}

Verdict accepts(const KernelQuery& query) {
  return query.in_dtype(0) == DType::f32 ? yes() : no("an element type other than f32");
}

}  // namespace

namespace ops {
void register_depth_to_space_cpu(Kernels& kernels) {
  kernels.add({.name = "depth_to_space/rows",
               .op = &DepthToSpace::op,
               .accepts = accepts,
               .prepare = simple<run>});
  kernels.add({.name = "depth_to_space/copy",
               .op = &DepthToSpace::op,
               .accepts = accepts_copy<>,
               .prepare = copies<depth_to_space_moves>,
               .priority = -1});
  kernels.add({.name = "space_to_depth/copy",
               .op = &SpaceToDepth::op,
               .accepts = accepts_copy<>,
               .prepare = copies<space_to_depth_moves>});
}
}  // namespace ops
}  // namespace dais
