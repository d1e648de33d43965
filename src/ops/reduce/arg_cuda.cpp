// The host's side of arg.cu.
#include "ops/reduce/arg_cuda.h"

#include "backends/cuda/row.h"
#include "ops/reduce/reduce.h"
#include "ops/strided.h"

namespace dais {
namespace {

template <typename S>
void run(const cuda::RowCall& call) noexcept {
  const Shape& x = call.sizes.in[0];
  const AxisSplit split = split_axis(x, normalize_axis(call.node.as<S>()->axis, x.rank()));
  if (x.elements() == 0) return;
  cuda::launch_lines(call, split.outer, split.size, split.inner);
}

Verdict accepts(const KernelQuery& query) {
  if (!query.in(0).ranked()) return no("the rank is unknown");
  if (query.in(0).shape->empty()) return no("a scalar");
  return query.in_dtype(0) == DType::i32 ? yes() : cuda::accepts_floats(query);
}

/// An axis without elements has no place to name: the reference says so.
bool takes(const Node&, const Sizes& sizes) {
  return sizes.in[0].elements() > 0 || sizes.out[0].elements() == 0;
}

template <typename S>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const char* type =
      query.in_dtype(0) == DType::i32 ? "int32" : cuda::float_name(query.in_dtype(0));
  return cuda::make_text_kernel(
      query, {.text = "arg.cu",
              .options = {std::string("-DELEMENT=") + type,
                          std::is_same_v<S, ArgMin> ? "-DLEAST=1" : "-DLEAST=0",
                          query.attrs<S>().select_last_index ? "-DLAST=1" : "-DLAST=0"},
              .kernels = {"arg_rows", "arg_columns"},
              .run = run<S>,
              .takes = takes});
}

}  // namespace

void register_arg_cuda(Kernels& kernels) {
  kernels.add(
      {.name = "arg_max/cuda", .op = &ArgMax::op, .accepts = accepts, .prepare = prepare<ArgMax>});
  kernels.add(
      {.name = "arg_min/cuda", .op = &ArgMin::op, .accepts = accepts, .prepare = prepare<ArgMin>});
}

}  // namespace dais
