#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/product.h"
#include "ops/wide.h"

namespace dais {
namespace {

/// Number `index` of a little-endian row of `bits`-bit numbers, none of which crosses a byte.
float unpack(const uint8_t* row, int64_t index, int64_t bits) {
  const int64_t per_byte = 8 / bits;
  const int shift = static_cast<int>(index % per_byte * bits);
  return static_cast<float>((row[index / per_byte] >> shift) & ((1 << bits) - 1));
}

int64_t block_count(const MatMulNBits& attrs) {
  return (attrs.depth + attrs.block_size - 1) / attrs.block_size;
}

int64_t packed_bytes(int64_t numbers, int64_t bits) { return (numbers * bits + 7) / 8; }

void check_attrs(const Inference& c, const MatMulNBits& attrs) {
  constexpr int64_t limit = int64_t{1} << 31;
  if (attrs.bits != 2 && attrs.bits != 4 && attrs.bits != 8)
    c.fail("weights of " + std::to_string(attrs.bits) + " bits are not known", "Use 2, 4 or 8");
  c.require(attrs.depth > 0 && attrs.columns > 0, "K and N must be positive");
  c.require(attrs.depth < limit && attrs.columns < limit, "K or N is too large");
  c.require(attrs.block_size >= 8 && attrs.block_size < limit, "block_size must be at least 8");
}

void infer(Inference& c) {
  const auto& attrs = c.attrs<MatMulNBits>();
  c.set(0, c.dtype(0));
  check_attrs(c, attrs);
  Dims out = c.shape(0);
  c.require(!out.empty(), "A must have at least one axis");
  if (out.back().is_constant() && !out.back().is(attrs.depth))
    c.fail("A has " + out.back().text() + " columns, but K is " + std::to_string(attrs.depth));
  out.back() = attrs.columns;
  c.set(0, c.dtype(0), out);
}

void check_sizes(const MatMulNBits& attrs, const Tensor& packed, const Tensor& scales,
                 const Tensor* zeros, const Tensor* block_of) {
  const int64_t blocks = block_count(attrs);
  const auto require = [](bool holds, const char* problem) {
    if (!holds) throw Error(Code::invalid_argument, problem);
  };
  require(
      packed.dtype() == DType::u8 &&
          packed.elements() == attrs.columns * blocks * packed_bytes(attrs.block_size, attrs.bits),
      "B does not hold N * blocks * block_size numbers");
  require(scales.elements() == attrs.columns * blocks, "scales must hold N * blocks values");
  if (zeros) {
    const int64_t wanted = zeros->dtype() == DType::u8
                               ? attrs.columns * packed_bytes(blocks, attrs.bits)
                               : attrs.columns * blocks;
    require(zeros->elements() == wanted, "zero_points does not hold one value per block");
  }
  if (block_of) {
    require(block_of->elements() >= attrs.depth, "g_idx must hold one block per row of K");
    for (const int64_t block : block_of->to_ints())
      require(block >= 0 && block < blocks, "g_idx names a block that does not exist");
  }
}

void reference(Call& c) {
  const auto& attrs = c.attrs<MatMulNBits>();
  const Tensor& a = c.in(0);
  const auto given = [&](size_t i) { return c.has(i) ? &c.in(i) : nullptr; };
  const Tensor b = dequantize_nbits(attrs, c.in(1), c.in(2), given(3), given(4));
  const ProductShape shape = product_shape(a.shape(), b.shape());
  Tensor& y = c.out(0, shape.out);
  std::vector<double> sums(static_cast<size_t>(y.elements()));
  const WideView<float> left(a);
  batched_product(shape, left.data(), b.data<float>().data(), sums.data());
  if (const Tensor* bias = given(5)) {
    c.require(bias->elements() == attrs.columns, "bias must have N values");
    const WideView<double> addend(*bias);
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += addend[static_cast<int64_t>(i) % attrs.columns];
  }
  store_wide(y, 0, sums.data(), y.elements());
}

Cost cost(const Node& node) {
  const auto& attrs = *node.as<MatMulNBits>();
  double rows = 1;
  if (const auto& shape = node.in[0]->type.shape; shape && !shape->empty())
    if (const auto count = product(*shape, 0, shape->size() - 1).constant())
      rows = static_cast<double>(*count);
  const double weights = static_cast<double>(attrs.depth) * static_cast<double>(attrs.columns);
  return {.flops = 2 * rows * weights};
}

}  // namespace

Tensor dequantize_nbits(const MatMulNBits& attrs, const Tensor& packed, const Tensor& scales,
                        const Tensor* zero_points, const Tensor* block_of) {
  check_sizes(attrs, packed, scales, zero_points, block_of);
  const int64_t depth = attrs.depth, columns = attrs.columns, blocks = block_count(attrs);
  const int64_t block_bytes = packed_bytes(attrs.block_size, attrs.bits);
  const bool packed_zeros = zero_points && zero_points->dtype() == DType::u8;
  const WideView<float> scale(scales);
  const auto zeros =
      zero_points && !packed_zeros ? to_wide<float>(*zero_points) : std::vector<float>{};
  const auto block_index = block_of ? block_of->to_ints() : std::vector<int64_t>{};
  const auto middle = static_cast<float>(int64_t{1} << (attrs.bits - 1));
  const uint8_t* bytes = packed.data<uint8_t>().data();
  Tensor out(DType::f32, {depth, columns});
  float* to = out.data<float>().data();
  for (int64_t n = 0; n < columns; ++n) {
    const uint8_t* row = bytes + n * blocks * block_bytes;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t home = k / attrs.block_size;
      const int64_t block = block_of ? block_index[static_cast<size_t>(k)] : home;
      float zero = middle;
      if (packed_zeros)
        zero = unpack(zero_points->data<uint8_t>().data() + n * packed_bytes(blocks, attrs.bits),
                      block, attrs.bits);
      else if (zero_points)
        zero = zeros[static_cast<size_t>(n * blocks + block)];
      const float value = unpack(row + home * block_bytes, k % attrs.block_size, attrs.bits);
      to[k * columns + n] = (value - zero) * scale[n * blocks + block];
    }
  }
  return out;
}

const Op MatMulNBits::op{
    .name = "mat_mul_n_bits",
    .attrs = &AttrsOf<MatMulNBits>::info,
    .infer = infer,
    .reference = reference,
    .cost = cost,
    .onnx = {{.type = "MatMulNBits", .domain = "com.microsoft"}},
};

}  // namespace dais
