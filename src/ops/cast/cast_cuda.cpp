// Casts that the generated elementwise kernels do not know: those of 8-bit floats.
#include "backends/cuda/row.h"
#include "ops/cast/cast.h"

namespace dais {
namespace {

/// Null: no float of 8 bits that devices have.
const char* code_name(DType dtype) {
  if (dtype == DType::f8e4m3fn) return "f8e4m3";
  return dtype == DType::f8e5m2 ? "f8e5m2" : nullptr;
}

template <bool to_codes>
void run(const cuda::RowCall& call) noexcept {
  const int64_t count = call.sizes.in[0].elements();
  if (count == 0) return;
  const auto size = cuda::size32(count);
  if constexpr (to_codes)
    call.launch(0, cuda::grid_of(count), call.in(0), call.out(0), size,
                static_cast<int>(call.node.as<Cast>()->saturate));
  else
    call.launch(0, cuda::grid_of(count), call.in(0), call.out(0), size);
}

Verdict accepts(const KernelQuery& query) {
  const DType from = query.in_dtype(0), to = query.out_dtype();
  const bool narrows = code_name(to) && cuda::float_name(from);
  const bool widens = code_name(from) && cuda::float_name(to);
  if (!narrows && !widens) return no("not between an 8-bit float and a wider one");
  return query.in(0).ranked() ? yes() : no("the rank is unknown");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const DType from = query.in_dtype(0), to = query.out_dtype();
  const bool narrows = code_name(to) != nullptr;
  return cuda::make_text_kernel(
      query, {.text = "cast.cu",
              .options = {cuda::element_option(narrows ? from : to),
                          std::string("-DCODE=") + code_name(narrows ? to : from)},
              .kernels = {narrows ? "to_codes" : "from_codes"},
              .run = narrows ? run<true> : run<false>});
}

}  // namespace

namespace ops {
void register_cast_cuda(Kernels& kernels) {
  kernels.add({.name = "cast/cuda", .op = &Cast::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
