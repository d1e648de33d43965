// Quantisation and dequantisation to and from 8 bits, and the largest byte of pooling windows.

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ops/pool/pool.h"
#include "ops/qlinear/bytes_cpu.h"
#include "ops/qlinear/cells.h"
#include "ops/qlinear/rows_cpu.h"
#include "ops/quantize/quantize.h"
#include "ops/strided.h"

namespace dais {

struct LinearLoops {
  void (*quantise)(const float*, int64_t, float, int32_t, bool, uint8_t*);
  void (*dequantise)(const uint8_t*, int64_t, float, int32_t, bool, float*);
  void (*range)(const float*, int64_t, float*, float*);
  void (*largest)(const uint8_t* const*, int64_t, int64_t, bool, uint8_t*);
};

#define DAIS_LINEAR_LEVEL(level)                                                                 \
  namespace level {                                                                              \
  void quantise_bytes(const float*, int64_t, float, int32_t, bool, uint8_t*);                    \
  void dequantise_bytes(const uint8_t*, int64_t, float, int32_t, bool, float*);                  \
  void range_of(const float*, int64_t, float*, float*);                                          \
  void largest_bytes(const uint8_t* const*, int64_t, int64_t, bool, uint8_t*);                   \
  constexpr LinearLoops linear_loops{quantise_bytes, dequantise_bytes, range_of, largest_bytes}; \
  }

DAIS_LINEAR_LEVEL(plain)
DAIS_LINEAR_LEVEL(avx2)
DAIS_LINEAR_LEVEL(avx512)
#undef DAIS_LINEAR_LEVEL

namespace {

constexpr int64_t kGrain = 16384;  ///< elements worth a thread

/// Whose scale a run of elements has: the tensor as outer x size x inner along the axis.
AxisSplit split_of(const Shape& x, int64_t scales, int64_t axis) {
  if (scales == 1) return {1, 1, x.elements()};
  return split_axis(x, normalize_axis(axis, x.rank()));
}

/// Calls body(first element, count, scale number) over the tensor on the pool.
template <typename Body>
void for_runs(const AxisSplit& split, Body&& body) {
  if (split.outer * split.size == 1) {
    parallel_for(split.inner, kGrain,
                 [&](int64_t first, int64_t last) { body(first, last - first, int64_t{0}); });
    return;
  }
  parallel_for(split.outer * split.size,
               std::max<int64_t>(1, kGrain / std::max<int64_t>(1, split.inner)),
               [&](int64_t first, int64_t last) {
                 for (int64_t run = first; run < last; ++run)
                   body(run * split.inner, split.inner, run % split.size);
               });
}

int32_t zero_at(const Arguments& arguments, int64_t at, bool is_signed) {
  const auto* zeros =
      static_cast<const uint8_t*>(arguments.in.size() > 2 ? arguments.in[2] : nullptr);
  return zeros ? byte_value(zeros[at], is_signed ? DType::i8 : DType::u8) : 0;
}

template <const LinearLoops& loops>
Fault run_quantise(const Node& node, const Sizes& sizes, const Arguments& arguments) noexcept {
  const bool is_signed = node.outs[0]->type.dtype == DType::i8;
  const auto* x = static_cast<const float*>(arguments.in[0]);
  const auto* scales = static_cast<const float*>(arguments.in[1]);
  auto* y = static_cast<uint8_t*>(arguments.out[0]);
  const int64_t axis = node.as<QuantizeLinear>()->axis;
  for_runs(split_of(sizes.in[0], sizes.in[1].elements(), axis),
           [&](int64_t first, int64_t count, int64_t at) {
             loops.quantise(x + first, count, scales[at], zero_at(arguments, at, is_signed),
                            is_signed, y + first);
           });
  return {};
}

template <const LinearLoops& loops>
Fault run_dequantise(const Node& node, const Sizes& sizes, const Arguments& arguments) noexcept {
  const bool is_signed = node.in[0]->type.dtype == DType::i8;
  const auto* x = static_cast<const uint8_t*>(arguments.in[0]);
  const auto* scales = static_cast<const float*>(arguments.in[1]);
  auto* y = static_cast<float*>(arguments.out[0]);
  const int64_t axis = node.as<DequantizeLinear>()->axis;
  for_runs(split_of(sizes.in[0], sizes.in[1].elements(), axis),
           [&](int64_t first, int64_t count, int64_t at) {
             loops.dequantise(x + first, count, scales[at], zero_at(arguments, at, is_signed),
                              is_signed, y + first);
           });
  return {};
}

/// Chunks of the search for the range; their number depends on the size only.
constexpr int64_t kRangeChunks = 64;

template <const LinearLoops& loops>
Fault run_dynamic(const Node&, const Sizes& sizes, const Arguments& arguments) noexcept {
  const int64_t count = sizes.in[0].elements();
  const auto* x = static_cast<const float*>(arguments.in[0]);
  float lows[kRangeChunks] = {}, highs[kRangeChunks] = {};
  const int64_t chunks = std::clamp<int64_t>(count / kGrain, 1, kRangeChunks);
  parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      const int64_t begin = count * chunk / chunks, end = count * (chunk + 1) / chunks;
      loops.range(x + begin, end - begin, &lows[chunk], &highs[chunk]);
    }
  });
  const float low = *std::min_element(lows, lows + chunks);
  const float high = *std::max_element(highs, highs + chunks);
  const float scale = (high - low) / 255;
  // All zeros: any scale does; a zero one would divide zero by zero.
  const float divisor = scale == 0 ? 1 : scale;
  const auto zero = static_cast<int32_t>(std::clamp(std::nearbyint(-low / divisor), 0.0F, 255.0F));
  parallel_for(count, kGrain, [&](int64_t first, int64_t last) {
    loops.quantise(x + first, last - first, divisor, zero, false,
                   static_cast<uint8_t*>(arguments.out[0]) + first);
  });
  if (arguments.out.size() > 1 && arguments.out[1]) *static_cast<float*>(arguments.out[1]) = scale;
  if (arguments.out.size() > 2 && arguments.out[2])
    *static_cast<uint8_t*>(arguments.out[2]) = static_cast<uint8_t>(zero);
  return {};
}

