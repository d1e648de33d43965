#include <algorithm>

#include "backends/cuda/row.h"
#include "ops/roi_align/box_rules.h"

namespace dais {
namespace {

constexpr int64_t kEnoughBlocks = 2048;

/// As in roi_align.cu.
struct Features {
  uint32_t batches, channels, height, width;
};

void run(const cuda::RowCall& call) noexcept {
  const Shape &in = call.sizes.in[0], &out = call.sizes.out[0];
  const auto& attrs = *call.node.as<RoiAlign>();
  cuda::Grid grid;
  grid.x = cuda::size32(out[0]);
  grid.threads = 256;
  // No more blocks for a box than have work for every thread.
  const int64_t most = cuda::ceil_div(out.elements(1, 4), grid.threads);
  grid.y = static_cast<unsigned>(
      std::clamp<int64_t>(kEnoughBlocks / out[0], 1, std::min({most, in[1], int64_t{65535}})));
  const Features features{cuda::size32(in[0]), cuda::size32(in[1]), cuda::size32(in[2]),
                          cuda::size32(in[3])};
  call.launch(0, grid, call.in(0), call.in(1), call.in(2), call.out(0), box_rules(attrs), features,
              static_cast<int>(attrs.mode == "avg"), call.queue().faults(), call.queue().step());
}

/// What does not fit together is left to the CPU, which says so.
bool takes(const Node&, const Sizes& sizes) {
  const Shape &image = sizes.in[0], &boxes = sizes.in[1];
  return image.rank() == 4 && boxes.rank() == 2 && boxes[1] == 4 &&
         sizes.in[2] == Shape{boxes[0]} && image.elements() > 0 && sizes.out[0].elements() > 0;
}

Verdict accepts(const KernelQuery& query) {
  if (const Verdict floats = cuda::accepts_floats(query); !floats) return floats;
  if (const Verdict boxes = cuda::accepts_floats(query, 1); !boxes) return boxes;
  const DType batches = query.in_dtype(2);
  return batches == DType::i64 || batches == DType::i32
             ? yes()
             : no("batches of type " + std::string(dtype_name(batches)));
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(
      query, {.text = "roi_align.cu",
              .options = {"--fmad=false", cuda::element_option(query.in_dtype(0)),
                          std::string("-DBOX=") + cuda::float_name(query.in_dtype(1)),
                          query.in_dtype(2) == DType::i64 ? "-DINDEX=int64" : "-DINDEX=int32"},
              .kernels = {"roi_align"},
              .run = run,
              .takes = takes});
}

}  // namespace

namespace ops {
void register_roi_align_cuda(Kernels& kernels) {
  kernels.add(
      {.name = "roi_align/cuda", .op = &RoiAlign::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
