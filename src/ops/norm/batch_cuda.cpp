#include "ops/norm/batch_cuda.h"

#include "backends/cuda/row.h"
#include "ops/norm/norm.h"

namespace dais {
namespace {

enum : size_t { kMoments, kApply, kSums, kBackward };

/// x as [outer, channels, inner].
struct Parts {
  int64_t elements, channels, inner;
  int64_t count() const { return elements / channels; }
  cuda::Grid blocks() const {
    cuda::Grid grid;
    grid.x = cuda::size32(channels);
    grid.threads = cuda::row_threads(count());
    return grid;
  }
};

Parts parts_of(const Shape& x, bool channels_last) {
  const size_t axis = channels_last ? x.rank() - 1 : 1;
  return {x.elements(), x[axis], x.elements(axis + 1, x.rank())};
}

void run_training(const cuda::RowCall& call) noexcept {
  const auto& attrs = *call.node.as<BatchNormalization>();
  const Parts parts = parts_of(call.sizes.in[0], attrs.channels_last);
  void* moments = call.arguments.scratch;
  call.launch(kMoments, parts.blocks(), call.in(0), call.in(3), call.in(4), moments, call.out(1),
              call.out(2), call.out(3), call.out(4), cuda::size32(parts.count()),
              cuda::size32(parts.channels), cuda::size32(parts.inner), attrs.momentum,
              attrs.epsilon);
  call.launch(kApply, cuda::grid_of(parts.elements), call.in(0), call.in(1), call.in(2), moments,
              call.out(0), cuda::size32(parts.elements), cuda::size32(parts.channels),
              cuda::size32(parts.inner));
}

void run_backward(const cuda::RowCall& call) noexcept {
  const auto& attrs = *call.node.as<BatchNormalizationBackward>();
  const Parts parts = parts_of(call.sizes.in[1], attrs.channels_last);
  void* sums = call.arguments.scratch;
  call.launch(kSums, parts.blocks(), call.in(0), call.in(1), call.in(3), call.in(4), sums,
              call.out(1), call.out(2), cuda::size32(parts.count()), cuda::size32(parts.channels),
              cuda::size32(parts.inner));
  call.launch(kBackward, cuda::grid_of(parts.elements), call.in(0), call.in(1), call.in(2),
              call.in(3), call.in(4), sums, call.out(0), cuda::size32(parts.elements),
              cuda::size32(parts.count()), cuda::size32(parts.channels), cuda::size32(parts.inner));
}

/// Two numbers for each channel.
size_t scratch_bytes(const Node&, const Sizes& sizes) {
  return 2 * static_cast<size_t>(sizes.in[2].elements()) * sizeof(float);
}

bool takes(const Node&, const Sizes& sizes) { return sizes.out[0].elements() > 0; }

Verdict accepts_types(const KernelQuery& query) {
  for (size_t i = 1; i < query.node.in.size(); ++i)
    if (query.in_dtype(i) != query.in_dtype(0)) return no("element types differ");
  for (size_t i = 0; i < query.node.outs.size(); ++i)
    if (query.out_dtype(i) != query.in_dtype(0)) return no("element types differ");
  return cuda::accepts_floats(query);
}

Verdict accepts_training(const KernelQuery& query) {
  if (!query.attrs<BatchNormalization>().training_mode) return no("no training");
  return accepts_types(query);
}

template <auto run>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(
      query, {.text = "batch.cu",
              .options = {cuda::element_option(query.in_dtype(0))},
              .kernels = {"batch_moments", "batch_apply", "batch_sums", "batch_backward"},
              .run = run,
              .scratch_bytes = scratch_bytes,
              .takes = takes});
}

}  // namespace

void register_batch_norm_cuda(Kernels& kernels) {
  kernels.add({.name = "batch_norm_training/cuda",
               .op = &BatchNormalization::op,
               .accepts = accepts_training,
               .prepare = prepare<run_training>});
  kernels.add({.name = "batch_norm_backward/cuda",
               .op = &BatchNormalizationBackward::op,
               .accepts = accepts_types,
               .prepare = prepare<run_backward>});
}

}  // namespace dais
