#include <algorithm>

#include "base/threads.h"
#include "ops/norm/batch_rows_cpu.h"
#include "ops/norm/norm.h"
#include "runtime/kernel.h"

namespace dais {

#define DAIS_NORM_LEVEL(level)                                                                    \
  namespace level {                                                                               \
  void layer_norm_rows(const float*, int64_t, int64_t, float, const float*, const float*, float*, \
                       float*, float*);                                                           \
  void rms_norm_rows(const float*, int64_t, int64_t, float, const float*, float*, float*);        \
  }
DAIS_NORM_LEVEL(plain)
DAIS_NORM_LEVEL(avx2)
DAIS_NORM_LEVEL(avx512)
#undef DAIS_NORM_LEVEL

namespace {

constexpr int64_t kGrain = 16384;  ///< elements that are worth a thread

/// Whether a parameter holds one value per element of a normalised row.
bool covers_rows(const Type& parameter, const Dims& x, size_t axis) {
  if (!parameter.ranked() || parameter.dtype != DType::f32) return false;
  const Dims row(x.begin() + static_cast<std::ptrdiff_t>(axis), x.end());
  return *parameter.shape == row;
}

template <typename S>
Verdict accepts(const KernelQuery& query) {
  const auto& attrs = query.attrs<S>();
  if (query.in_dtype(0) != DType::f32 || query.out_dtype() != DType::f32 ||
      attrs.stash_type != DType::f32)
    return no("an element type other than f32");
  if (!query.in(0).ranked()) return no("the rank is unknown");
  const Dims& x = *query.in(0).shape;
  const size_t axis = normalize_axis(attrs.axis, x.size());
  for (size_t i = 1; i < query.node.in.size(); ++i)
    if (query.node.has(i) && !covers_rows(query.in(i), x, axis))
      return no("scale or bias does not have one value per element of a row");
  return yes();
}

struct RowSizes {
  int64_t count = 0, size = 0;
};
RowSizes rows_of(const Shape& shape, int64_t axis) {
  const size_t first = normalize_axis(axis, shape.rank());
  return {shape.elements(0, first), shape.elements(first, shape.rank())};
}

const float* in(const Arguments& arguments, size_t i) {
  return i < arguments.in.size() ? static_cast<const float*>(arguments.in[i]) : nullptr;
}
float* out(const Arguments& arguments, size_t i) {
  return i < arguments.out.size() ? static_cast<float*>(arguments.out[i]) : nullptr;
}

template <auto loop>
Fault run_layer(const Node& node, const Sizes& sizes, const Arguments& arguments) noexcept {
  const auto& attrs = *node.as<LayerNormalization>();
  const RowSizes rows = rows_of(sizes.in[0], attrs.axis);
  float *means = out(arguments, 1), *inverses = out(arguments, 2);
  parallel_for(rows.count, std::max<int64_t>(1, kGrain / std::max<int64_t>(rows.size, 1)),
               [&](int64_t first, int64_t last) {
                 loop(in(arguments, 0) + first * rows.size, last - first, rows.size, attrs.epsilon,
                      in(arguments, 1), in(arguments, 2), out(arguments, 0) + first * rows.size,
                      means ? means + first : nullptr, inverses ? inverses + first : nullptr);
               });
  return {};
}

template <auto loop>
Fault run_rms(const Node& node, const Sizes& sizes, const Arguments& arguments) noexcept {
  const auto& attrs = *node.as<RMSNormalization>();
  const RowSizes rows = rows_of(sizes.in[0], attrs.axis);
  float* inverses = out(arguments, 1);
  parallel_for(rows.count, std::max<int64_t>(1, kGrain / std::max<int64_t>(rows.size, 1)),
               [&](int64_t first, int64_t last) {
                 loop(in(arguments, 0) + first * rows.size, last - first, rows.size, attrs.epsilon,
                      in(arguments, 1), out(arguments, 0) + first * rows.size,
                      inverses ? inverses + first : nullptr);
               });
  return {};
}

template <auto layer, auto rms>
void add_rows(Kernels& kernels, Isa isa, std::string_view layer_name, std::string_view rms_name) {
  kernels.add({.name = layer_name,
               .op = &LayerNormalization::op,
               .isa = isa,
               .accepts = accepts<LayerNormalization>,
               .prepare = simple<run_layer<layer>>,
               .overwrites = first_over_first});
  kernels.add({.name = rms_name,
               .op = &RMSNormalization::op,
               .isa = isa,
               .accepts = accepts<RMSNormalization>,
               .prepare = simple<run_rms<rms>>,
               .overwrites = first_over_first});
}

}  // namespace

namespace ops {
void register_norm_cpu(Kernels& kernels) {
  register_batch_norm(kernels);
  register_layer_norm_backward(kernels);
  add_rows<plain::layer_norm_rows, plain::rms_norm_rows>(kernels, Isa::plain, "layer_norm/plain",
                                                         "rms_norm/plain");
  add_rows<avx2::layer_norm_rows, avx2::rms_norm_rows>(kernels, Isa::avx2, "layer_norm/avx2",
                                                       "rms_norm/avx2");
  add_rows<avx512::layer_norm_rows, avx512::rms_norm_rows>(kernels, Isa::avx512,
                                                           "layer_norm/avx512", "rms_norm/avx512");
}
}  // namespace ops
}  // namespace dais
