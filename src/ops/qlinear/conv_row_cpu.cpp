// Quantised convolutions on the engine's own 8-bit loops, channels last. A 1x1 window of stride 1
// is a product as it lies; other windows are gathered to rows of a matrix, padding as the zero
// point; depthwise ones have a loop of their own. A residual sum that follows runs in the same
// kernel. Row-major activations are copied to channels-last scratch memory and back.

#include <algorithm>

#include "backends/cpu/byte_gemm.h"
#include "backends/cpu/gemm.h"
#include "base/threads.h"
#include "ops/conv/conv.h"
#include "ops/fused/fused.h"
#include "ops/qlinear/bytes_cpu.h"
#include "ops/qlinear/cells.h"
#include "ops/qlinear/conv_body_cpu.h"
#include "ops/qlinear/rows_cpu.h"

namespace dais {
namespace {

using cpu::ByteGemm;

/// Weights of one group in the form of the loops.
struct PackedGroup {
  const int8_t* values = nullptr;
  const int32_t* sums = nullptr;
  const int32_t *offset = nullptr, *zeros = nullptr;
  const float* scales = nullptr;
};

struct Prepared {
  ByteConv conv;
  Isa isa = Isa::plain;
  bool depthwise = false, b_zeros = false;
  std::vector<PackedGroup> groups;
  std::vector<std::shared_ptr<cpu::PageMemory>> memory;
};

class BoundByteConv : public BoundKernel {
 public:
  BoundByteConv(const Prepared& prepared, const Shape& x, const Shape& y)
      : p_(prepared), x_(x, true), y_(y, true), cells_(prepared.conv.window, x_, y_) {
    taps_ = cells_.taps;
    group_channels_ = x_.channels / p_.conv.group;
    plain_ = is_plain();
    rows_ = y_.batch * cells_.positions();
    row_bytes_ = cpu::byte_depth(taps_ * group_channels_).padded;
    constexpr int64_t kGathered = 1 << 20;
    chunk_ = plain_ ? rows_ : std::min(rows_, std::max<int64_t>(64, kGathered / row_bytes_));
    if (p_.depthwise) chunk_ = kPositions;
  }

  size_t scratch_bytes() const override {
    const size_t zero_row = aligned_bytes(static_cast<size_t>(x_.channels) + 64);
    if (p_.depthwise)
      return zero_row + static_cast<size_t>(team_size()) *
                            aligned_bytes(sizeof(void*) * kPositions * static_cast<size_t>(taps_));
    const size_t gathered = plain_ ? 0 : aligned_bytes(static_cast<size_t>(chunk_ * row_bytes_));
    return zero_row + gathered + sums_bytes() + partial_bytes();
  }

  Fault run(const Arguments& arguments) noexcept override {
    const auto* x = static_cast<const uint8_t*>(arguments.in[static_cast<size_t>(p_.conv.x)]);
    auto* memory = static_cast<uint8_t*>(arguments.scratch);
    std::fill_n(memory, x_.channels + 64, static_cast<uint8_t>(p_.conv.x_zero));
    const uint8_t* zero_row = memory;
    memory += aligned_bytes(static_cast<size_t>(x_.channels) + 64);
    if (p_.depthwise) {
      run_depthwise(x, zero_row, memory, static_cast<uint8_t*>(arguments.out[0]));
      return {};
    }
    auto* row_sums = reinterpret_cast<int32_t*>(memory);
    auto* partial = reinterpret_cast<int32_t*>(memory + sums_bytes());
    uint8_t* gathered = memory + sums_bytes() + partial_bytes();
    for (int64_t row = 0; row < rows_; row += chunk_) {
      const int64_t count = std::min(chunk_, rows_ - row);
      for (int64_t group = 0; group < p_.conv.group; ++group) {
        ByteGemm gemm = gemm_for(arguments, group, row, count);
        if (plain_) {
          gemm.a = x + row * x_.channels + group * group_channels_;
          gemm.a_row = x_.channels;
        } else {
          gather(x + group * group_channels_, zero_row, row, count, gathered);
          gemm.a = gathered;
          gemm.a_row = row_bytes_;
          gemm.a_padded = true;
        }
        if (partial_bytes() > 0) gemm.partial = partial;
        if (p_.b_zeros) {
          sum_rows(gemm, row_sums);
          gemm.row_sums = row_sums;
        }
        cpu::byte_gemm(p_.isa, gemm);
      }
    }
    return {};
  }

