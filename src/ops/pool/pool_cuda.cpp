#include "backends/cuda/row.h"
#include "ops/pool/pool.h"
#include "ops/window.h"

namespace dais {
namespace {

enum : size_t { kMax, kAverage, kLp, kMaxBackward, kAverageBackward };
constexpr size_t kSpatial = 3;

/// As in pool.cu.
struct Pooling {
  uint32_t planes = 0, channels = 1;
  int in[kSpatial], out[kSpatial], kernel[kSpatial], stride[kSpatial], dilation[kSpatial];
  int begin[kSpatial], end[kSpatial];
};

template <typename S>
Pooling pooling_of(const S& attrs, const Shape& x, const Shape& y) {
  Pooling p;
  const Activation in(x, attrs.channels_last), out(y, attrs.channels_last);
  Window window;
  DAIS_CHECK(fill_window(window, attrs.kernel_shape, attrs.strides, attrs.dilations, attrs.pads,
                         attrs.auto_pad, attrs.ceil_mode)
                 .empty());
  p.planes = cuda::size32(in.batch * in.channels);
  p.channels = cuda::size32(in.channels);
  for (size_t k = 0; k < kSpatial; ++k) {
    p.in[k] = p.out[k] = p.kernel[k] = p.stride[k] = p.dilation[k] = 1;
    p.begin[k] = p.end[k] = 0;
  }
  const size_t rank = window.rank(), lead = kSpatial - rank;
  for (size_t axis = 0; axis < rank; ++axis) {
    const size_t k = lead + axis;
    p.in[k] = static_cast<int>(in.space[axis]);
    p.out[k] = static_cast<int>(out.space[axis]);
    p.kernel[k] = static_cast<int>(window.kernel[axis]);
    p.stride[k] = static_cast<int>(window.strides[axis]);
    p.dilation[k] = static_cast<int>(window.dilations[axis]);
    p.begin[k] = static_cast<int>(window.pad_begin(axis, in.space[axis], out.space[axis]));
    const int64_t covered = (out.space[axis] - 1) * window.strides[axis] + window.extent(axis);
    p.end[k] = window.padding == Window::Padding::given
                   ? static_cast<int>(window.pads[rank + axis])
                   : static_cast<int>(std::max<int64_t>(covered - in.space[axis] - p.begin[k], 0));
  }
  return p;
}

void run_max(const cuda::RowCall& call) noexcept {
  const Shape& y = call.sizes.out[0];
  if (y.elements() == 0) return;
  call.launch(kMax, cuda::grid_of(y.elements()), call.in(0), call.out(0), call.out(1),
              pooling_of(*call.node.as<MaxPool>(), call.sizes.in[0], y));
}

void run_average(const cuda::RowCall& call) noexcept {
  const Shape& y = call.sizes.out[0];
  const auto& attrs = *call.node.as<AveragePool>();
  if (y.elements() == 0) return;
  const int include_pad = attrs.count_include_pad;
  call.launch(kAverage, cuda::grid_of(y.elements()), call.in(0), call.out(0), include_pad,
              pooling_of(attrs, call.sizes.in[0], y));
}

void run_lp(const cuda::RowCall& call) noexcept {
  const Shape& y = call.sizes.out[0];
  const auto& attrs = *call.node.as<LpPool>();
  if (y.elements() == 0) return;
  call.launch(kLp, cuda::grid_of(y.elements()), call.in(0), call.out(0), static_cast<int>(attrs.p),
              pooling_of(attrs, call.sizes.in[0], y));
}

void run_max_backward(const cuda::RowCall& call) noexcept {
  const Shape &x = call.sizes.in[1], &y = call.sizes.in[2];
  if (x.elements() == 0) return;
  call.launch(kMaxBackward, cuda::grid_of(x.elements()), call.in(0), call.in(1), call.in(2),
              call.out(0), pooling_of(*call.node.as<MaxPoolBackward>(), x, y));
}

void run_average_backward(const cuda::RowCall& call) noexcept {
  const Shape& x = call.sizes.out[0];
  const auto& attrs = *call.node.as<AveragePoolBackward>();
  if (x.elements() == 0) return;
  const int divisor = attrs.sum ? 2 : attrs.count_include_pad ? 1 : 0;  // Divisor of pool.cu
  call.launch(kAverageBackward, cuda::grid_of(x.elements()), call.in(0), call.out(0), divisor,
              pooling_of(attrs, x, call.sizes.in[0]));
}

/// Floats; maxima of bytes too, which floats hold exactly.
template <typename S>
const char* element_name(DType dtype) {
  if (std::is_same_v<S, MaxPool> && dtype == DType::i8) return "int8";
  if (std::is_same_v<S, MaxPool> && dtype == DType::u8) return "uint8";
  return cuda::float_name(dtype);
}

template <typename S>
Verdict accepts(const KernelQuery& query) {
  const auto& attrs = query.attrs<S>();
  if (attrs.kernel_shape.size() > kSpatial) return no("more than three spatial axes");
  if constexpr (std::is_same_v<S, MaxPool>)
    if (attrs.storage_order != 0) return no("indices in column-major order");
  if constexpr (std::is_same_v<S, LpPool>)
    if (const int64_t p = attrs.p; p < 1 || p > INT32_MAX) return no("a norm that is none");
  return element_name<S>(query.in_dtype(0)) && query.in(0).ranked() ? yes()
                                                                    : cuda::accepts_floats(query);
}

template <typename S>
auto run_of() {
  if constexpr (std::is_same_v<S, MaxPool>) return run_max;
  if constexpr (std::is_same_v<S, AveragePool>) return run_average;
  if constexpr (std::is_same_v<S, LpPool>) return run_lp;
  if constexpr (std::is_same_v<S, MaxPoolBackward>) return run_max_backward;
  if constexpr (std::is_same_v<S, AveragePoolBackward>) return run_average_backward;
}

template <typename S>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(
      query,
      {.text = "pool.cu",
       .options = {std::string("-DELEMENT=") + element_name<S>(query.in_dtype(0)),
                   query.attrs<S>().channels_last ? "-DCHANNELS_LAST=1" : "-DCHANNELS_LAST=0"},
       .kernels = {"max_pool", "average_pool", "lp_pool", "max_pool_backward",
                   "average_pool_backward"},
       .run = run_of<S>()});
}

}  // namespace

namespace ops {
void register_pool_cuda(Kernels& kernels) {
  kernels.add({.name = "max_pool/cuda",
               .op = &MaxPool::op,
               .accepts = accepts<MaxPool>,
               .prepare = prepare<MaxPool>});
  kernels.add({.name = "average_pool/cuda",
               .op = &AveragePool::op,
               .accepts = accepts<AveragePool>,
               .prepare = prepare<AveragePool>});
  kernels.add({.name = "lp_pool/cuda",
               .op = &LpPool::op,
               .accepts = accepts<LpPool>,
               .prepare = prepare<LpPool>});
  kernels.add({.name = "max_pool_backward/cuda",
               .op = &MaxPoolBackward::op,
               .accepts = accepts<MaxPoolBackward>,
               .prepare = prepare<MaxPoolBackward>});
  kernels.add({.name = "average_pool_backward/cuda",
               .op = &AveragePoolBackward::op,
               .accepts = accepts<AveragePoolBackward>,
               .prepare = prepare<AveragePoolBackward>});
}
}  // namespace ops
}  // namespace dais
