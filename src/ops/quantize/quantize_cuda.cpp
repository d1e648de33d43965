#include "backends/cuda/row.h"
#include "ops/quantize/quantize.h"
#include "ops/strided.h"

namespace dais {
namespace {

enum : size_t { kQuantize, kDequantize };

/// As in quantize.cu.
struct Scales {
  uint32_t axis = 1, inner = 1, block = 1;
  int by_outer = 0, by_inner = 0;
};

struct Range {
  const char* code;  ///< null: no kernel has the type
  int least, most;
};
Range range_of(DType dtype) {
  switch (dtype) {
    case DType::i8: return {"int8", -128, 127};
    case DType::u8: return {"uint8", 0, 255};
    case DType::i4: return {"int8", -8, 7};
    case DType::u4: return {"uint8", 0, 15};
    default: return {nullptr, 0, 0};
  }
}

template <typename S>
Scales scales_of(const S& attrs, const Shape& x, const Shape& scale) {
  if (scale.elements() == 1 && attrs.block_size == 0)
    return {.inner = cuda::size32(std::max<int64_t>(x.elements(), 1))};
  const AxisSplit split = split_axis(x, normalize_axis(attrs.axis, x.rank()));
  Scales out{.axis = cuda::size32(split.size), .inner = cuda::size32(split.inner)};
  if (attrs.block_size > 0) {
    out.block = cuda::size32(attrs.block_size);
    out.by_outer = out.by_inner = 1;
  }
  return out;
}

void run_quantize(const cuda::RowCall& call) noexcept {
  const Shape& x = call.sizes.in[0];
  if (x.elements() == 0) return;
  const Range range = range_of(call.node.outs[0]->type.dtype);
  call.launch(kQuantize, cuda::grid_of(x.elements()), call.in(0), call.in(1), call.in(2),
              call.out(0), cuda::size32(x.elements()),
              scales_of(*call.node.as<QuantizeLinear>(), x, call.sizes.in[1]), range.least,
              range.most);
}

void run_dequantize(const cuda::RowCall& call) noexcept {
  const Shape& x = call.sizes.in[0];
  if (x.elements() == 0) return;
  call.launch(kDequantize, cuda::grid_of(x.elements()), call.in(0), call.in(1), call.in(2),
              call.out(0), cuda::size32(x.elements()),
              scales_of(*call.node.as<DequantizeLinear>(), x, call.sizes.in[1]));
}

Verdict accepts_code(DType dtype) {
  return range_of(dtype).code ? yes() : no("codes of type " + std::string(dtype_name(dtype)));
}

Verdict accepts_quantize(const KernelQuery& query) {
  const auto& attrs = query.attrs<QuantizeLinear>();
  const DType dtype = query.in_dtype(0);
  if (dtype != query.in_dtype(1)) return no("the scale is of another element type");
  if (attrs.precision != DType::undefined && attrs.precision != dtype)
    return no("a precision of its own");
  if (const Verdict code = accepts_code(query.out_dtype()); !code) return code;
  return cuda::accepts_floats(query);
}

Verdict accepts_dequantize(const KernelQuery& query) {
  if (query.out_dtype() != query.in_dtype(1)) return no("the scale is of another element type");
  if (const Verdict code = accepts_code(query.in_dtype(0)); !code) return code;
  if (!query.in(0).ranked()) return no("the rank is unknown");
  return cuda::accepts_floats(query, 1);
}

template <bool quantize>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const DType code = quantize ? query.out_dtype() : query.in_dtype(0);
  return cuda::make_text_kernel(query, {.text = "quantize.cu",
                                        .options = {cuda::element_option(query.in_dtype(1)),
                                                    std::string("-DCODE=") + range_of(code).code},
                                        .kernels = {"quantize", "dequantize"},
                                        .run = quantize ? run_quantize : run_dequantize});
}

}  // namespace

namespace ops {
void register_quantize_cuda(Kernels& kernels) {
  kernels.add({.name = "quantize/cuda",
               .op = &QuantizeLinear::op,
               .accepts = accepts_quantize,
               .prepare = prepare<true>});
  kernels.add({.name = "dequantize/cuda",
               .op = &DequantizeLinear::op,
               .accepts = accepts_dequantize,
               .prepare = prepare<false>});
}
}  // namespace ops
}  // namespace dais
