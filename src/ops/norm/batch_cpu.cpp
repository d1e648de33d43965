// Batch normalisation while training, and its gradient: two sums per channel, then one linear map.
// The share of each partial sum follows from the sizes alone, so that results do not depend on the
// number of threads. bf16 activations are widened block by block on the way to the f32 loops; what
// there is one of per channel stays f32.

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/convert.h"
#include "base/threads.h"
#include "ops/norm/batch_rows_cpu.h"
#include "ops/norm/norm.h"
#include "ops/window.h"
#include "runtime/kernel.h"

namespace dais {

#define DAIS_BATCH_LEVEL(level)                                                                    \
  namespace level {                                                                                \
  void batch_sums(const float*, const float*, int64_t, int64_t, float*, float*);                   \
  void batch_products(const float*, const float*, const float*, int64_t, int64_t, float*, float*); \
  void batch_scale(const float*, const float*, const float*, const float*, int64_t, int64_t,       \
                   float*);                                                                        \
  void batch_slopes(const float*, const float*, const float*, const float*, const float*,          \
                    const float*, int64_t, int64_t, float*);                                       \
  void plane_sums(const float*, float, int64_t, float*, float*);                                   \
  void plane_products(const float*, const float*, float, int64_t, float*, float*);                 \
  void plane_scale(const float*, float, float, float, int64_t, float*);                            \
  void plane_slopes(const float*, const float*, float, float, float, float, int64_t, float*);      \
  }
DAIS_BATCH_LEVEL(plain)
DAIS_BATCH_LEVEL(avx2)
DAIS_BATCH_LEVEL(avx512)
#undef DAIS_BATCH_LEVEL

namespace {

struct BatchLoops {
  decltype(&plain::batch_sums) sums;
  decltype(&plain::batch_products) products;
  decltype(&plain::batch_scale) scale;
  decltype(&plain::batch_slopes) slopes;
  decltype(&plain::plane_sums) plane_sums;
  decltype(&plain::plane_products) plane_products;
  decltype(&plain::plane_scale) plane_scale;
  decltype(&plain::plane_slopes) plane_slopes;
};

#define DAIS_BATCH_LOOPS(level)                                                           \
  {                                                                                       \
    level::batch_sums, level::batch_products, level::batch_scale, level::batch_slopes,    \
        level::plane_sums, level::plane_products, level::plane_scale, level::plane_slopes \
  }
const BatchLoops& batch_loops(Isa isa) {
  static constexpr BatchLoops levels[] = {DAIS_BATCH_LOOPS(plain), DAIS_BATCH_LOOPS(avx2),
                                          DAIS_BATCH_LOOPS(avx512)};
  return levels[std::min(static_cast<int>(isa), 2)];
}
#undef DAIS_BATCH_LOOPS

constexpr int64_t kShare = 256;   ///< rows whose sums are kept in f32
constexpr int64_t kGrain = 8192;  ///< elements that are worth a thread
constexpr int64_t kBlock = 4096;  ///< bf16 elements that are widened at a time

/// An activation, f32 or bf16.
struct Activations {
  const void* data = nullptr;
  bool half = false;
  Isa isa = Isa::plain;

  /// Elements from `at` on as f32, at most kBlock of bf16 ones, which go to `room`.
  const float* read(int64_t at, int64_t count, float* room) const {
    if (!half) return static_cast<const float*>(data) + at;
    cpu::widen(isa, cpu::Half::bf16, static_cast<const uint16_t*>(data) + at, room, count);
    return room;
  }
};
/// The place where f32 elements are made that become bf16, or theirs.
struct Written {
  void* data = nullptr;
  bool half = false;
  Isa isa = Isa::plain;

  float* place(int64_t at, float* room) const {
    return half ? room : static_cast<float*>(data) + at;
  }
  void settle(int64_t at, int64_t count, const float* room) const {
    if (half) cpu::narrow(isa, cpu::Half::bf16, room, static_cast<uint16_t*>(data) + at, count);
  }
};

/// Sizes and memory of one binding. By rows: the channels of a place are adjacent; else planes are.
class BoundBatch : public BoundKernel {
 public:
  BoundBatch(const Shape& x, bool channels_last, bool half, Isa isa)
      : loops_(batch_loops(isa)), half_(half), isa_(isa) {
    const Activation sizes(x, channels_last);
    channels_ = sizes.channels;
    cells_ = sizes.cells();
    batch_ = sizes.batch;
    by_rows_ = channels_last || cells_ == 1;
    rows_ = batch_ * cells_;
    chunk_rows_ = std::max(kShare, (rows_ + 31) / 32);
    chunks_ = (rows_ + chunk_rows_ - 1) / chunk_rows_;
  }
  size_t scratch_bytes() const override {
    const auto each = static_cast<size_t>(channels_);
    const auto parts = static_cast<size_t>(by_rows_ ? chunks_ : 0);
    return each * (2 * sizeof(double) + 4 * sizeof(float)) +
           parts * each * 2 * (sizeof(double) + sizeof(float));
  }