 private:
  static constexpr int64_t kPositions = 64;  ///< of a depthwise convolution per call of the loop

  size_t sums_bytes() const {
    return p_.b_zeros ? aligned_bytes(sizeof(int32_t) * static_cast<size_t>(chunk_)) : 0;
  }
  size_t partial_bytes() const {
    return aligned_bytes(static_cast<size_t>(
        cpu::byte_partial_bytes(chunk_, y_.channels / p_.conv.group, taps_ * group_channels_)));
  }

  bool is_plain() const {
    for (size_t axis = 0; axis < Cells::kAxes; ++axis)
      if (cells_.kernel[axis] != 1 || cells_.stride[axis] != 1 || cells_.begin[axis] != 0 ||
          cells_.in[axis] != cells_.out[axis])
        return false;
    return true;
  }

  ByteGemm gemm_for(const Arguments& arguments, int64_t group, int64_t row, int64_t count) const {
    const PackedGroup& packed = p_.groups[static_cast<size_t>(group)];
    ByteGemm gemm;
    gemm.rows = count;
    gemm.columns = y_.channels / p_.conv.group;
    cpu::byte_set_depth(gemm, taps_ * group_channels_);
    gemm.a_signed = p_.conv.x_type == DType::i8;
    gemm.b = packed.values;
    gemm.sums = packed.sums;
    gemm.offset = packed.offset;
    gemm.scales = packed.scales;
    if (p_.b_zeros) gemm.b_zeros = packed.zeros;
    const int64_t at = row * y_.channels + group * gemm.columns;
    gemm.out = byte_out(p_.conv.y_type);
    gemm.c = static_cast<uint8_t*>(arguments.out[0]) +
             static_cast<size_t>(at) * dtype_size(p_.conv.y_type);
    gemm.c_row = y_.channels;
    p_.conv.fill_store(gemm);
    if (p_.conv.residual >= 0)
      gemm.residual =
          static_cast<const uint8_t*>(arguments.in[static_cast<size_t>(p_.conv.residual)]) + at;
    return gemm;
  }

  void gather(const uint8_t* x, const uint8_t* zero_row, int64_t row, int64_t count,
              uint8_t* to) const {
    const bool runs = p_.conv.group == 1 && cells_.dilation[2] == 1;
    parallel_for(count, std::max<int64_t>(1, 65536 / row_bytes_), [&](int64_t first, int64_t last) {
      CellWalk walk(cells_, row + first);
      for (int64_t i = first; i < last; ++i, walk.next()) {
        const uint8_t* image = x + walk.image() * x_.cells() * x_.channels;
        uint8_t* out = to + i * row_bytes_;
        runs ? gather_runs(walk, image, out) : gather_taps(walk, image, zero_row, out);
        std::fill(out + taps_ * group_channels_, out + row_bytes_, uint8_t{0});
      }
    });
  }

  /// Taps along the last axis lie side by side in X.
  void gather_runs(const CellWalk& walk, const uint8_t* image, uint8_t* out) const {
    const int64_t channels = x_.channels, width = cells_.kernel[2] * channels,
                  start = walk.start(2);
    const int64_t low = std::clamp<int64_t>(-start, 0, cells_.kernel[2]);
    const int64_t high = std::clamp<int64_t>(cells_.in[2] - start, low, cells_.kernel[2]);
    const auto zero = static_cast<uint8_t>(p_.conv.x_zero);
    walk.visit_rows([&](int64_t row) {
      if (row < 0 || low == high) {
        std::fill_n(out, width, zero);
      } else {
        std::fill_n(out, low * channels, zero);
        copy_run(image + (row + start + low) * channels, (high - low) * channels,
                 out + low * channels);
        std::fill(out + high * channels, out + width, zero);
      }
      out += width;
    });
  }

