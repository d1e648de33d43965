#include <algorithm>

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
  bool floats = false;  ///< the range is the type's
};
Range range_of(DType dtype) {
  switch (dtype) {
    case DType::i8: return {"int8", -128, 127};
    case DType::u8: return {"uint8", 0, 255};
    case DType::i4: return {"int8", -8, 7};
    case DType::u4: return {"uint8", 0, 15};
    case DType::f8e4m3fn: return {"f8e4m3", 0, 0, true};
    case DType::f8e5m2: return {"f8e5m2", 0, 0, true};
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
  Range range = range_of(call.node.outs[0]->type.dtype);
  if (range.floats) range.most = call.node.as<QuantizeLinear>()->saturate;
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
  const Range range = range_of(quantize ? query.out_dtype() : query.in_dtype(0));
  std::vector<std::string> options = {cuda::element_option(query.in_dtype(1)),
                                      std::string("-DCODE=") + range.code};
  if (range.floats) options.emplace_back("-DFLOATS");
  return cuda::make_text_kernel(query, {.text = "quantize.cu",
                                        .options = std::move(options),
                                        .kernels = {"quantize", "dequantize"},
                                        .run = quantize ? run_quantize : run_dequantize});
}

constexpr int64_t kMostPieces = 256;

/// Blocks that look for the extremes of x.
int64_t pieces_of(const Shape& x) {
  return std::clamp<int64_t>(x.elements() / 4096, 1, kMostPieces);
}

size_t dynamic_scratch(const Node&, const Sizes& sizes) {
  return static_cast<size_t>(pieces_of(sizes.in[0])) * 2 * sizeof(float) + 8;
}

void run_dynamic(const cuda::RowCall& call) noexcept {
  const int64_t count = call.sizes.in[0].elements();
  cuda::Grid pieces, one;
  pieces.x = cuda::size32(pieces_of(call.sizes.in[0]));
  pieces.threads = one.threads = 256;
  void* found = call.arguments.scratch;
  auto* scratch = static_cast<std::byte*>(found);
  // Outputs that nobody wants are made beside the extremes.
  void* const scale = call.out(1) ? call.out(1) : scratch + pieces.x * 2 * sizeof(float);
  void* const zero = call.out(2) ? call.out(2) : scratch + pieces.x * 2 * sizeof(float) + 4;
  call.launch(0, pieces, call.in(0), found, cuda::size32(count));
  call.launch(1, one, static_cast<const void*>(found), scale, zero, pieces.x);
  if (count > 0)
    call.launch(2, cuda::grid_of(count), call.in(0), static_cast<const void*>(scale),
                static_cast<const void*>(zero), call.out(0), cuda::size32(count));
}

Verdict accepts_dynamic(const KernelQuery& query) {
  if (query.in_dtype(0) != DType::f32) return no("element type");
  return query.in(0).ranked() ? yes() : no("the rank is unknown");
}

std::unique_ptr<Kernel> prepare_dynamic(const KernelQuery& query) {
  return cuda::make_text_kernel(query, {.text = "dynamic_quantize.cu",
                                        .options = {},
                                        .kernels = {"find_extremes", "set_scale", "quantize_by"},
                                        .run = run_dynamic,
                                        .scratch_bytes = dynamic_scratch});
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
  kernels.add({.name = "dynamic_quantize/cuda",
               .op = &DynamicQuantizeLinear::op,
               .accepts = accepts_dynamic,
               .prepare = prepare_dynamic});
}
}  // namespace ops
}  // namespace dais