 protected:
  /// Memory of one run: totals per channel, then rows of numbers per channel.
  struct Memory {
    double *first, *second, *parts;
    float *rows[4], *shares;
  };
  Memory memory_of(void* scratch) const {
    auto* doubles = static_cast<double*>(scratch);
    const int64_t parts = by_rows_ ? chunks_ * channels_ * 2 : 0;
    auto* floats = reinterpret_cast<float*>(doubles + 2 * channels_ + parts);
    Memory out{doubles, doubles + channels_, doubles + 2 * channels_, {}, nullptr};
    for (int i = 0; i < 4; ++i) out.rows[i] = floats + i * channels_;
    out.shares = floats + 4 * channels_;
    return out;
  }

  /// Two totals per channel. row(at, rows, sum, other) adds those of some rows from element `at`
  /// on; plane(at, channel, sum, other) those of one plane.
  template <typename Row, typename Plane>
  void total(const Memory& memory, Row&& row, Plane&& plane) const {
    std::fill_n(memory.first, 2 * channels_, 0.0);
    if (!by_rows_) {
      parallel_for(channels_, grain(batch_ * cells_), [&](int64_t from, int64_t to) {
        for (int64_t c = from; c < to; ++c)
          for (int64_t n = 0; n < batch_; ++n) {
            float sum = 0, other = 0;
            plane((n * channels_ + c) * cells_, c, &sum, &other);
            memory.first[c] += static_cast<double>(sum);
            memory.second[c] += static_cast<double>(other);
          }
      });
      return;
    }
    parallel_for(chunks_, grain(chunk_rows_ * channels_), [&](int64_t from, int64_t to) {
      for (int64_t chunk = from; chunk < to; ++chunk) add_chunk(memory, chunk, row);
    });
    for (int64_t chunk = 0; chunk < chunks_; ++chunk)
      for (int64_t c = 0; c < 2 * channels_; ++c)
        memory.first[c] += memory.parts[chunk * 2 * channels_ + c];
  }

  /// Calls row(at, rows) for shares of all rows, or plane(at, channel) for all planes.
  template <typename Row, typename Plane>
  void map(Row&& row, Plane&& plane) const {
    if (!by_rows_) {
      parallel_for(batch_ * channels_, grain(cells_), [&](int64_t from, int64_t to) {
        for (int64_t task = from; task < to; ++task) plane(task * cells_, task % channels_);
      });
      return;
    }
    parallel_for(rows_, grain(channels_),
                 [&](int64_t from, int64_t to) { row(from * channels_, to - from); });
  }

  int64_t count() const { return rows_; }

  /// Calls body(at, rows) for rows from element `at` on, few enough to be widened.
  template <typename Body>
  void by_block_of_rows(int64_t at, int64_t rows, Body&& body) const {
    const int64_t most = half_ ? std::max<int64_t>(1, kBlock / channels_) : rows;
    for (int64_t row = 0; row < rows; row += most)
      body(at + row * channels_, std::min(most, rows - row));
  }
  /// Calls body(at, count) for parts of a plane.
  template <typename Body>
  void by_block_of_plane(int64_t at, Body&& body) const {
    const int64_t most = half_ ? kBlock : cells_;
    for (int64_t i = 0; i < cells_; i += most) body(at + i, std::min(most, cells_ - i));
  }

  const BatchLoops& loops_;
  bool half_;
  Isa isa_;
  int64_t channels_ = 0, cells_ = 0, batch_ = 0;

 private:
  static int64_t grain(int64_t elements) {
    return std::max<int64_t>(1, kGrain / std::max<int64_t>(elements, 1));
  }

  template <typename Row>
  void add_chunk(const Memory& memory, int64_t chunk, Row&& row) const {
    double* totals = memory.parts + chunk * 2 * channels_;
    float* share = memory.shares + chunk * 2 * channels_;
    std::fill_n(totals, 2 * channels_, 0.0);
    const int64_t last = std::min(rows_, (chunk + 1) * chunk_rows_);
    for (int64_t at = chunk * chunk_rows_; at < last; at += kShare) {
      std::fill_n(share, 2 * channels_, 0.0F);
      row(at * channels_, std::min(kShare, last - at), share, share + channels_);
      for (int64_t c = 0; c < 2 * channels_; ++c) totals[c] += static_cast<double>(share[c]);
    }
  }

