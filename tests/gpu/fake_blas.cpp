#include "fake_blas.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ir/float_formats.h"
#include "stand_in.h"

namespace dais::cuda {
namespace {

struct Desc {
  int32_t turn_a = 0, turn_b = 0;
  BlasEpilogue epilogue = BlasEpilogue::none;
  const void* bias = nullptr;
  DataKind bias_kind = DataKind::f32;
  BlasCompute compute = BlasCompute::f32;
};

struct Layout {
  DataKind kind = DataKind::f32;
  int64_t rows = 0, columns = 0, leading = 0;
  int32_t batches = 1;
  int64_t step = 0;
};

FakeBlasCounts counts;
bool empty = false;

template <typename T, typename Handle>
T* object(Handle handle) {
  return reinterpret_cast<T*>(handle);
}

template <typename T, typename Handle>
BlasStatus make(Handle* handle, T value) {
  *handle = reinterpret_cast<Handle>(new T(value));
  ++counts.live;
  return BlasStatus::success;
}
template <typename T, typename Handle>
BlasStatus drop(Handle handle) {
  delete object<T>(handle);
  --counts.live;
  return BlasStatus::success;
}

size_t size_of(DataKind kind) { return kind == DataKind::f32 ? 4 : 2; }

double load(DataKind kind, const void* from, int64_t at) {
  switch (kind) {
    case DataKind::f16: return static_cast<float>(static_cast<const Float16*>(from)[at]);
    case DataKind::bf16: return static_cast<float>(static_cast<const BFloat16*>(from)[at]);
    default: return static_cast<const float*>(from)[at];
  }
}
void store(DataKind kind, void* to, int64_t at, double value) {
  const auto narrow = static_cast<float>(value);
  switch (kind) {
    case DataKind::f16: static_cast<Float16*>(to)[at] = Float16(narrow); break;
    case DataKind::bf16: static_cast<BFloat16*>(to)[at] = BFloat16(narrow); break;
    default: static_cast<float*>(to)[at] = narrow;
  }
}

/// An input of the product as the compute type takes it: bits below are cut.
double rounded(BlasCompute compute, double value) {
  if (compute != BlasCompute::f32_fast_tf32 && compute != BlasCompute::f32_fast_bf16) return value;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const uint32_t kept = compute == BlasCompute::f32_fast_tf32 ? 0xffffe000U : 0xffff0000U;
  return static_cast<double>(std::bit_cast<float>(bits & kept));
}

double finish(const Desc& desc, double value, int64_t row) {
  const auto flags = static_cast<uint32_t>(desc.epilogue);
  if (flags & static_cast<uint32_t>(BlasEpilogue::bias))
    value += load(desc.bias_kind, desc.bias, row);
  if (flags & static_cast<uint32_t>(BlasEpilogue::relu)) return std::max(value, 0.0);
  if (flags & static_cast<uint32_t>(BlasEpilogue::gelu))
    return 0.5 * value *
           (1 + std::tanh(0.79788456080286535588 * (value + 0.044715 * value * value * value)));
  return value;
}

/// One product, when its stream gets there.
struct Work {
  Desc desc;
  Layout a, b, d;
  const void *from_a, *from_b;
  void* to;
  float alpha;

