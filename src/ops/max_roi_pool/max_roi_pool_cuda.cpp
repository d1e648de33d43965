#include "backends/cuda/row.h"
#include "ops/max_roi_pool/max_roi_pool.h"

namespace dais {
namespace {

/// As in max_roi_pool.cu.
struct Pooling {
  uint32_t batches, channels, height, width, rows, columns;
  double scale;
};

void run(const cuda::RowCall& call) noexcept {
  const Shape &in = call.sizes.in[0], &out = call.sizes.out[0];
  if (out.elements() == 0) return;
  const Pooling pooling{
      cuda::size32(in[0]),
      cuda::size32(in[1]),
      cuda::size32(in[2]),
      cuda::size32(in[3]),
      cuda::size32(out[2]),
      cuda::size32(out[3]),
      static_cast<double>(call.node.as<MaxRoiPool>()->spatial_scale),
  };
  call.launch(0, cuda::grid_of(out.elements()), call.in(0), call.in(1), call.out(0),
              cuda::size32(out[0]), pooling, call.queue().faults(), call.queue().step());
}

/// What does not fit together is left to the CPU, which says so.
bool takes(const Node&, const Sizes& sizes) {
  return sizes.in[0].rank() == 4 && sizes.in[1].rank() == 2 && sizes.in[1][1] == 5;
}

Verdict accepts(const KernelQuery& query) {
  if (const Verdict floats = cuda::accepts_floats(query); !floats) return floats;
  return cuda::accepts_floats(query, 1);
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(
      query, {.text = "max_roi_pool.cu",
              .options = {"--fmad=false", cuda::element_option(query.in_dtype(0)),
                          std::string("-DBOX=") + cuda::float_name(query.in_dtype(1))},
              .kernels = {"max_roi_pool"},
              .run = run,
              .takes = takes});
}

}  // namespace

namespace ops {
void register_max_roi_pool_cuda(Kernels& kernels) {
  kernels.add(
      {.name = "max_roi_pool/cuda", .op = &MaxRoiPool::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