Verdict common(const KernelQuery& query, size_t bytes_at) {
  const DType byte = bytes_at == 0 ? query.in_dtype(0) : query.out_dtype();
  const DType real = bytes_at == 0 ? query.out_dtype() : query.in_dtype(0);
  if (!is_byte(byte) || real != DType::f32) return no("only between f32 and 8 bits");
  if (query.in_dtype(1) != DType::f32) return no("a scale that is not f32");
  if (!query.in(0).ranked() || !query.in(1).ranked() || query.in(1).shape->size() > 1)
    return no("scales of blocks, or unknown ranks");
  // Sizes that break the rules belong to the reference, which says so.
  const auto count = query.in(1).static_shape();
  if (!count) return no("the number of scales is unknown");
  if (count->elements() == 1) return yes();
  return no("scales along an axis are not known to match");
}

/// One scale per slice whose number is known to be the axis'.
Verdict with_axis(const KernelQuery& query, int64_t axis, Verdict verdict) {
  if (verdict || !query.in(0).ranked() || !query.in(1).ranked()) return verdict;
  const auto count = query.in(1).static_shape();
  const Dims& dims = *query.in(0).shape;
  const int64_t at = axis < 0 ? axis + std::ssize(dims) : axis;
  if (!count || count->rank() != 1 || at < 0 || at >= std::ssize(dims) ||
      !dims[static_cast<size_t>(at)].is(count->elements()))
    return verdict;
  if (query.in_dtype(1) != DType::f32) return verdict;
  return yes();
}

bool zero_matches(const KernelQuery& query) {
  if (!query.node.has(2)) return true;
  const auto zeros = query.in(2).static_shape(), scales = query.in(1).static_shape();
  return zeros && scales && zeros->elements() == scales->elements();
}

Verdict accepts_quantise(const KernelQuery& query) {
  const auto& attrs = query.attrs<QuantizeLinear>();
  if (attrs.block_size != 0 || !zero_matches(query)) return no("blocks, or odd zero points");
  if (attrs.precision != DType::undefined && attrs.precision != DType::f32)
    return no("another precision");
  if (!is_byte(query.out_dtype()) || query.in_dtype(0) != DType::f32)
    return no("only from f32 to 8 bits");
  return with_axis(query, attrs.axis, common(query, 1));
}

Verdict accepts_dequantise(const KernelQuery& query) {
  const auto& attrs = query.attrs<DequantizeLinear>();
  if (attrs.block_size != 0 || !zero_matches(query)) return no("blocks, or odd zero points");
  if (!is_byte(query.in_dtype(0)) || query.out_dtype() != DType::f32)
    return no("only from 8 bits to f32");
  return with_axis(query, attrs.axis, common(query, 0));
}

Verdict accepts_dynamic(const KernelQuery& query) {
  return query.in(0).ranked() ? yes() : no("the rank is unknown");
}

class BoundMaxBytes : public BoundKernel {
 public:
  BoundMaxBytes(const LinearLoops& loops, const Window& window, bool is_signed, const Shape& x,
                const Shape& y)
      : loops_(loops), is_signed_(is_signed), x_(x, true), y_(y, true), cells_(window, x_, y_) {}