  DriverResult operator()() const {
    ++counts.products;
    const int64_t depth = desc.turn_a ? a.rows : a.columns;
    for (int64_t z = 0; z < d.batches; ++z)
      for (int64_t column = 0; column < d.columns; ++column)
        for (int64_t row = 0; row < d.rows; ++row) {
          double sum = 0;
          for (int64_t k = 0; k < depth; ++k) {
            const int64_t at_a =
                z * a.step + (desc.turn_a ? row * a.leading + k : k * a.leading + row);
            const int64_t at_b =
                z * b.step + (desc.turn_b ? k * b.leading + column : column * b.leading + k);
            sum += rounded(desc.compute, load(a.kind, from_a, at_a)) *
                   rounded(desc.compute, load(b.kind, from_b, at_b));
          }
          store(d.kind, to, z * d.step + column * d.leading + row, finish(desc, alpha * sum, row));
        }
    return DriverResult::success;
  }
};

bool fits(const Desc& desc, const Layout& a, const Layout& b, const Layout& d) {
  const int64_t rows = desc.turn_a ? a.columns : a.rows;
  const int64_t depth = desc.turn_a ? a.rows : a.columns;
  const int64_t depth_b = desc.turn_b ? b.columns : b.rows;
  const int64_t columns = desc.turn_b ? b.rows : b.columns;
  return rows == d.rows && columns == d.columns && depth == depth_b && a.batches == d.batches &&
         b.batches == d.batches && a.leading >= a.rows && b.leading >= b.rows &&
         d.leading >= d.rows;
}

size_t bytes_of(const Layout& layout) {
  return static_cast<size_t>((layout.batches - 1) * layout.step +
                             (layout.columns - 1) * layout.leading + layout.rows) *
         size_of(layout.kind);
}

BlasStatus set_desc(MatmulDesc handle, MatmulAttribute attribute, const void* value, size_t bytes) {
  Desc& desc = *object<Desc>(handle);
  const auto take = [&](auto& to) {
    if (bytes != sizeof to) return BlasStatus::invalid_value;
    std::memcpy(&to, value, bytes);
    return BlasStatus::success;
  };
  switch (attribute) {
    case MatmulAttribute::transpose_a: return take(desc.turn_a);
    case MatmulAttribute::transpose_b: return take(desc.turn_b);
    case MatmulAttribute::epilogue: return take(desc.epilogue);
    case MatmulAttribute::bias_pointer: return take(desc.bias);
    case MatmulAttribute::bias_type: return take(desc.bias_kind);
  }
  return BlasStatus::invalid_value;
}

BlasStatus set_layout(MatrixLayout handle, LayoutAttribute attribute, const void* value,
                      size_t bytes) {
  Layout& layout = *object<Layout>(handle);
  if (attribute == LayoutAttribute::batch_count && bytes == sizeof layout.batches)
    std::memcpy(&layout.batches, value, bytes);
  else if (attribute == LayoutAttribute::batch_stride && bytes == sizeof layout.step)
    std::memcpy(&layout.step, value, bytes);
  else
    return BlasStatus::invalid_value;
  return BlasStatus::success;
}

BlasStatus choose(BlasHandle, MatmulDesc desc, MatrixLayout a, MatrixLayout b, MatrixLayout,
                  MatrixLayout d, MatmulPreference, int wanted, MatmulChoice* found, int* count) {
  *count = 0;
  if (wanted < 1 ||
      !fits(*object<Desc>(desc), *object<Layout>(a), *object<Layout>(b), *object<Layout>(d)))
    return BlasStatus::invalid_value;
  if (empty) return BlasStatus::not_supported;
  *found = {};
  found->workspace_bytes = 1024;
  *count = 1;
  return BlasStatus::success;
}

BlasStatus multiply(BlasHandle, MatmulDesc desc, const void* alpha, const void* a,
                    MatrixLayout a_layout, const void* b, MatrixLayout b_layout, const void* beta,
                    const void*, MatrixLayout, void* d, MatrixLayout d_layout,
                    const MatmulAlgorithm*, void* workspace, size_t workspace_bytes,
                    DriverStream stream) {
  Work work{*object<Desc>(desc),
            *object<Layout>(a_layout),
            *object<Layout>(b_layout),
            *object<Layout>(d_layout),
            a,
            b,
            d,
            *static_cast<const float*>(alpha)};
  if (*static_cast<const float*>(beta) != 0 || !fits(work.desc, work.a, work.b, work.d))
    return BlasStatus::invalid_value;
  StandIn& driver = StandIn::instance();
  const bool inside = driver.covers(a, bytes_of(work.a), "a product") &&
                      driver.covers(b, bytes_of(work.b), "a product") &&
                      driver.covers(d, bytes_of(work.d), "a product") &&
                      driver.covers(workspace, workspace_bytes, "a product's workspace");
  if (!inside) return BlasStatus::invalid_value;
  driver.put(stream, {a, b}, d, work);
  return BlasStatus::success;
}

}  // namespace

FakeBlasCounts fake_blas_counts() { return counts; }
void set_fake_blas_empty(bool now) { empty = now; }

Loaded<CublasLtApi> fake_cublaslt() {
  Loaded<CublasLtApi> out;
  out.report = {"cuBLASLt", "of the tests", "0.0", {}, {}};
  CublasLtApi& api = out.api;
  api.create = [](BlasHandle* handle) { return make(handle, 0); };
  api.destroy = [](BlasHandle handle) { return drop<int>(handle); };
  api.get_version = [] { return size_t{0}; };
  api.get_status_name = [](BlasStatus) { return "a status of the tests"; };
  api.desc_create = [](MatmulDesc* desc, BlasCompute compute, DataKind) {
    Desc made;
    made.compute = compute;
    return make(desc, made);
  };
  api.desc_destroy = [](MatmulDesc desc) { return drop<Desc>(desc); };
  api.desc_set = set_desc;
  api.layout_create = [](MatrixLayout* layout, DataKind kind, uint64_t rows, uint64_t columns,
                         int64_t leading) {
    return make(layout,
                Layout{kind, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading});
  };
  api.layout_destroy = [](MatrixLayout layout) { return drop<Layout>(layout); };
  api.layout_set = set_layout;
  api.preference_create = [](MatmulPreference* preference) { return make(preference, 0); };
  api.preference_destroy = [](MatmulPreference preference) { return drop<int>(preference); };
  api.preference_set = [](MatmulPreference, PreferenceAttribute, const void*, size_t) {
    return BlasStatus::success;
  };
  api.heuristic = choose;
  api.matmul = multiply;
  return out;
}

}  // namespace dais::cuda
