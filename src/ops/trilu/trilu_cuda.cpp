#include "backends/cuda/row.h"
#include "ops/trilu/trilu.h"

namespace dais {
namespace {

void run(const cuda::RowCall& call) noexcept {
  const Shape& x = call.sizes.in[0];
  if (x.elements() == 0) return;
  const bool given = call.in(1) && call.sizes.in[1].elements() > 0;
  call.launch(0, cuda::grid_of(x.elements()), call.in(0), call.out(0), cuda::size32(x.elements()),
              cuda::size32(x[x.rank() - 2]), cuda::size32(x.back()), given ? call.in(1) : nullptr,
              static_cast<int>(call.node.as<Trilu>()->upper));
}

Verdict accepts(const KernelQuery& query) {
  if (!query.in(0).ranked()) return no("the rank is unknown");
  if (query.in_dtype(0) == DType::string) return no("strings");
  const bool other = query.node.has(1) && query.in_dtype(1) != DType::i64;
  return other ? no("the diagonal is of another type than i64") : yes();
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(query,
                                {.text = "trilu.cu",
                                 .options = {cuda::word_option(dtype_size(query.in_dtype(0)))},
                                 .kernels = {"trilu"},
                                 .run = run});
}

}  // namespace

namespace ops {
void register_trilu_cuda(Kernels& kernels) {
  kernels.add({.name = "trilu/cuda", .op = &Trilu::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