  void gather_taps(const CellWalk& walk, const uint8_t* image, const uint8_t* zero_row,
                   uint8_t* out) const {
    walk.visit([&](int64_t cell) {
      copy_run(cell < 0 ? zero_row : image + cell * x_.channels, group_channels_, out);
      out += group_channels_;
    });
  }

  void sum_rows(const ByteGemm& gemm, int32_t* sums) const {
    for (int64_t m = 0; m < gemm.rows; ++m) {
      const uint8_t* row = gemm.a + m * gemm.a_row;
      int32_t sum = 0;
      for (int64_t k = 0; k < gemm.depth; ++k) sum += byte_value(row[k], p_.conv.x_type);
      sums[m] = sum;
    }
  }

  void run_depthwise(const uint8_t* x, const uint8_t* zero_row, uint8_t* memory, uint8_t* y) const {
    const PackedGroup& packed = p_.groups[0];
    cpu::ByteDepthwise conv{.channels = x_.channels,
                            .taps = taps_,
                            .x_signed = p_.conv.x_type == DType::i8,
                            .weights = packed.values,
                            .offset = packed.offset,
                            .sums = packed.sums,
                            .out = byte_out(p_.conv.y_type),
                            .scales = packed.scales};
    ByteGemm store;
    p_.conv.fill_store(store);
    conv.low = store.low;
    conv.high = store.high;
    conv.zero = store.zero;
    const size_t each = aligned_bytes(sizeof(void*) * kPositions * static_cast<size_t>(taps_));
    const int64_t chunks = (rows_ + kPositions - 1) / kPositions;
    const int64_t parts = std::min<int64_t>(team_size(), chunks);
    const double work = static_cast<double>(rows_ * x_.channels * taps_);
    parallel_for(parts, work < 4e5 ? parts : 1, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part) {
        auto* rows = reinterpret_cast<const uint8_t**>(memory + static_cast<size_t>(part) * each);
        for (int64_t c = chunks * part / parts; c < chunks * (part + 1) / parts; ++c) {
          const int64_t begin = c * kPositions, count = std::min(kPositions, rows_ - begin);
          CellWalk walk(cells_, begin);
          for (int64_t i = 0; i < count; ++i, walk.next())
            find_rows(walk, x + walk.image() * x_.cells() * x_.channels, zero_row,
                      rows + i * taps_);
          cpu::depthwise_run(p_.isa, conv, rows, count, y + begin * x_.channels);
        }
      }
    });
  }

  void find_rows(const CellWalk& walk, const uint8_t* image, const uint8_t* zero_row,
                 const uint8_t** rows) const {
    if (walk.inside()) {
      const uint8_t* first = image + walk.first() * x_.channels;
      for (int64_t t = 0; t < taps_; ++t)
        rows[t] = first + cells_.offsets[static_cast<size_t>(t)] * x_.channels;
      return;
    }
    walk.visit([&](int64_t cell) { *rows++ = cell < 0 ? zero_row : image + cell * x_.channels; });
  }

  const Prepared& p_;
  Activation x_, y_;
  Cells cells_;
  int64_t taps_ = 1, group_channels_ = 1, rows_ = 0, row_bytes_ = 0, chunk_ = 0;
  bool plain_ = false;
};

