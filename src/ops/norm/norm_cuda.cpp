#include "backends/cuda/row.h"
#include "ops/norm/batch_cuda.h"
#include "ops/norm/norm.h"

namespace dais {
namespace {

enum : size_t { kRows, kBatch };

/// Rows of `size` elements; which scale an element takes: see norm.cu.
void launch_rows(const cuda::RowCall& call, int64_t rows, int64_t size, int64_t inner,
                 int64_t groups, float epsilon, float* means, float* deviations) noexcept {
  if (rows == 0 || size == 0) return;
  cuda::Grid grid;
  grid.x = cuda::size32(rows);
  grid.threads = cuda::row_threads(size);
  call.launch(kRows, grid, call.in(0), call.in(1), call.in(2), call.out(0), means, deviations,
              cuda::size32(size), cuda::size32(inner), cuda::size32(groups), epsilon);
}

template <typename S>
void run_rows(const cuda::RowCall& call) noexcept {
  constexpr bool rms = std::is_same_v<S, RMSNormalization>;
  const auto& attrs = *call.node.as<S>();
  const Shape& shape = call.sizes.in[0];
  const size_t axis = normalize_axis(attrs.axis, shape.rank());
  launch_rows(call, shape.elements(0, axis), shape.elements(axis, shape.rank()), 1, 1,
              attrs.epsilon, rms ? nullptr : call.out<float>(1), call.out<float>(rms ? 1 : 2));
}

/// Scale and bias must be whole rows.
template <typename S>
bool takes_rows(const Node& node, const Sizes& sizes) {
  const Shape& shape = sizes.in[0];
  const size_t axis = normalize_axis(node.as<S>()->axis, shape.rank());
  const int64_t size = shape.elements(axis, shape.rank());
  if (sizes.in[1].elements() != size) return false;
  return !node.has(2) || sizes.in[2].elements() == size;
}

template <typename S>
Verdict accepts_rows(const KernelQuery& query) {
  if (query.in_dtype(1) != query.in_dtype(0)) return no("scale is of another element type");
  for (size_t i = 1; i < query.node.outs.size(); ++i)
    if (query.out_dtype(i) != DType::f32) return no("statistics in another type than f32");
  return cuda::accepts_floats(query);
}

template <bool instance>
void run_groups(const cuda::RowCall& call) noexcept {
  const Shape& shape = call.sizes.in[0];
  const int64_t channels = shape[1], inner = shape.elements(2, shape.rank());
  int64_t groups = channels;
  float epsilon = 0;
  if constexpr (instance) {
    epsilon = call.node.as<InstanceNormalization>()->epsilon;
  } else {
    groups = call.node.as<GroupNormalization>()->num_groups;
    epsilon = call.node.as<GroupNormalization>()->epsilon;
  }
  if (shape.elements() == 0) return;
  launch_rows(call, shape[0] * groups, channels / groups * inner, inner, groups, epsilon, nullptr,
              nullptr);
}

template <bool instance>
Verdict accepts_groups(const KernelQuery& query) {
  if constexpr (!instance)
    if (query.attrs<GroupNormalization>().channels_last) return no("channels last");
  if (query.in_dtype(1) != query.in_dtype(0)) return no("scale is of another element type");
  return cuda::accepts_floats(query);
}

void run_batch(const cuda::RowCall& call) noexcept {
  const auto& attrs = *call.node.as<BatchNormalization>();
  const Shape& shape = call.sizes.in[0];
  const size_t axis = attrs.channels_last ? shape.rank() - 1 : 1;
  call.launch(kBatch, cuda::grid_of(shape.elements()), call.in(0), call.in(1), call.in(2),
              call.in(3), call.in(4), call.out(0), cuda::size32(shape.elements()),
              cuda::size32(shape[axis]), cuda::size32(shape.elements(axis + 1, shape.rank())),
              attrs.epsilon);
}

Verdict accepts_batch(const KernelQuery& query) {
  if (query.attrs<BatchNormalization>().training_mode) return no("training mode");
  for (size_t i = 1; i < 5; ++i)
    if (query.in_dtype(i) != query.in_dtype(0)) return no("element types differ");
  return cuda::accepts_floats(query);
}

template <auto run, bool rms, auto takes = nullptr>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(
      query, {.text = "norm.cu",
              .options = {cuda::element_option(query.in_dtype(0)), rms ? "-DRMS=1" : "-DRMS=0"},
              .kernels = {"norm_rows", "batch_norm"},
              .run = run,
              .takes = takes});
}

}  // namespace

namespace ops {
void register_norm_cuda(Kernels& kernels) {
  register_batch_norm_cuda(kernels);
  kernels.add(
      {.name = "layer_norm/cuda",
       .op = &LayerNormalization::op,
       .accepts = accepts_rows<LayerNormalization>,
       .prepare = prepare<run_rows<LayerNormalization>, false, takes_rows<LayerNormalization>>});
  kernels.add({.name = "rms_norm/cuda",
               .op = &RMSNormalization::op,
               .accepts = accepts_rows<RMSNormalization>,
               .prepare = prepare<run_rows<RMSNormalization>, true, takes_rows<RMSNormalization>>});
  kernels.add({.name = "group_norm/cuda",
               .op = &GroupNormalization::op,
               .accepts = accepts_groups<false>,
               .prepare = prepare<run_groups<false>, false>});
  kernels.add({.name = "instance_norm/cuda",
               .op = &InstanceNormalization::op,
               .accepts = accepts_groups<true>,
               .prepare = prepare<run_groups<true>, false>});
  kernels.add({.name = "batch_norm/cuda",
               .op = &BatchNormalization::op,
               .accepts = accepts_batch,
               .prepare = prepare<run_batch, false>});
}
}  // namespace ops
}  // namespace dais
