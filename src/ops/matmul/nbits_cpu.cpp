// Products with block-quantised weights. Where the model allows activations of 8 bits
// (accuracy_level 4) and weights have 4, they stay packed and dot products run on integers;
// otherwise the weights are widened once and the f32 loops run.

#include "ops/matmul/nbits_cpu.h"

#include <algorithm>

#include "backends/cpu/gemm.h"
#include "base/file.h"
#include "base/threads.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/nbits_block.h"
#include "ops/wide.h"

namespace dais {

namespace avx512 {
void nbits_panels(const NbitsProduct&, int64_t, int64_t);
void nbits_round_row(const float*, int64_t, int64_t, int64_t, int32_t, int8_t*, float*, int32_t*);
}  // namespace avx512

namespace {

constexpr int64_t kColumns = 16;

/// Weights of a node in the form that the integer loops read.
class NbitsWeights {
 public:
  explicit NbitsWeights(const KernelQuery& query)
      : attrs_(query.attrs<MatMulNBits>()),
        blocks_((attrs_.depth + attrs_.block_size - 1) / attrs_.block_size),
        has_zeros_(query.node.has(3)),
        panel_bytes_(blocks_ * (64 * (has_zeros_ ? 2 : 1) + attrs_.block_size * kColumns / 2)),
        memory_(static_cast<size_t>(panels() * panel_bytes_ + kAhead)) {
    const Tensor* zeros = query.constant(3);
    bytes_ = query.constant(1)->data<uint8_t>().data();
    const std::vector<float> scales = to_wide<float>(*query.constant(2));
    const std::vector<float> offsets = zeros ? unpacked(*zeros) : std::vector<float>{};
    if (query.node.has(5)) bias_ = to_wide<float>(*query.constant(5));
    parallel_for(panels(), 1, [&](int64_t first, int64_t last) {
      for (int64_t panel = first; panel < last; ++panel) pack(panel, scales, offsets);
    });
    bytes_ = nullptr;
    for (size_t i : {1, 2})
      MappedFile::release(query.constant(i)->raw(), query.constant(i)->bytes());
  }

  int64_t panels() const { return (attrs_.columns + kColumns - 1) / kColumns; }
  int64_t blocks() const { return blocks_; }

  NbitsProduct product() const {
    return {.panels = memory_.as<uint8_t>(),
            .panel_bytes = panel_bytes_,
            .columns = attrs_.columns,
            .blocks = blocks_,
            .block_size = attrs_.block_size,
            .zero_points = has_zeros_,
            .bias = bias_.empty() ? nullptr : bias_.data()};
  }
  const MatMulNBits& attrs() const { return attrs_; }
  int32_t sum_factor() const { return has_zeros_ ? -1 : -8; }

 private:
  static constexpr int64_t kAhead = 4096;  ///< may be fetched behind the last panel

  std::vector<float> unpacked(const Tensor& zeros) const {
    if (zeros.dtype() != DType::u8) return to_wide<float>(zeros);
    std::vector<float> out;
    const uint8_t* row = zeros.data<uint8_t>().data();
    for (int64_t n = 0; n < attrs_.columns; ++n, row += (blocks_ + 1) / 2)
      for (int64_t block = 0; block < blocks_; ++block)
        out.push_back(static_cast<float>(row[block / 2] >> (block % 2 * 4) & 15));
    return out;
  }

  void pack(int64_t panel, const std::vector<float>& scales, const std::vector<float>& offsets) {
    uint8_t* to = memory_.as<uint8_t>() + panel * panel_bytes_;
    const int64_t block_bytes = attrs_.block_size / 2;
    for (int64_t block = 0; block < blocks_; ++block) {
      auto* factors = reinterpret_cast<float*>(to);
      const int64_t header = has_zeros_ ? 2 * kColumns : kColumns;
      std::fill_n(factors, header, 0.0F);
      to += header * 4;
      std::fill_n(to, block_bytes * kColumns, uint8_t{0});
      for (int64_t n = 0; n < kColumns && panel * kColumns + n < attrs_.columns; ++n) {
        const int64_t line = (panel * kColumns + n) * blocks_ + block;
        factors[n] = scales[static_cast<size_t>(line)];
        if (has_zeros_) factors[kColumns + n] = factors[n] * offsets[static_cast<size_t>(line)];
        interleave(bytes_ + line * block_bytes, block_bytes, n, to);
      }
      to += block_bytes * kColumns;
    }
  }

