#include <algorithm>

#include "ops/gather/gather.h"
#include "ops/gather/tuple_cuda.h"
#include "ops/strided.h"

namespace dais {
namespace {

enum : size_t { kSlices, kElements, kTuples };
enum : size_t { kClear, kBackward };

/// Slices are moved by words of up to 16 bytes, whose size the whole slice is a multiple of; known
/// where the sizes behind the axis are.
size_t word_bytes(const KernelQuery& query) {
  const size_t element = dtype_size(query.in_dtype(0));
  const Dims& shape = *query.in(0).shape;
  int64_t bytes = static_cast<int64_t>(element);
  const size_t axis = normalize_axis(query.attrs<Gather>().axis, shape.size());
  for (size_t i = axis + 1; i < shape.size(); ++i) {
    const auto size = shape[i].constant();
    if (!size) return element;
    bytes *= *size;
  }
  size_t word = 16;
  while (word > element && (bytes == 0 || bytes % static_cast<int64_t>(word) != 0)) word /= 2;
  return word;
}

template <size_t kernel>
void launch(const cuda::RowCall& call, const AxisSplit& data, int64_t count,
            int64_t inner) noexcept {
  const int64_t elements = data.outer * count * inner;
  if (elements == 0) return;
  call.launch(kernel, cuda::grid_of(elements), call.in(0), call.in(1), call.out(0),
              cuda::size32(data.outer), cuda::size32(data.size), cuda::size32(count),
              cuda::size32(inner), call.queue().faults(), call.queue().step());
}

template <size_t word>
void run_slices(const cuda::RowCall& call) noexcept {
  const Shape& data = call.sizes.in[0];
  const AxisSplit split =
      split_axis(data, normalize_axis(call.node.as<Gather>()->axis, data.rank()));
  const auto element = static_cast<int64_t>(dtype_size(call.node.in[0]->type.dtype));
  launch<kSlices>(call, split, call.sizes.in[1].elements(),
                  split.inner * element / static_cast<int64_t>(word));
}

void run_elements(const cuda::RowCall& call) noexcept {
  const Shape &data = call.sizes.in[0], &indices = call.sizes.in[1];
  const size_t axis = normalize_axis(call.node.as<GatherElements>()->axis, data.rank());
  AxisSplit split = split_axis(data, axis);
  launch<kElements>(call, split, indices[axis], split.inner);
}

/// Other axes may be shorter in the indices than in the data; the kernel wants them equal.
bool takes_elements(const Node& node, const Sizes& sizes) {
  const Shape &data = sizes.in[0], &indices = sizes.in[1];
  const size_t axis = normalize_axis(node.as<GatherElements>()->axis, data.rank());
  for (size_t i = 0; i < data.rank(); ++i)
    if (i != axis && data[i] != indices[i]) return false;
  return true;
}

void run_tuples(const cuda::RowCall& call) noexcept {
  const Shape &data = call.sizes.in[0], &indices = call.sizes.in[1];
  const auto batch = static_cast<size_t>(call.node.as<GatherND>()->batch_dims);
  const int64_t length = indices.back();
  const size_t open = batch + static_cast<size_t>(length);
  const int64_t count = indices.elements(0, indices.rank() - 1);
  const int64_t inner = data.elements(open, data.rank());
  if (count * inner == 0) return;
  call.launch(kTuples, cuda::grid_of(count * inner), call.in(0), call.in(1), call.out(0),
              cuda::size32(count), cuda::size32(indices.elements(batch, indices.rank() - 1)),
              cuda::size32(data.elements(batch, open)), cuda::size32(inner),
              tuple_of(data, batch, length), call.queue().faults(), call.queue().step());
}

/// What does not fit together is left to the CPU, which says so.
bool takes_tuples(const Node& node, const Sizes& sizes) {
  const Shape &data = sizes.in[0], &indices = sizes.in[1];
  const auto batch = static_cast<size_t>(node.as<GatherND>()->batch_dims);
  if (indices.rank() < batch + 1 || data.rank() < batch) return false;
  const int64_t length = indices.back();
  for (size_t i = 0; i < batch; ++i)
    if (indices[i] != data[i]) return false;
  return length >= 1 &&
         length <= static_cast<int64_t>(std::min(kMostTupleAxes, data.rank() - batch));
}

Verdict accepts(const KernelQuery& query) {
  const DType dtype = query.in_dtype(0);
  if (dtype == DType::string) return no("strings");
  if (query.in_dtype(1) != DType::i64 && query.in_dtype(1) != DType::i32)
    return no("indices of type " + std::string(dtype_name(query.in_dtype(1))));
  return query.in(0).ranked() && query.in(1).ranked() ? yes() : no("a rank is unknown");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query, size_t word,
                                void (*run)(const cuda::RowCall&) noexcept,
                                bool (*takes)(const Node&, const Sizes&)) {
  const bool wide = query.in_dtype(1) == DType::i64;
  return cuda::make_text_kernel(
      query, {.text = "gather.cu",
              .options = {cuda::word_option(word), wide ? "-DINDEX=int64" : "-DINDEX=int32"},
              .kernels = {"gather", "gather_elements", "gather_tuples"},
              .run = run,
              .takes = takes});
}

std::unique_ptr<Kernel> prepare_slices(const KernelQuery& query) {
  const size_t word = word_bytes(query);
  switch (word) {
    case 1: return prepare(query, word, run_slices<1>, nullptr);
    case 2: return prepare(query, word, run_slices<2>, nullptr);
    case 4: return prepare(query, word, run_slices<4>, nullptr);
    case 8: return prepare(query, word, run_slices<8>, nullptr);
    default: return prepare(query, word, run_slices<16>, nullptr);
  }
}

std::unique_ptr<Kernel> prepare_elements(const KernelQuery& query) {
  return prepare(query, dtype_size(query.in_dtype(0)), run_elements, takes_elements);
}

std::unique_ptr<Kernel> prepare_tuples(const KernelQuery& query) {
  return prepare(query, dtype_size(query.in_dtype(0)), run_tuples, takes_tuples);
}

void run_backward(const cuda::RowCall& call) noexcept {
  const Shape &y = call.sizes.out[0], &indices = call.sizes.in[1];
  const AxisSplit split =
      split_axis(y, normalize_axis(call.node.as<GatherBackward>()->axis, y.rank()));
  if (y.elements() == 0) return;
  call.launch(kClear, cuda::grid_of(y.elements()), call.out(0), cuda::size32(y.elements()));
  if (indices.elements() == 0) return;
  cuda::Grid grid;
  grid.x = cuda::size32(indices.elements());
  grid.y = cuda::size32(split.outer);
  grid.threads = cuda::row_threads(std::max(split.inner, indices.elements()));
  call.launch(kBackward, grid, call.in(0), call.in(1), call.out(0), cuda::size32(split.size),
              cuda::size32(indices.elements()), cuda::size32(split.inner), call.queue().faults(),
              call.queue().step());
}

/// Each index is compared with all others.
bool takes_backward(const Node& node, const Sizes& sizes) {
  const Shape& y = sizes.out[0];
  const size_t axis = normalize_axis(node.as<GatherBackward>()->axis, y.rank());
  return sizes.in[1].elements() <= 65536 && y.elements(0, axis) <= 65535;
}

Verdict accepts_backward(const KernelQuery& query) {
  if (query.in_dtype(1) != DType::i64 && query.in_dtype(1) != DType::i32)
    return no("indices of type " + std::string(dtype_name(query.in_dtype(1))));
  return cuda::accepts_floats(query);
}

std::unique_ptr<Kernel> prepare_backward(const KernelQuery& query) {
  const bool wide = query.in_dtype(1) == DType::i64;
  return cuda::make_text_kernel(
      query, {.text = "gather.cu",
              .options = {"-DWORD=uint32", wide ? "-DINDEX=int64" : "-DINDEX=int32",
                          cuda::element_option(query.in_dtype(0))},
              .kernels = {"clear", "gather_backward"},
              .run = run_backward,
              .takes = takes_backward});
}

}  // namespace

namespace ops {
void register_gather_cuda(Kernels& kernels) {
  kernels.add(
      {.name = "gather/cuda", .op = &Gather::op, .accepts = accepts, .prepare = prepare_slices});
  kernels.add({.name = "gather_elements/cuda",
               .op = &GatherElements::op,
               .accepts = accepts,
               .prepare = prepare_elements});
  kernels.add({.name = "gather_nd/cuda",
               .op = &GatherND::op,
               .accepts = accepts,
               .prepare = prepare_tuples});
  kernels.add({.name = "gather_backward/cuda",
               .op = &GatherBackward::op,
               .accepts = accepts_backward,
               .prepare = prepare_backward});
}
}  // namespace ops
}  // namespace dais
