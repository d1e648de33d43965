#include "backends/cuda/row.h"
#include "ops/scatter/scatter.h"
#include "ops/strided.h"

namespace dais {
namespace {

enum : size_t { kClaimElements, kScatterElements, kClaimSlices, kScatterSlices, kDisown };
constexpr size_t kMostAxes = 8;

/// As in scatter.cu.
struct Tuple {
  uint32_t sizes[kMostAxes] = {};
  int length = 0;
};

/// y begins as data, the owners as nobody.
void begin(const cuda::RowCall& call, int64_t owners) noexcept {
  const auto bytes =
      static_cast<size_t>(call.sizes.in[0].elements()) * dtype_size(call.node.in[0]->type.dtype);
  try {
    call.queue().copy(call.out(0), call.in(0), bytes);
  } catch (...) {
    call.queue().fail(std::current_exception());
  }
  call.launch(kDisown, cuda::grid_of(owners), call.arguments.scratch, cuda::size32(owners));
}

void run_elements(const cuda::RowCall& call) noexcept {
  const Shape &data = call.sizes.in[0], &indices = call.sizes.in[1];
  const size_t axis = normalize_axis(call.node.as<ScatterElements>()->axis, data.rank());
  const AxisSplit split = split_axis(data, axis);
  if (data.elements() == 0) return;
  begin(call, data.elements());
  const void* owners = call.arguments.scratch;
  if (indices.elements() == 0) return;
  call.launch(kClaimElements, cuda::grid_of(indices.elements()), call.in(1), owners,
              cuda::size32(split.outer), cuda::size32(split.size), cuda::size32(indices[axis]),
              cuda::size32(split.inner), call.queue().faults(), call.queue().step());
  call.launch(kScatterElements, cuda::grid_of(data.elements()), owners, call.in(2), call.out(0),
              cuda::size32(data.elements()));
}

size_t owners_elements(const Node&, const Sizes& sizes) {
  return static_cast<size_t>(sizes.in[0].elements()) * sizeof(int64_t);
}

bool takes_elements(const Node& node, const Sizes& sizes) {
  const Shape &data = sizes.in[0], &indices = sizes.in[1];
  const size_t axis = normalize_axis(node.as<ScatterElements>()->axis, data.rank());
  for (size_t i = 0; i < data.rank(); ++i)
    if (i != axis && data[i] != indices[i]) return false;
  return true;
}

int64_t slices_of(const Sizes& sizes) {
  return sizes.in[0].elements(0, static_cast<size_t>(sizes.in[1].back()));
}

void run_slices(const cuda::RowCall& call) noexcept {
  const Shape &data = call.sizes.in[0], &indices = call.sizes.in[1];
  if (data.elements() == 0) return;
  const int64_t slices = slices_of(call.sizes), inner = data.elements() / slices;
  begin(call, slices);
  const void* owners = call.arguments.scratch;
  Tuple tuple;
  tuple.length = static_cast<int>(indices.back());
  for (int axis = 0; axis < tuple.length; ++axis)
    tuple.sizes[axis] = cuda::size32(data[static_cast<size_t>(axis)]);
  const int64_t count = indices.elements(0, indices.rank() - 1);
  if (count == 0) return;
  call.launch(kClaimSlices, cuda::grid_of(count), call.in(1), owners, cuda::size32(count), tuple,
              call.queue().faults(), call.queue().step());
  call.launch(kScatterSlices, cuda::grid_of(data.elements()), owners, call.in(2), call.out(0),
              cuda::size32(slices), cuda::size32(inner));
}

size_t owners_slices(const Node&, const Sizes& sizes) {
  return static_cast<size_t>(slices_of(sizes)) * sizeof(int64_t);
}

bool takes_slices(const Node&, const Sizes& sizes) {
  return sizes.in[1].rank() > 0 && sizes.in[1].back() <= static_cast<int64_t>(kMostAxes);
}

template <typename S>
Verdict accepts(const KernelQuery& query) {
  if (query.attrs<S>().reduction != "none") return no("a reduction");
  if (query.in_dtype(0) == DType::string) return no("strings");
  if (query.in_dtype(1) != DType::i64 && query.in_dtype(1) != DType::i32)
    return no("indices of type " + std::string(dtype_name(query.in_dtype(1))));
  return query.in(0).ranked() && query.in(1).ranked() ? yes() : no("a rank is unknown");
}

template <auto run, auto scratch, auto takes>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const bool wide = query.in_dtype(1) == DType::i64;
  return cuda::make_text_kernel(
      query, {.text = "scatter.cu",
              .options = {cuda::word_option(dtype_size(query.in_dtype(0))),
                          wide ? "-DINDEX=int64" : "-DINDEX=int32"},
              .kernels = {"claim_elements", "scatter_elements", "claim_slices", "scatter_slices",
                          "disown"},
              .run = run,
              .scratch_bytes = scratch,
              .takes = takes});
}

}  // namespace

namespace ops {
void register_scatter_cuda(Kernels& kernels) {
  kernels.add({.name = "scatter_elements/cuda",
               .op = &ScatterElements::op,
               .accepts = accepts<ScatterElements>,
               .prepare = prepare<run_elements, owners_elements, takes_elements>});
  kernels.add({.name = "scatter_nd/cuda",
               .op = &ScatterND::op,
               .accepts = accepts<ScatterND>,
               .prepare = prepare<run_slices, owners_slices, takes_slices>});
}
}  // namespace ops
}  // namespace dais