  /// One column of one block: 16 bytes hold 32 numbers, neighbours in one byte.
  static void interleave(const uint8_t* from, int64_t count, int64_t column, uint8_t* to) {
    for (int64_t chunk = 0; chunk < count / 16; ++chunk, from += 16, to += 256)
      for (int64_t v = 0; v < 4; ++v)
        for (int64_t j = 0; j < 4; ++j) {
          const int low = from[4 * v + j / 2] >> (j % 2 * 4) & 15;
          const int high = from[4 * v + 2 + j / 2] >> (j % 2 * 4) & 15;
          to[v * 64 + 4 * column + j] = static_cast<uint8_t>(low | high << 4);
        }
  }

  MatMulNBits attrs_;
  int64_t blocks_;
  bool has_zeros_;
  int64_t panel_bytes_;
  cpu::PageMemory memory_;
  const uint8_t* bytes_ = nullptr;
  std::vector<float> bias_;
};

class BoundIntegers : public BoundKernel {
 public:
  BoundIntegers(const NbitsWeights& weights, int64_t rows) : weights_(weights), rows_(rows) {
    depth_ = weights.blocks() * weights.attrs().block_size;
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(rows_ * (depth_ + 8 * weights_.blocks()) + 64);
  }

  Fault run(const Arguments& arguments) noexcept override {
    const int64_t blocks = weights_.blocks();
    auto* scales = static_cast<float*>(arguments.scratch);
    auto* sums = reinterpret_cast<int32_t*>(scales + rows_ * blocks);
    auto* a = reinterpret_cast<int8_t*>(sums + rows_ * blocks);
    const auto* x = static_cast<const float*>(arguments.in[0]);
    const MatMulNBits& attrs = weights_.attrs();
    const int64_t grain = std::max<int64_t>(1, 32768 / attrs.depth);
    parallel_for(rows_, grain, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row)
        avx512::nbits_round_row(x + row * attrs.depth, attrs.depth, blocks, attrs.block_size,
                                weights_.sum_factor(), a + row * depth_, scales + row * blocks,
                                sums + row * blocks);
    });
    NbitsProduct product = weights_.product();
    product.a = a;
    product.a_scales = scales;
    product.a_sums = sums;
    product.c = static_cast<float*>(arguments.out[0]);
    product.rows = rows_;
    const int64_t panel_grain = std::max<int64_t>(1, 65536 / product.panel_bytes);
    parallel_for(weights_.panels(), panel_grain,
                 [&](int64_t first, int64_t last) { avx512::nbits_panels(product, first, last); });
    return {};
  }

 private:
  const NbitsWeights& weights_;
  int64_t rows_, depth_ = 0;
};

int64_t rows_of(const Shape& a) { return a.elements(0, a.rank() - 1); }

/// All constants of a node: the kernels here have them in forms of their own.
class PackedKernel : public Kernel {
 public:
  explicit PackedKernel(const KernelQuery& query) {
    for (size_t i = 1; i < query.node.in.size(); ++i) constants_.push_back(query.constant(i));
  }
  bool packs(const Tensor& constant) const override {
    return std::find(constants_.begin(), constants_.end(), &constant) != constants_.end();
  }

 private:
  std::vector<const Tensor*> constants_;  ///< only to be recognised: they may be gone
};

class IntegerKernel : public PackedKernel {
 public:
  explicit IntegerKernel(const KernelQuery& query) : PackedKernel(query), weights_(query) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    return std::make_unique<BoundIntegers>(weights_, rows_of(sizes.in[0]));
  }

 private:
  NbitsWeights weights_;
};

