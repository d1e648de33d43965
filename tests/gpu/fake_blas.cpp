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
  DataKind scale_kind = DataKind::f32;
  const float *a_scale = nullptr, *b_scale = nullptr;
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

/// What was promised of the addresses of A, B, C and D.
struct Preference {
  uint32_t alignment[4] = {256, 256, 256, 256};
};

bool is_f8(DataKind kind) { return kind == DataKind::f8e4m3 || kind == DataKind::f8e5m2; }

size_t size_of(DataKind kind) {
  if (kind == DataKind::i8 || is_f8(kind)) return 1;
  return kind == DataKind::f32 || kind == DataKind::i32 ? 4 : 2;
}

double load(DataKind kind, const void* from, int64_t at) {
  switch (kind) {
    case DataKind::f16: return static_cast<float>(static_cast<const Float16*>(from)[at]);
    case DataKind::bf16: return static_cast<float>(static_cast<const BFloat16*>(from)[at]);
    case DataKind::f8e4m3: return static_cast<float>(static_cast<const Float8E4M3FN*>(from)[at]);
    case DataKind::f8e5m2: return static_cast<float>(static_cast<const Float8E5M2*>(from)[at]);
    case DataKind::i8: return static_cast<const int8_t*>(from)[at];
    default: return static_cast<const float*>(from)[at];
  }
}
void store(DataKind kind, void* to, int64_t at, double value) {
  const auto narrow = static_cast<float>(value);
  switch (kind) {
    case DataKind::f16: static_cast<Float16*>(to)[at] = Float16(narrow); break;
    case DataKind::bf16: static_cast<BFloat16*>(to)[at] = BFloat16(narrow); break;
    case DataKind::i32: static_cast<int32_t*>(to)[at] = static_cast<int32_t>(value); break;
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
  double alpha;

  DriverResult operator()() const {
    ++counts.products;
    const double scale =
        alpha * (desc.a_scale ? *desc.a_scale : 1) * (desc.b_scale ? *desc.b_scale : 1);
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
          store(d.kind, to, z * d.step + column * d.leading + row, finish(desc, scale * sum, row));
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

bool is_turned_normal(const Desc& desc) { return desc.turn_a == 1 && desc.turn_b == 0; }

/// Products of bytes: signed ones with whole sums, the depth innermost on both sides, sizes and
/// distances of A, B and D in multiples of four, nothing behind them.
bool knows_bytes(const Desc& desc, const Layout& a, const Layout& b, const Layout& d) {
  const auto fours = [](int64_t size) { return size % 4 == 0; };
  return a.kind == DataKind::i8 && b.kind == DataKind::i8 && d.kind == DataKind::i32 &&
         desc.scale_kind == DataKind::i32 && desc.epilogue == BlasEpilogue::none &&
         is_turned_normal(desc) && fours(a.rows) && fours(a.columns) && fours(a.leading) &&
         fours(b.leading) && fours(d.leading);
}

/// Products of 8-bit floats: not both e5m2, the depth innermost on both sides, rows of 16 bytes.
bool knows_f8(const Desc& desc, const Layout& a, const Layout& b, const Layout& d) {
  const auto whole = [](int64_t size) { return size % 16 == 0; };
  const bool wide = d.kind == DataKind::f32 || d.kind == DataKind::f16 || d.kind == DataKind::bf16;
  return is_f8(a.kind) && is_f8(b.kind) && wide &&
         !(a.kind == DataKind::f8e5m2 && b.kind == DataKind::f8e5m2) &&
         desc.compute == BlasCompute::f32 && desc.scale_kind == DataKind::f32 &&
         desc.epilogue == BlasEpilogue::none && is_turned_normal(desc) && whole(a.rows) &&
         whole(a.columns) && whole(a.leading) && whole(b.leading);
}

/// Whether the library has an algorithm for these types and the way in which matrices lie.
bool knows(const Desc& desc, const Layout& a, const Layout& b, const Layout& d) {
  if (desc.compute == BlasCompute::i32) return knows_bytes(desc, a, b, d);
  if (is_f8(a.kind) || is_f8(b.kind)) return knows_f8(desc, a, b, d);
  return a.kind == b.kind && a.kind == d.kind && a.kind != DataKind::i8 &&
         desc.scale_kind == DataKind::f32;
}

bool is_multiple(const void* address, uint64_t of) {
  return reinterpret_cast<uintptr_t>(address) % of == 0;
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
    case MatmulAttribute::a_scale_pointer: return take(desc.a_scale);
    case MatmulAttribute::b_scale_pointer: return take(desc.b_scale);
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

BlasStatus set_preference(MatmulPreference handle, PreferenceAttribute attribute, const void* value,
                          size_t bytes) {
  if (attribute == PreferenceAttribute::most_workspace_bytes)
    return bytes == sizeof(size_t) ? BlasStatus::success : BlasStatus::invalid_value;
  auto& alignment = object<Preference>(handle)->alignment;
  const auto place =
      static_cast<size_t>(attribute) - static_cast<size_t>(PreferenceAttribute::alignment_a);
  if (place >= std::size(alignment) || bytes != sizeof alignment[0])
    return BlasStatus::invalid_value;
  std::memcpy(&alignment[place], value, bytes);
  return BlasStatus::success;
}

/// The algorithm relies on what the preference promises of the addresses.
BlasStatus choose(BlasHandle, MatmulDesc desc, MatrixLayout a, MatrixLayout b, MatrixLayout,
                  MatrixLayout d, MatmulPreference preference, int wanted, MatmulChoice* found,
                  int* count) {
  *count = 0;
  const Desc& product = *object<Desc>(desc);
  const Layout &of_a = *object<Layout>(a), &of_b = *object<Layout>(b), &of_d = *object<Layout>(d);
  if (wanted < 1 || !fits(product, of_a, of_b, of_d)) return BlasStatus::invalid_value;
  if (empty || !knows(product, of_a, of_b, of_d)) return BlasStatus::not_supported;
  *found = {};
  std::copy_n(object<Preference>(preference)->alignment, 4, found->algorithm.data);
  found->workspace_bytes = 1024;
  *count = 1;
  return BlasStatus::success;
}

BlasStatus multiply(BlasHandle, MatmulDesc desc, const void* alpha, const void* a,
                    MatrixLayout a_layout, const void* b, MatrixLayout b_layout, const void* beta,
                    const void*, MatrixLayout, void* d, MatrixLayout d_layout,
                    const MatmulAlgorithm* algorithm, void* workspace, size_t workspace_bytes,
                    DriverStream stream) {
  const auto number = [&](const void* from) -> double {
    if (object<Desc>(desc)->scale_kind == DataKind::i32) return *static_cast<const int32_t*>(from);
    return *static_cast<const float*>(from);
  };
  Work work{*object<Desc>(desc),
            *object<Layout>(a_layout),
            *object<Layout>(b_layout),
            *object<Layout>(d_layout),
            a,
            b,
            d,
            number(alpha)};
  if (number(beta) != 0 || !fits(work.desc, work.a, work.b, work.d) ||
      !knows(work.desc, work.a, work.b, work.d))
    return BlasStatus::invalid_value;
  if ((work.desc.a_scale || work.desc.b_scale) && !is_f8(work.a.kind))
    return BlasStatus::invalid_value;
  if (!is_multiple(a, algorithm->data[0]) || !is_multiple(b, algorithm->data[1]) ||
      !is_multiple(d, algorithm->data[3]))
    return BlasStatus::invalid_value;
  StandIn& driver = StandIn::instance();
  const bool inside = driver.covers(a, bytes_of(work.a), "a product") &&
                      driver.covers(b, bytes_of(work.b), "a product") &&
                      driver.covers(d, bytes_of(work.d), "a product") &&
                      driver.covers(workspace, workspace_bytes, "a product's workspace");
  if (!inside) return BlasStatus::invalid_value;
  std::vector<const void*> reads{a, b};
  for (const void* scale : {work.desc.a_scale, work.desc.b_scale}) {
    if (!scale) continue;
    if (!driver.covers(scale, sizeof(float), "a product's scale")) return BlasStatus::invalid_value;
    reads.push_back(scale);
  }
  driver.put(stream, std::move(reads), d, work);
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
  api.desc_create = [](MatmulDesc* desc, BlasCompute compute, DataKind scale) {
    Desc made;
    made.compute = compute;
    made.scale_kind = scale;
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
  api.preference_create = [](MatmulPreference* preference) {
    return make(preference, Preference{});
  };
  api.preference_destroy = [](MatmulPreference preference) { return drop<Preference>(preference); };
  api.preference_set = set_preference;
  api.heuristic = choose;
  api.matmul = multiply;
  return out;
}

}  // namespace dais::cuda