  bool by_rows_ = false;
  int64_t rows_ = 0, chunk_rows_ = 1, chunks_ = 0;
};

bool is_half(const Value& value) { return value.type.dtype == DType::bf16; }

class BoundForward : public BoundBatch {
 public:
  BoundForward(const Node& node, const Shape& x, Isa isa)
      : BoundBatch(x, node.as<BatchNormalization>()->channels_last, is_half(*node.in[0]), isa),
        attrs_(*node.as<BatchNormalization>()) {}

  Fault run(const Arguments& arguments) noexcept override {
    const auto in = [&](size_t i) { return static_cast<const float*>(arguments.in[i]); };
    const auto out = [&](size_t i) {
      return i < arguments.out.size() ? static_cast<float*>(arguments.out[i]) : nullptr;
    };
    const Activations x{arguments.in[0], half_, isa_};
    const Memory memory = memory_of(arguments.scratch);
    float *near = memory.rows[0], *mean = memory.rows[1], *factor = memory.rows[2];
    for (int64_t c = 0; c < channels_; ++c) {
      float first;
      near[c] = *x.read(first_of(c), 1, &first);
    }
    total(
        memory,
        [&](int64_t from, int64_t rows, float* sum, float* squares) {
          float room[kBlock];
          by_block_of_rows(from, rows, [&](int64_t at, int64_t some) {
            loops_.sums(x.read(at, some * channels_, room), near, some, channels_, sum, squares);
          });
        },
        [&](int64_t from, int64_t c, float* sum, float* squares) {
          float room[kBlock];
          by_block_of_plane(from, [&](int64_t at, int64_t some) {
            loops_.plane_sums(x.read(at, some, room), near[c], some, sum, squares);
          });
        });
    const auto n = static_cast<double>(count());
    for (int64_t c = 0; c < channels_; ++c) {
      const double shift = memory.first[c] / n;
      const double variance = std::fmax(memory.second[c] / n - shift * shift, 0.0);
      const double middle = static_cast<double>(near[c]) + shift;
      const double inverse = 1 / std::sqrt(variance + static_cast<double>(attrs_.epsilon));
      mean[c] = static_cast<float>(middle);
      factor[c] = static_cast<float>(static_cast<double>(in(1)[c]) * inverse);
      const auto keep = static_cast<double>(attrs_.momentum);
      const auto blend = [&](size_t i, double own) {
        if (float* running = out(i - 2))
          running[c] = static_cast<float>(static_cast<double>(in(i)[c]) * keep + own * (1 - keep));
      };
      blend(3, middle);
      blend(4, variance);
      if (out(3)) out(3)[c] = mean[c];
      if (out(4)) out(4)[c] = static_cast<float>(inverse);
    }
    const Written y{arguments.out[0], half_, isa_};
    map(
        [&](int64_t from, int64_t rows) {
          float room[kBlock];
          by_block_of_rows(from, rows, [&](int64_t at, int64_t some) {
            const int64_t elements = some * channels_;
            float* to = y.place(at, room);
            loops_.scale(x.read(at, elements, room), mean, factor, in(2), some, channels_, to);
            y.settle(at, elements, room);
          });
        },
        [&](int64_t from, int64_t c) {
          float room[kBlock];
          by_block_of_plane(from, [&](int64_t at, int64_t some) {
            float* to = y.place(at, room);
            loops_.plane_scale(x.read(at, some, room), mean[c], factor[c], in(2)[c], some, to);
            y.settle(at, some, room);
          });
        });
    return {};
  }

 private:
  int64_t first_of(int64_t channel) const {
    return attrs_.channels_last ? channel : channel * cells_;
  }
  const BatchNormalization& attrs_;
};

class BoundBackward : public BoundBatch {
 public:
  BoundBackward(const Node& node, const Shape& x, Isa isa)
      : BoundBatch(x, node.as<BatchNormalizationBackward>()->channels_last, is_half(*node.in[1]),
                   isa) {}