class BoundWidened : public BoundKernel {
 public:
  BoundWidened(Isa isa, const MatMulNBits& attrs, const float* packed, const float* bias,
               int64_t rows)
      : isa_(isa) {
    block_.rows = rows;
    block_.columns = block_.c_row = attrs.columns;
    block_.depth = block_.a_row = attrs.depth;
    step_ = {.kind = cpu::GemmStep::Kind::column, .operand = bias};
    block_.step_count = bias ? 1 : 0;
    cpu::gemm_set_packed(isa, block_, packed);
  }
  Fault run(const Arguments& arguments) noexcept override {
    block_.a = static_cast<const float*>(arguments.in[0]);
    block_.c = static_cast<float*>(arguments.out[0]);
    block_.steps = &step_;
    cpu::gemm(isa_, block_);
    return {};
  }

 private:
  Isa isa_;
  cpu::GemmBlock block_;
  cpu::GemmStep step_;
};

class WidenedKernel : public PackedKernel {
 public:
  explicit WidenedKernel(const KernelQuery& query)
      : PackedKernel(query),
        isa_(query.isa),
        attrs_(query.attrs<MatMulNBits>()),
        packed_(sizeof(float) * static_cast<size_t>(cpu::gemm_packed_floats(query.isa, attrs_.depth,
                                                                            attrs_.columns))) {
    const Tensor wide = dequantize_nbits(attrs_, *query.constant(1), *query.constant(2),
                                         query.constant(3), query.constant(4));
    cpu::gemm_pack(isa_, wide.data<float>().data(), attrs_.columns, 1, attrs_.depth, attrs_.columns,
                   packed_.as<float>());
    if (query.node.has(5)) bias_ = to_wide<float>(*query.constant(5));
  }
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    return std::make_unique<BoundWidened>(isa_, attrs_, packed_.as<float>(),
                                          bias_.empty() ? nullptr : bias_.data(),
                                          rows_of(sizes.in[0]));
  }

 private:
  Isa isa_;
  MatMulNBits attrs_;
  cpu::PageMemory packed_;
  std::vector<float> bias_;
};

/// What both rows need: f32 activations, constant weights of the stated sizes.
Verdict accepts_widened(const KernelQuery& query) {
  const auto& attrs = query.attrs<MatMulNBits>();
  if (query.in_dtype(0) != DType::f32 || query.out_dtype() != DType::f32)
    return no("activations other than f32");
  for (size_t i = 1; i < query.node.in.size(); ++i)
    if (query.node.has(i) && !query.constant(i)) return no("weights that are no constants");
  const int64_t blocks = (attrs.depth + attrs.block_size - 1) / attrs.block_size;
  const int64_t block_bytes = (attrs.block_size * attrs.bits + 7) / 8;
  const Tensor *packed = query.constant(1), *scales = query.constant(2), *bias = query.constant(5);
  if (!packed || packed->dtype() != DType::u8 || !scales ||
      packed->elements() != attrs.columns * blocks * block_bytes ||
      scales->elements() != attrs.columns * blocks)
    return no("weights of unexpected size");
  if (bias && bias->elements() != attrs.columns) return no("a bias of unexpected size");
  return yes();
}

Verdict accepts_integers(const KernelQuery& query) {
  if (Verdict verdict = accepts_widened(query); !verdict) return verdict;
  const auto& attrs = query.attrs<MatMulNBits>();
  if (attrs.accuracy_level != 4) return no("activations of 8 bits are not allowed");
  if (attrs.bits != 4 || attrs.block_size % 32 != 0 || attrs.block_size > 4096)
    return no("other than 4 bits in blocks of 32, 64, ...");
  if (query.node.has(4)) return no("reordered rows");
  const int64_t blocks = (attrs.depth + attrs.block_size - 1) / attrs.block_size;
  if (const Tensor* zeros = query.constant(3))
    if (zeros->elements() !=
        attrs.columns * (zeros->dtype() == DType::u8 ? (blocks + 1) / 2 : blocks))
      return no("zero points of unexpected size");
  return yes();
}

template <typename K>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<K>(query);
}

}  // namespace

void register_nbits_rows(Kernels& kernels) {
  kernels.add({.name = "nbits/vnni",
               .op = &MatMulNBits::op,
               .isa = Isa::avx512,
               .accepts = accepts_integers,
               .prepare = prepare<IntegerKernel>});
  kernels.add({.name = "nbits/widened",
               .op = &MatMulNBits::op,
               .accepts = accepts_widened,
               .prepare = prepare<WidenedKernel>});
}

}  // namespace dais