/// Row-major operands around a convolution of channels-last ones.
class BoundRowMajor : public BoundKernel {
 public:
  BoundRowMajor(const Prepared& prepared, const Shape& x, const Shape& y)
      : p_(prepared), x_(x, false), y_(y, false), inner_(prepared, x_.shape(true), y_.shape(true)) {
    x_bytes_ = aligned_bytes(static_cast<size_t>(x.elements()));
    y_bytes_ = aligned_bytes(static_cast<size_t>(y.elements()) * dtype_size(p_.conv.y_type));
  }
  size_t scratch_bytes() const override {
    return x_bytes_ + (p_.conv.residual >= 0 ? 2 : 1) * y_bytes_ + inner_.scratch_bytes();
  }
  Fault run(const Arguments& arguments) noexcept override {
    auto* memory = static_cast<uint8_t*>(arguments.scratch);
    const void* in[2] = {};
    void* out[1] = {memory + x_bytes_};
    turn<uint8_t>(arguments.in[static_cast<size_t>(p_.conv.x)], x_.batch, x_.channels, x_.cells(),
                  memory);
    in[p_.conv.x] = memory;
    void* scratch = memory + x_bytes_ + y_bytes_;
    if (p_.conv.residual >= 0) {
      turn<uint8_t>(arguments.in[static_cast<size_t>(p_.conv.residual)], y_.batch, y_.channels,
                    y_.cells(), scratch);
      in[p_.conv.residual] = scratch;
      scratch = static_cast<uint8_t*>(scratch) + y_bytes_;
    }
    inner_.run({in, out, scratch});
    if (dtype_size(p_.conv.y_type) == 1)
      turn<uint8_t>(out[0], y_.batch, y_.cells(), y_.channels, arguments.out[0]);
    else
      turn<int32_t>(out[0], y_.batch, y_.cells(), y_.channels, arguments.out[0]);
    return {};
  }

 private:
  template <typename T>
  static void turn(const void* from, int64_t batch, int64_t rows, int64_t columns, void* to) {
    parallel_for(batch * columns, std::max<int64_t>(1, 65536 / std::max<int64_t>(rows, 1)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t i = first; i < last; ++i) {
                     const int64_t image = i / columns * columns * rows;
                     const T* column = static_cast<const T*>(from) + image + i % columns;
                     T* row = static_cast<T*>(to) + i * rows;
                     for (int64_t r = 0; r < rows; ++r) row[r] = column[r * columns];
                   }
                 });
  }

  const Prepared& p_;
  Activation x_, y_;
  BoundByteConv inner_;
  size_t x_bytes_ = 0, y_bytes_ = 0;
};