  Fault run(const Arguments& arguments) noexcept override {
    const auto in = [&](size_t i) { return static_cast<const float*>(arguments.in[i]); };
    const auto out = [&](size_t i) {
      return i < arguments.out.size() ? static_cast<float*>(arguments.out[i]) : nullptr;
    };
    const Activations dy{arguments.in[0], half_, isa_}, x{arguments.in[1], half_, isa_};
    const float* mean = in(3);
    const Memory memory = memory_of(arguments.scratch);
    total(
        memory,
        [&](int64_t from, int64_t rows, float* sum, float* products) {
          float slopes[kBlock], room[kBlock];
          by_block_of_rows(from, rows, [&](int64_t at, int64_t some) {
            const int64_t elements = some * channels_;
            loops_.products(dy.read(at, elements, slopes), x.read(at, elements, room), mean, some,
                            channels_, sum, products);
          });
        },
        [&](int64_t from, int64_t c, float* sum, float* products) {
          float slopes[kBlock], room[kBlock];
          by_block_of_plane(from, [&](int64_t at, int64_t some) {
            loops_.plane_products(dy.read(at, some, slopes), x.read(at, some, room), mean[c], some,
                                  sum, products);
          });
        });
    const auto n = static_cast<double>(count());
    float *a = memory.rows[0], *b = memory.rows[1], *k = memory.rows[2];
    for (int64_t c = 0; c < channels_; ++c) {
      const auto inverse = static_cast<double>(in(4)[c]), scale = static_cast<double>(in(2)[c]);
      a[c] = static_cast<float>(scale * inverse);
      b[c] = static_cast<float>(scale * inverse * inverse * inverse * memory.second[c] / n);
      k[c] = static_cast<float>(memory.first[c] / n);
      if (out(1)) out(1)[c] = static_cast<float>(memory.second[c] * inverse);
      if (out(2)) out(2)[c] = static_cast<float>(memory.first[c]);
    }
    const Written dx{arguments.out[0], half_, isa_};
    map(
        [&](int64_t from, int64_t rows) {
          float slopes[kBlock], room[kBlock];
          by_block_of_rows(from, rows, [&](int64_t at, int64_t some) {
            const int64_t elements = some * channels_;
            float* to = dx.place(at, room);
            loops_.slopes(dy.read(at, elements, slopes), x.read(at, elements, room), mean, a, b, k,
                          some, channels_, to);
            dx.settle(at, elements, room);
          });
        },
        [&](int64_t from, int64_t c) {
          float slopes[kBlock], room[kBlock];
          by_block_of_plane(from, [&](int64_t at, int64_t some) {
            float* to = dx.place(at, room);
            loops_.plane_slopes(dy.read(at, some, slopes), x.read(at, some, room), mean[c], a[c],
                                b[c], k[c], some, to);
            dx.settle(at, some, room);
          });
        });
    return {};
  }
};

template <typename Bound, size_t x>
class BatchKernel : public Kernel {
 public:
  explicit BatchKernel(const KernelQuery& query) : node_(query.node), isa_(query.isa) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    if (sizes.in[x].elements() == 0) return nullptr;
    const bool half = is_half(*node_.in[x]);
    if (half && sizes.in[x + 1].elements() > kBlock) return nullptr;  // one row has to fit
    return std::make_unique<Bound>(node_, sizes.in[x], isa_);
  }

 private:
  const Node& node_;
  Isa isa_;
};

/// The first `activations` inputs alike, f32 or bf16, the others f32.
Verdict accepts_types(const KernelQuery& query, size_t activations) {
  const DType dtype = query.in_dtype(0);
  for (size_t i = 0; i < query.node.in.size(); ++i)
    if (query.in_dtype(i) != (i < activations ? dtype : DType::f32))
      return no("an element type other than f32");
  if (dtype != DType::f32 && dtype != DType::bf16) return no("an element type other than f32");
  if (!query.in(0).ranked()) return no("the rank is unknown");
  return yes();
}

Verdict accepts_backward(const KernelQuery& query) { return accepts_types(query, 2); }

Verdict accepts_forward(const KernelQuery& query) {
  if (!query.attrs<BatchNormalization>().training_mode) return no("not in training mode");
  return accepts_types(query, 1);
}

template <typename Bound, size_t x>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<BatchKernel<Bound, x>>(query);
}

}  // namespace

void register_batch_norm(Kernels& kernels) {
  kernels.add({.name = "batch_norm_training/loops",
               .op = &BatchNormalization::op,
               .isa = Isa::plain,
               .accepts = accepts_forward,
               .prepare = prepare<BoundForward, 0>});
  kernels.add({.name = "batch_norm_backward/loops",
               .op = &BatchNormalizationBackward::op,
               .isa = Isa::plain,
               .accepts = accepts_backward,
               .prepare = prepare<BoundBackward, 1>});
}

}  // namespace dais
