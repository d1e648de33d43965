#include "backends/cuda/row.h"
#include "ops/generate/generate.h"
#include "ops/strided.h"

namespace dais {
namespace {

enum : size_t { kRange, kOneHot };

/// An element type's name in the text and the type that it is computed in; null: not had.
struct Names {
  const char* element = nullptr;
  const char* lane = nullptr;
};
Names names_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return {"float", "double"};
    case DType::f64: return {"double", "double"};
    case DType::i32: return {"int32", "int64"};
    case DType::i64: return {"int64", "int64"};
    default: return {};
  }
}

void run_range(const cuda::RowCall& call) noexcept {
  const int64_t count = call.sizes.out[0].elements();
  if (count == 0) return;
  call.launch(kRange, cuda::grid_of(count), call.in(0), call.in(2), call.out(0),
              cuda::size32(count));
}

void run_one_hot(const cuda::RowCall& call) noexcept {
  const Shape& y = call.sizes.out[0];
  if (y.elements() == 0) return;
  const AxisSplit split = split_axis(y, normalize_axis(call.node.as<OneHot>()->axis, y.rank()));
  call.launch(kOneHot, cuda::grid_of(y.elements()), call.in(0), call.in(2), call.out(0),
              cuda::size32(y.elements()), cuda::size32(split.size), cuda::size32(split.inner));
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query, DType index,
                                void (*run)(const cuda::RowCall&) noexcept) {
  const Names names = names_of(query.out_dtype());
  return cuda::make_text_kernel(
      query,
      {.text = "generate.cu",
       .options = {std::string("-DELEMENT=") + names.element, std::string("-DLANE=") + names.lane,
                   std::string("-DINDEX=") + names_of(index).element},
       .kernels = {"range", "one_hot"},
       .run = run});
}

Verdict accepts_range(const KernelQuery& query) {
  return names_of(query.out_dtype()).element ? yes() : no("element type");
}
std::unique_ptr<Kernel> prepare_range(const KernelQuery& query) {
  return prepare(query, DType::i64, run_range);
}

Verdict accepts_one_hot(const KernelQuery& query) {
  if (!names_of(query.out_dtype()).element) return no("element type");
  return names_of(query.in_dtype(0)).element && !is_float(query.in_dtype(0))
             ? yes()
             : no("indices of type " + std::string(dtype_name(query.in_dtype(0))));
}
std::unique_ptr<Kernel> prepare_one_hot(const KernelQuery& query) {
  return prepare(query, query.in_dtype(0), run_one_hot);
}

}  // namespace

namespace ops {
void register_generate_cuda(Kernels& kernels) {
  kernels.add(
      {.name = "range/cuda", .op = &Range::op, .accepts = accepts_range, .prepare = prepare_range});
  kernels.add({.name = "one_hot/cuda",
               .op = &OneHot::op,
               .accepts = accepts_one_hot,
               .prepare = prepare_one_hot});
}
}  // namespace ops
}  // namespace dais