class ByteConvKernel : public Kernel {
 public:
  explicit ByteConvKernel(const KernelQuery& query) {
    p_.conv = *find_byte_conv(query.node).conv;
    p_.isa = query.isa;
    const ByteConv& conv = p_.conv;
    const Tensor& w = *conv.w;
    const int64_t outputs = w.shape()[0], inputs = w.shape()[1];
    p_.b_zeros = conv.has_w_zeros();
    p_.depthwise = inputs == 1 && outputs == conv.group && conv.group > 1 && !p_.b_zeros &&
                   is_byte(conv.y_type) && conv.residual < 0;
    if (p_.depthwise)
      pack_depthwise();
    else
      for (int64_t group = 0; group < conv.group; ++group) pack_group(group);
  }

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const ByteConv& conv = p_.conv;
    const Shape& x = sizes.in[static_cast<size_t>(conv.x)];
    if (conv.residual >= 0 && sizes.in[static_cast<size_t>(conv.residual)] != sizes.out[0])
      return nullptr;
    if (!conv.channels_last) return std::make_unique<BoundRowMajor>(p_, x, sizes.out[0]);
    return std::make_unique<BoundByteConv>(p_, x, sizes.out[0]);
  }

  std::string detail() const override {
    if (p_.depthwise) return "depthwise";
    return std::string("product") + (p_.conv.residual >= 0 ? ", residual" : "");
  }

 private:
  template <typename T>
  T* reserve(int64_t count) {
    p_.memory.push_back(std::make_shared<cpu::PageMemory>(
        sizeof(T) * static_cast<size_t>(std::max<int64_t>(count, 1))));
    T* out = p_.memory.back()->as<T>();
    std::fill_n(out, count, T{});
    return out;
  }

  /// Weights of output channel m as s8, taps first: [taps][inputs].
  void copy_channel(int64_t m, int64_t taps, int64_t inputs, int8_t* to) const {
    const uint8_t change = p_.conv.w->dtype() == DType::u8 ? 0x80 : 0;
    const uint8_t* from = p_.conv.w->storage<uint8_t>() + m * taps * inputs;
    for (int64_t c = 0; c < inputs; ++c)
      for (int64_t t = 0; t < taps; ++t)
        to[t * inputs + c] = static_cast<int8_t>(from[c * taps + t] ^ change);
  }

  void pack_group(int64_t group) {
    const ByteConv& conv = p_.conv;
    const Tensor& w = *conv.w;
    const int64_t inputs = w.shape()[1], taps = w.shape().elements(2, w.rank());
    const int64_t columns = w.shape()[0] / conv.group, depth = taps * inputs;
    std::vector<int8_t> rows(static_cast<size_t>(columns * depth));
    parallel_for(columns, std::max<int64_t>(1, 65536 / std::max<int64_t>(depth, 1)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t m = first; m < last; ++m)
                     copy_channel(group * columns + m, taps, inputs, rows.data() + m * depth);
                 });
    PackedGroup out;
    const int64_t padded = cpu::byte_columns(columns);
    auto* values = reserve<int8_t>(cpu::byte_packed_bytes(depth, columns));
    auto* sums = reserve<int32_t>(padded);
    auto* offset = reserve<int32_t>(padded);
    auto* zeros = reserve<int32_t>(padded);
    auto* scales = reserve<float>(padded);
    cpu::byte_pack(p_.isa, rows.data(), 1, depth, depth, columns, false, values, sums);
    for (int64_t n = 0; n < columns; ++n) {
      const int64_t m = group * columns + n;
      zeros[n] = conv.w_zero(m);
      offset[n] = conv.bias_of(m) - conv.x_zero * sums[n] +
                  static_cast<int32_t>(depth) * conv.x_zero * zeros[n];
      scales[n] = conv.scale_of(m);
    }
    out = {values, sums, offset, zeros, scales};
    p_.groups.push_back(out);
  }

  void pack_depthwise() {
    const ByteConv& conv = p_.conv;
    const Tensor& w = *conv.w;
    const int64_t channels = conv.group, taps = w.shape().elements(2, w.rank());
    std::vector<int8_t> rows(static_cast<size_t>(channels * taps));
    for (int64_t c = 0; c < channels; ++c) copy_channel(c, taps, 1, rows.data() + c * taps);
    const int64_t padded = cpu::depthwise_channels(channels);
    auto* values = reserve<int8_t>(cpu::depthwise_packed_bytes(channels, taps));
    auto* sums = reserve<int32_t>(padded);
    auto* offset = reserve<int32_t>(padded);
    auto* scales = reserve<float>(padded);
    cpu::depthwise_pack(rows.data(), channels, taps, values);
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t at = cpu::depthwise_place(c);
      for (int64_t t = 0; t < taps; ++t) sums[at] += rows[static_cast<size_t>(c * taps + t)];
      offset[at] = conv.bias_of(c) - conv.x_zero * sums[at];
      scales[at] = conv.scale_of(c);
    }
    p_.groups.push_back({values, sums, offset, nullptr, scales});
  }

  Prepared p_;
};

Verdict accepts(const KernelQuery& query) {
  const FoundByteConv found = find_byte_conv(query.node);
  return found.conv ? yes() : no(found.reason);
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<ByteConvKernel>(query);
}

}  // namespace

void register_byte_convolutions(Kernels& kernels) {
  const auto add = [&](std::string_view name, const Op& op) {
    kernels.add({.name = name, .op = &op, .accepts = accepts, .prepare = prepare});
  };
  add("byte_conv", QLinearConv::op);
  add("byte_conv_integer", ConvInteger::op);
  add("fused/byte_conv", Fused::op);
}

}  // namespace dais
