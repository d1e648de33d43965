#include "ops/gather/tuple_cuda.h"
#include "ops/scatter/scatter.h"
#include "ops/strided.h"

namespace dais {
namespace {

enum : size_t { kClaimElements, kScatterElements, kClaimSlices, kScatterSlices, kDisown, kTensor };
enum : size_t { kReduceElements, kNameSlices, kReduceSlices };
/// With a reduction every element of the result looks at every index of its line; beyond so many
/// looks the CPU is as fast.
constexpr int64_t kMostLooks = int64_t{1} << 32;

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

Tuple tuple_of(const Sizes& sizes) { return tuple_of(sizes.in[0], 0, sizes.in[1].back()); }

int64_t slices_of(const Sizes& sizes) {
  return sizes.in[0].elements(0, static_cast<size_t>(sizes.in[1].back()));
}

void run_slices(const cuda::RowCall& call) noexcept {
  const Shape &data = call.sizes.in[0], &indices = call.sizes.in[1];
  if (data.elements() == 0) return;
  const int64_t slices = slices_of(call.sizes), inner = data.elements() / slices;
  begin(call, slices);
  const void* owners = call.arguments.scratch;
  const Tuple tuple = tuple_of(call.sizes);
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
  return sizes.in[1].rank() > 0 && sizes.in[1].back() <= static_cast<int64_t>(kMostTupleAxes);
}

void reduce_elements(const cuda::RowCall& call) noexcept {
  const Shape &data = call.sizes.in[0], &indices = call.sizes.in[1];
  const size_t axis = normalize_axis(call.node.as<ScatterElements>()->axis, data.rank());
  const AxisSplit split = split_axis(data, axis);
  if (data.elements() > 0)
    call.launch(kReduceElements, cuda::grid_of(data.elements()), call.in(0), call.in(1), call.in(2),
                call.out(0), cuda::size32(split.outer), cuda::size32(split.size),
                cuda::size32(indices[axis]), cuda::size32(split.inner), call.queue().faults(),
                call.queue().step());
}

int64_t tuples_of(const Sizes& sizes) { return sizes.in[1].elements(0, sizes.in[1].rank() - 1); }

void reduce_slices(const cuda::RowCall& call) noexcept {
  const Shape& data = call.sizes.in[0];
  if (data.elements() == 0) return;
  const int64_t count = tuples_of(call.sizes), slices = slices_of(call.sizes);
  void* named = call.arguments.scratch;
  if (count > 0)
    call.launch(kNameSlices, cuda::grid_of(count), call.in(1), named, cuda::size32(count),
                tuple_of(call.sizes), call.queue().faults(), call.queue().step());
  call.launch(kReduceSlices, cuda::grid_of(data.elements()), call.in(0),
              static_cast<const void*>(named), call.in(2), call.out(0), cuda::size32(slices),
              cuda::size32(count), cuda::size32(data.elements() / slices));
}

size_t named_bytes(const Node&, const Sizes& sizes) {
  return static_cast<size_t>(tuples_of(sizes)) * sizeof(int64_t);
}

bool reduces_elements(const Node& node, const Sizes& sizes) {
  if (!takes_elements(node, sizes)) return false;
  const Shape& data = sizes.in[0];
  const size_t axis = normalize_axis(node.as<ScatterElements>()->axis, data.rank());
  return data.elements() * sizes.in[1][axis] <= kMostLooks;
}

bool reduces_slices(const Node& node, const Sizes& sizes) {
  return takes_slices(node, sizes) && sizes.in[0].elements() * tuples_of(sizes) <= kMostLooks;
}

void scatter_tensor(const cuda::RowCall& call) noexcept {
  const auto& attrs = *call.node.as<TensorScatter>();
  const Shape &cache = call.sizes.in[0], &update = call.sizes.in[1];
  if (cache.elements() == 0) return;
  const size_t axis = normalize_axis(attrs.axis, cache.rank());
  call.launch(
      kTensor, cuda::grid_of(cache.elements()), call.in(0), call.in(1), call.in(2), call.out(0),
      cuda::size32(cache[0]), cuda::size32(cache.elements(1, axis)), cuda::size32(cache[axis]),
      cuda::size32(update[axis]), cuda::size32(cache.elements(axis + 1, cache.rank())),
      static_cast<int>(attrs.mode == "circular"), call.queue().faults(), call.queue().step());
}

/// What does not fit together is left to the CPU, which says so.
bool takes_tensor(const Node& node, const Sizes& sizes) {
  const Shape &cache = sizes.in[0], &update = sizes.in[1];
  if (cache.rank() != update.rank()) return false;
  const size_t axis = normalize_axis(node.as<TensorScatter>()->axis, cache.rank());
  for (size_t i = 0; i < cache.rank(); ++i)
    if (i == axis ? update[i] > cache[i] : update[i] != cache[i]) return false;
  return axis > 0 && (!node.has(2) || sizes.in[2].elements() == cache[0]);
}

/// In which type of scalar.cuh elements are combined; null: they are not.
const char* wide_name(DType dtype) {
  if (dtype == DType::i64 || dtype == DType::i32) return "int64";
  return cuda::float_name(dtype) ? "float" : nullptr;
}

Verdict accepts_indices(const KernelQuery& query) {
  if (query.in_dtype(0) == DType::string) return no("strings");
  if (query.in_dtype(1) != DType::i64 && query.in_dtype(1) != DType::i32)
    return no("indices of type " + std::string(dtype_name(query.in_dtype(1))));
  return query.in(0).ranked() && query.in(1).ranked() ? yes() : no("a rank is unknown");
}

Verdict accepts_tensor(const KernelQuery& query) {
  if (query.in_dtype(0) == DType::string) return no("strings");
  if (query.node.has(2) && query.in_dtype(2) != DType::i64 && query.in_dtype(2) != DType::i32)
    return no("places of type " + std::string(dtype_name(query.in_dtype(2))));
  return query.in(0).ranked() ? yes() : no("the rank is unknown");
}

template <typename S>
Verdict accepts(const KernelQuery& query) {
  return query.attrs<S>().reduction == "none" ? accepts_indices(query) : no("a reduction");
}

template <typename S>
Verdict accepts_reduction(const KernelQuery& query) {
  if (query.attrs<S>().reduction == "none") return no("no reduction");
  if (!wide_name(query.in_dtype(0)))
    return no("a reduction of element type " + std::string(dtype_name(query.in_dtype(0))));
  return accepts_indices(query);
}

std::vector<std::string> options_of(const KernelQuery& query, size_t indices = 1) {
  return {cuda::word_option(dtype_size(query.in_dtype(0))),
          query.in_dtype(indices) == DType::i64 ? "-DINDEX=int64" : "-DINDEX=int32"};
}

template <auto run, auto scratch, auto takes, size_t indices = 1>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(
      query, {.text = "scatter.cu",
              .options = options_of(query, indices),
              .kernels = {"claim_elements", "scatter_elements", "claim_slices", "scatter_slices",
                          "disown", "scatter_tensor"},
              .run = run,
              .scratch_bytes = scratch,
              .takes = takes});
}

template <typename S, auto run, auto scratch, auto takes>
std::unique_ptr<Kernel> prepare_reduction(const KernelQuery& query) {
  const DType dtype = query.in_dtype(0);
  const char* whole = dtype == DType::i64 ? "int64" : "int32";
  const char* name = cuda::float_name(dtype) ? cuda::float_name(dtype) : whole;
  std::vector<std::string> options = options_of(query);
  options.push_back(std::string("-DELEMENT=") + name);
  options.push_back(std::string("-DWIDE=") + wide_name(dtype));
  options.push_back("-DCOMBINE=s_" + query.attrs<S>().reduction);
  return cuda::make_text_kernel(query,
                                {.text = "scatter.cu",
                                 .options = std::move(options),
                                 .kernels = {"reduce_elements", "name_slices", "reduce_slices"},
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
  kernels.add(
      {.name = "scatter_elements/cuda reduction",
       .op = &ScatterElements::op,
       .accepts = accepts_reduction<ScatterElements>,
       .prepare = prepare_reduction<ScatterElements, reduce_elements, nullptr, reduces_elements>});
  kernels.add(
      {.name = "scatter_nd/cuda reduction",
       .op = &ScatterND::op,
       .accepts = accepts_reduction<ScatterND>,
       .prepare = prepare_reduction<ScatterND, reduce_slices, named_bytes, reduces_slices>});
  kernels.add({.name = "tensor_scatter/cuda",
               .op = &TensorScatter::op,
               .accepts = accepts_tensor,
               .prepare = prepare<scatter_tensor, nullptr, takes_tensor, 2>});
}
}  // namespace ops
}  // namespace dais
