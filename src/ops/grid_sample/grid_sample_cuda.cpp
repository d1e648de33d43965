#include <algorithm>

#include "backends/cuda/row.h"
#include "ops/grid_sample/samplers.h"

namespace dais {
namespace {

/// As in grid_sample.cu.
struct ImageSizes {
  uint32_t at[3] = {};
};

/// Channels are spread over blocks until there are so many threads; then one works out its place
/// for several of them.
constexpr int64_t kEnoughThreads = 1 << 17;

void run(const cuda::RowCall& call) noexcept {
  const Shape &image = call.sizes.in[0], &out = call.sizes.out[0];
  const auto& attrs = *call.node.as<GridSample>();
  ImageSizes sizes;
  for (size_t axis = 2; axis < image.rank(); ++axis) sizes.at[axis - 2] = cuda::size32(image[axis]);
  const int64_t places = out.elements(2, out.rank());
  cuda::Grid grid = cuda::grid_of(image[0] * places);
  const int64_t parts = std::clamp<int64_t>(kEnoughThreads / (image[0] * places), 1, image[1]);
  grid.y = static_cast<unsigned>(std::min<int64_t>(parts, 65535));
  call.launch(0, grid, call.in(0), call.in(1), call.out(0), cuda::size32(image[0]),
              cuda::size32(image[1]), cuda::size32(places), sizes,
              static_cast<int>(sample_padding(attrs)), static_cast<int>(attrs.align_corners));
}

/// What does not fit together is left to the CPU, which says so.
bool takes(const Node&, const Sizes& sizes) {
  const Shape &image = sizes.in[0], &grid = sizes.in[1];
  return grid.rank() == image.rank() && image.elements() > 0 && sizes.out[0].elements() > 0 &&
         grid.back() == static_cast<int64_t>(image.rank()) - 2 && grid[0] == image[0];
}

Verdict accepts(const KernelQuery& query) {
  if (const Verdict floats = cuda::accepts_floats(query); !floats) return floats;
  if (const Verdict places = cuda::accepts_floats(query, 1); !places) return places;
  return query.in(0).shape->size() <= 5 ? yes() : no("more than three axes");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const size_t axes = query.in(0).shape->size() - 2;
  return cuda::make_text_kernel(
      query,
      {.text = "grid_sample.cu",
       .options = {"--fmad=false", cuda::element_option(query.in_dtype(0)),
                   std::string("-DGRID=") + cuda::float_name(query.in_dtype(1)),
                   "-DAXES=" + std::to_string(axes), "-DMODE=" + query.attrs<GridSample>().mode},
       .kernels = {"grid_sample"},
       .run = run,
       .takes = takes});
}

}  // namespace

namespace ops {
void register_grid_sample_cuda(Kernels& kernels) {
  kernels.add(
      {.name = "grid_sample/cuda", .op = &GridSample::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
