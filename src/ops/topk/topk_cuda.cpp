#include <bit>

#include "backends/cuda/row.h"
#include "ops/strided.h"
#include "ops/topk/topk.h"

namespace dais {
namespace {

constexpr int64_t kMostSlots = 4096;  ///< 32 KiB of shared memory

AxisSplit split_of(const Node& node, const Shape& x) {
  return split_axis(x, normalize_axis(node.as<TopK>()->axis, x.rank()));
}

template <int64_t slots>
void run(const cuda::RowCall& call) noexcept {
  const AxisSplit split = split_of(call.node, call.sizes.in[0]);
  const auto axis = normalize_axis(call.node.as<TopK>()->axis, call.sizes.in[0].rank());
  if (call.sizes.out[0].elements() == 0) return;
  cuda::Grid grid;
  grid.x = cuda::size32(split.inner);
  grid.y = cuda::size32(split.outer);
  grid.threads = cuda::row_threads(slots / 2, 1024);
  const int largest = call.node.as<TopK>()->largest;
  call.launch(0, grid, call.in(0), call.out(0), call.out(1), cuda::size32(split.size),
              cuda::size32(call.sizes.out[0][axis]), cuda::size32(split.inner), largest);
}

template <int64_t slots>
bool takes(const Node& node, const Sizes& sizes) {
  const AxisSplit split = split_of(node, sizes.in[0]);
  return split.size <= slots && split.outer <= 65535;
}

Verdict accepts(const KernelQuery& query) {
  if (const Verdict floats = cuda::accepts_floats(query); !floats) return floats;
  const Dims& shape = *query.in(0).shape;
  const auto size = shape[normalize_axis(query.attrs<TopK>().axis, shape.size())].constant();
  if (size && *size > kMostSlots) return no("rows of more than 4096 elements");
  return yes();
}

template <int64_t slots>
std::unique_ptr<Kernel> prepare_slots(const KernelQuery& query) {
  return cuda::make_text_kernel(query, {.text = "topk.cu",
                                        .options = {cuda::element_option(query.in_dtype(0)),
                                                    "-DSLOTS=" + std::to_string(slots)},
                                        .kernels = {"topk"},
                                        .run = run<slots>,
                                        .takes = takes<slots>});
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const Dims& shape = *query.in(0).shape;
  const auto size = shape[normalize_axis(query.attrs<TopK>().axis, shape.size())].constant();
  if (size && *size <= 64) return prepare_slots<64>(query);
  if (size && *size <= 512) return prepare_slots<512>(query);
  return prepare_slots<kMostSlots>(query);
}

}  // namespace

namespace ops {
void register_topk_cuda(Kernels& kernels) {
  kernels.add({.name = "topk/cuda", .op = &TopK::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