  size_t scratch_bytes() const override { return static_cast<size_t>(team_size()) * rows_bytes(); }

  Fault run(const Arguments& arguments) noexcept override {
    const auto* x = static_cast<const uint8_t*>(arguments.in[0]);
    auto* y = static_cast<uint8_t*>(arguments.out[0]);
    const int64_t total = y_.batch * cells_.positions();
    const int64_t work = total * cells_.taps * x_.channels;
    const int64_t parts = std::clamp<int64_t>(work / (4 * kGrain), 1, team_size());
    parallel_for(parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part) {
        auto* rows = reinterpret_cast<const uint8_t**>(static_cast<uint8_t*>(arguments.scratch) +
                                                       static_cast<size_t>(part) * rows_bytes());
        const int64_t begin = total * part / parts, end = total * (part + 1) / parts;
        CellWalk walk(cells_, begin);
        for (int64_t i = begin; i < end; ++i, walk.next()) {
          const uint8_t* image = x + walk.image() * x_.cells() * x_.channels;
          int64_t taps = 0;
          walk.visit([&](int64_t cell) {
            if (cell >= 0) rows[taps++] = image + cell * x_.channels;
          });
          uint8_t* to = y + i * x_.channels;
          if (taps > 0)
            loops_.largest(rows, taps, x_.channels, is_signed_, to);
          else
            std::fill_n(to, x_.channels, static_cast<uint8_t>(is_signed_ ? -128 : 0));
        }
      }
    });
    return {};
  }

 private:
  size_t rows_bytes() const {
    return aligned_bytes(sizeof(void*) * static_cast<size_t>(cells_.taps));
  }

  const LinearLoops& loops_;
  bool is_signed_;
  Activation x_, y_;
  Cells cells_;
};

template <const LinearLoops& loops>
class MaxBytesKernel : public Kernel {
 public:
  explicit MaxBytesKernel(const KernelQuery& query) : is_signed_(query.in_dtype(0) == DType::i8) {
    const auto& attrs = query.attrs<MaxPool>();
    fill_window(window_, attrs.kernel_shape, attrs.strides, attrs.dilations, attrs.pads,
                attrs.auto_pad, attrs.ceil_mode);
  }
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    return std::make_unique<BoundMaxBytes>(loops, window_, is_signed_, sizes.in[0], sizes.out[0]);
  }

 private:
  Window window_;
  bool is_signed_;
};

Verdict accepts_max(const KernelQuery& query) {
  const auto& attrs = query.attrs<MaxPool>();
  if (!is_byte(query.in_dtype(0))) return no("an element type other than u8 and i8");
  if (!attrs.channels_last) return no("activations are row-major");
  if (query.node.outs.size() > 1) return no("indices are asked for");
  if (attrs.kernel_shape.size() > 3 || !query.in(0).ranked()) return no("the number of axes");
  Window window;
  const std::string problem =
      fill_window(window, attrs.kernel_shape, attrs.strides, attrs.dilations, attrs.pads,
                  attrs.auto_pad, attrs.ceil_mode);
  return problem.empty() ? yes() : no(problem);
}

template <const LinearLoops& loops>
std::unique_ptr<Kernel> prepare_max(const KernelQuery& query) {
  return std::make_unique<MaxBytesKernel<loops>>(query);
}

template <const LinearLoops& loops>
void add_rows(Kernels& kernels, Isa isa) {
  kernels.add({.name = "quantise_bytes",
               .op = &QuantizeLinear::op,
               .isa = isa,
               .accepts = accepts_quantise,
               .prepare = simple<run_quantise<loops>>});
  kernels.add({.name = "dequantise_bytes",
               .op = &DequantizeLinear::op,
               .isa = isa,
               .accepts = accepts_dequantise,
               .prepare = simple<run_dequantise<loops>>});
  kernels.add({.name = "quantise_dynamic",
               .op = &DynamicQuantizeLinear::op,
               .isa = isa,
               .accepts = accepts_dynamic,
               .prepare = simple<run_dynamic<loops>>});
  kernels.add({.name = "max_pool/bytes",
               .op = &MaxPool::op,
               .isa = isa,
               .accepts = accepts_max,
               .prepare = prepare_max<loops>});
}

}  // namespace

void register_byte_conversions(Kernels& kernels) {
  add_rows<plain::linear_loops>(kernels, Isa::plain);
  add_rows<avx2::linear_loops>(kernels, Isa::avx2);
  add_rows<avx512::linear_loops>(kernels, Isa::avx512);
}

}  // namespace dais
