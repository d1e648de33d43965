// Integer matrix products on the engine's own 8-bit loops. Zero points never reach the loops: with
// sums of columns (and, when B has zero points, of rows) they are a term of the exact i32 sum.

#include <algorithm>

#include "backends/cpu/byte_gemm.h"
#include "backends/cpu/gemm.h"
#include "base/threads.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/product.h"
#include "ops/qlinear/bytes_cpu.h"
#include "ops/qlinear/rows_cpu.h"

namespace dais {
namespace {

using cpu::ByteGemm;

/// Which inputs of a node mean what; -1: it has none such.
struct Roles {
  int a = 0, b = 1, a_zero = -1, b_zero = -1, a_scale = -1, b_scale = -1, y_scale = -1, y_zero = -1;
  int bias = -1;
  float alpha = 1;
  bool trans_a = false, trans_b = false;
};

Roles roles_of(const Node& node) {
  Roles out;
  if (node.as<MatMulInteger>()) {
    out = {.a_zero = 2, .b_zero = 3};
  } else if (node.as<MatMulIntegerToFloat>()) {
    out = {.a_zero = 4, .b_zero = 5, .a_scale = 2, .b_scale = 3, .bias = 6};
  } else if (node.as<QLinearMatMul>()) {
    out = {.b = 3, .a_zero = 2, .b_zero = 5, .a_scale = 1, .b_scale = 4, .y_scale = 6, .y_zero = 7};
  } else if (const auto* gemm = node.as<QGemm>()) {
    out = {.b = 3,
           .a_zero = 2,
           .b_zero = 5,
           .a_scale = 1,
           .b_scale = 4,
           .y_scale = 7,
           .y_zero = 8,
           .bias = 6,
           .alpha = gemm->alpha,
           .trans_a = gemm->trans_a,
           .trans_b = gemm->trans_b};
  }
  for (int* at :
       {&out.a_zero, &out.b_zero, &out.a_scale, &out.b_scale, &out.y_scale, &out.y_zero, &out.bias})
    if (*at >= 0 && !node.has(static_cast<size_t>(*at))) *at = -1;
  return out;
}

/// B in the form of the loops.
struct PackedB {
  const int8_t* values = nullptr;
  const int32_t* sums = nullptr;
};

size_t packed_bytes(int64_t depth, int64_t columns) {
  return aligned_bytes(static_cast<size_t>(cpu::byte_packed_bytes(depth, columns))) +
         aligned_bytes(sizeof(int32_t) * static_cast<size_t>(cpu::byte_columns(columns)));
}

PackedB pack(Isa isa, const void* b, bool transposed, bool flip, int64_t depth, int64_t columns,
             void* memory) {
  auto* values = static_cast<int8_t*>(memory);
  auto* sums = reinterpret_cast<int32_t*>(
      values + aligned_bytes(static_cast<size_t>(cpu::byte_packed_bytes(depth, columns))));
  cpu::byte_pack(isa, b, transposed ? 1 : columns, transposed ? depth : 1, depth, columns, flip,
                 values, sums);
  return {values, sums};
}

struct Prepared {
  Roles roles;
  Isa isa = Isa::plain;
  DType a = DType::u8, b = DType::u8, y = DType::i32;
  std::shared_ptr<cpu::PageMemory> memory;
  PackedB packed;        ///< of a constant B
  bool b_zeros = false;  ///< some zero point of the packed B may differ from 0
};

class BoundByteProduct : public BoundKernel {
 public:
  BoundByteProduct(const Prepared& prepared, const Sizes& sizes) : p_(prepared) {
    const Roles& roles = p_.roles;
    const Shape& a = sizes.in[static_cast<size_t>(roles.a)];
    Shape b = sizes.in[static_cast<size_t>(roles.b)];
    if (roles.trans_b) b = Shape{b[1], b[0]};
    shape_ = product_shape(a, b);
    const GemmShape& g = shape_.gemm;
    gemm_.rows = g.rows;
    gemm_.columns = g.columns;
    cpu::byte_set_depth(gemm_, g.depth);
    gemm_.a_row = g.depth;
    gemm_.a_signed = p_.a == DType::i8;
    gemm_.c_row = g.columns;
    gemm_.out = byte_out(p_.y);
    count_of(sizes, roles.b_zero, b_zero_count_);
    count_of(sizes, roles.b_scale, b_scale_count_);
    count_of(sizes, roles.bias, bias_count_);
    plan_scratch();
  }

  /// Whether operands along the columns have a form that the loops take.
  bool possible() const {
    const auto fits = [&](int64_t count) { return count == 1 || count == gemm_.columns; };
    const bool each = p_.y == DType::f32 && p_.roles.bias >= 0;
    return fits(b_zero_count_) && fits(b_scale_count_) &&
           (each ? bias_count_ == gemm_.columns : fits(bias_count_));
  }

  size_t scratch_bytes() const override { return scratch_; }

  Fault run(const Arguments& arguments) noexcept override {
    auto* memory = static_cast<uint8_t*>(arguments.scratch);
    ByteGemm gemm = gemm_;
    auto* offset = reinterpret_cast<int32_t*>(memory);
    auto* scales = reinterpret_cast<float*>(memory + line_bytes_);
    auto* zeros = reinterpret_cast<int32_t*>(memory + 2 * line_bytes_);
    auto* row_sums = reinterpret_cast<int32_t*>(memory + 3 * line_bytes_);
    auto* partial = reinterpret_cast<int32_t*>(memory + 3 * line_bytes_ + row_bytes_);
    void* packed = memory + 3 * line_bytes_ + row_bytes_ + partial_bytes_;
    gemm.offset = offset;
    gemm.scales = scales;
    if (partial_bytes_ > 0) gemm.partial = partial;
    if (p_.b_zeros) {
      gemm.b_zeros = zeros;
      gemm.row_sums = row_sums;
    }
    fill_steps(arguments, scales, gemm);
    const auto* a = input<uint8_t>(arguments, p_.roles.a);
    const auto* b = input<uint8_t>(arguments, p_.roles.b);
    auto* c = static_cast<uint8_t*>(arguments.out[0]);
    const size_t each = static_cast<size_t>(gemm.rows * gemm.columns) * dtype_size(p_.y);
    for (size_t i = 0; i < shape_.a_offset.size(); ++i) {
      PackedB matrix = p_.packed;
      if (!matrix.values)
        matrix = pack(p_.isa, b + shape_.b_offset[i], p_.roles.trans_b, p_.b == DType::u8,
                      gemm.depth, gemm.columns, packed);
      gemm.a = a + shape_.a_offset[i];
      gemm.b = matrix.values;
      gemm.sums = matrix.sums;
      gemm.c = c + i * each;
      fill_offset(arguments, matrix.sums, offset, zeros);
      if (p_.b_zeros) sum_rows(gemm, row_sums);
      cpu::byte_gemm(p_.isa, gemm);
    }
    return {};
  }

 private:
  static void count_of(const Sizes& sizes, int role, int64_t& count) {
    if (role >= 0) count = sizes.in[static_cast<size_t>(role)].elements();
  }

  template <typename T>
  static const T* input(const Arguments& arguments, int role) {
    return role < 0 ? nullptr : static_cast<const T*>(arguments.in[static_cast<size_t>(role)]);
  }
  int32_t zero_point(const Arguments& arguments, int role, DType dtype, int64_t at = 0) const {
    if (role < 0) return 0;
    const auto* bytes = input<uint8_t>(arguments, role);
    return byte_value(bytes[at], dtype);
  }

  void plan_scratch() {
    const auto padded = static_cast<size_t>(cpu::byte_columns(gemm_.columns));
    line_bytes_ = aligned_bytes(sizeof(int32_t) * padded);
    row_bytes_ = aligned_bytes(sizeof(int32_t) * static_cast<size_t>(gemm_.rows));
    partial_bytes_ = aligned_bytes(
        static_cast<size_t>(cpu::byte_partial_bytes(gemm_.rows, gemm_.columns, gemm_.depth)));
    scratch_ = 3 * line_bytes_ + row_bytes_ + partial_bytes_;
    if (!p_.packed.values) scratch_ += packed_bytes(gemm_.depth, gemm_.columns);
  }

  /// Zero points and an integer bias, as one term per column. A B of u8 was moved by 128.
  void fill_offset(const Arguments& arguments, const int32_t* sums, int32_t* offset,
                   int32_t* zeros) const {
    const int32_t a_zero = zero_point(arguments, p_.roles.a_zero, p_.a);
    const int64_t padded = cpu::byte_columns(gemm_.columns);
    for (int64_t n = 0; n < padded; ++n) offset[n] = -a_zero * sums[n];
    if (p_.b_zeros) {
      const int32_t moved = p_.b == DType::u8 ? 128 : 0;
      const auto weight = static_cast<int32_t>(gemm_.depth * a_zero);
      for (int64_t n = 0; n < gemm_.columns; ++n) {
        zeros[n] = zero_point(arguments, p_.roles.b_zero, p_.b, b_zero_count_ == 1 ? 0 : n) - moved;
        offset[n] += weight * zeros[n];
      }
      std::fill(zeros + gemm_.columns, zeros + padded, 0);
    }
    const auto* bias = input<int32_t>(arguments, p_.roles.bias);
    if (!bias || p_.y == DType::f32) return;
    for (int64_t n = 0; n < gemm_.columns; ++n) offset[n] += bias[bias_count_ == 1 ? 0 : n];
  }

  void fill_steps(const Arguments& arguments, float* scales, ByteGemm& gemm) const {
    if (gemm.out == ByteGemm::Out::i32) return;
    const auto* b_scale = input<float>(arguments, p_.roles.b_scale);
    const auto* y_scale = input<float>(arguments, p_.roles.y_scale);
    const float a_scale = *input<float>(arguments, p_.roles.a_scale);
    for (int64_t n = 0; n < gemm.columns; ++n) {
      const float scale = p_.roles.alpha * (a_scale * b_scale[b_scale_count_ == 1 ? 0 : n]);
      scales[n] = y_scale ? scale / *y_scale : scale;
    }
    std::fill(scales + gemm.columns, scales + cpu::byte_columns(gemm.columns), 0.0F);
    if (gemm.out == ByteGemm::Out::f32) {
      gemm.bias = input<float>(arguments, p_.roles.bias);
      return;
    }
    gemm.zero = zero_point(arguments, p_.roles.y_zero, p_.y);
    gemm.low = static_cast<float>(lowest_byte(p_.y) - gemm.zero);
    gemm.high = static_cast<float>(highest_byte(p_.y) - gemm.zero);
  }

  static void sum_rows(const ByteGemm& gemm, int32_t* sums) {
    parallel_for(gemm.rows, std::max<int64_t>(1, 65536 / std::max<int64_t>(gemm.depth, 1)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t m = first; m < last; ++m) {
                     const uint8_t* row = gemm.a + m * gemm.a_row;
                     int32_t sum = 0;
                     if (gemm.a_signed)
                       for (int64_t k = 0; k < gemm.depth; ++k) sum += static_cast<int8_t>(row[k]);
                     else
                       for (int64_t k = 0; k < gemm.depth; ++k) sum += row[k];
                     sums[m] = sum;
                   }
                 });
  }

  const Prepared& p_;
  ProductShape shape_;
  ByteGemm gemm_;
  int64_t b_zero_count_ = 1, b_scale_count_ = 1, bias_count_ = 1;
  size_t line_bytes_ = 0, row_bytes_ = 0, partial_bytes_ = 0, scratch_ = 0;
};

class ByteProductKernel : public Kernel {
 public:
  explicit ByteProductKernel(const KernelQuery& query) {
    p_.roles = roles_of(query.node);
    p_.isa = query.isa;
    p_.a = query.in_dtype(static_cast<size_t>(p_.roles.a));
    p_.b = query.in_dtype(static_cast<size_t>(p_.roles.b));
    p_.y = query.out_dtype();
    p_.b_zeros = has_b_zeros(query);
    const Tensor* b = query.constant(static_cast<size_t>(p_.roles.b));
    if (!b || b->rank() != 2) return;
    const int64_t depth = b->shape()[p_.roles.trans_b ? 1 : 0];
    const int64_t columns = b->shape()[p_.roles.trans_b ? 0 : 1];
    p_.memory = std::make_shared<cpu::PageMemory>(packed_bytes(depth, columns));
    p_.packed = pack(p_.isa, b->raw(), p_.roles.trans_b, p_.b == DType::u8, depth, columns,
                     p_.memory->data());
    if (binds_all(query, columns)) packed_from_ = b;
  }

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    auto bound = std::make_unique<BoundByteProduct>(p_, sizes);
    return bound->possible() ? std::move(bound) : nullptr;
  }

  bool packs(const Tensor& constant) const override { return &constant == packed_from_; }

  std::string detail() const override {
    return std::string(p_.packed.values ? "packed" : "plain") +
           (p_.b_zeros ? ", zero points of B" : "");
  }

 private:
  bool has_b_zeros(const KernelQuery& query) const {
    const int32_t neutral = p_.b == DType::u8 ? 128 : 0;
    if (p_.roles.b_zero < 0) return neutral != 0;
    const Tensor* zeros = query.constant(static_cast<size_t>(p_.roles.b_zero));
    if (!zeros) return true;
    const auto values = zeros->to_ints();
    return std::any_of(values.begin(), values.end(), [&](int64_t z) { return z != neutral; });
  }

  /// Whether operands along the columns are known to have a form that the loops take.
  bool binds_all(const KernelQuery& query, int64_t columns) const {
    for (const int role : {p_.roles.b_zero, p_.roles.b_scale, p_.roles.bias}) {
      if (role < 0) continue;
      const auto shape = query.in(static_cast<size_t>(role)).static_shape();
      const bool each = role == p_.roles.bias && p_.y == DType::f32;
      if (!shape || (shape->elements() != columns && (each || shape->elements() != 1)))
        return false;
    }
    return true;
  }

  Prepared p_;
  const Tensor* packed_from_ = nullptr;  ///< only to be recognised: it may be gone
};

Verdict accepts(const KernelQuery& query) {
  const Roles roles = roles_of(query.node);
  const auto type = [&](int role) { return query.in_dtype(static_cast<size_t>(role)); };
  if (!is_byte(type(roles.a)) || !is_byte(type(roles.b))) return no("operands are not 8-bit");
  if (roles.trans_a) return no("A is transposed");
  if (!query.in(static_cast<size_t>(roles.a)).ranked() ||
      !query.in(static_cast<size_t>(roles.b)).ranked())
    return no("a rank is unknown");
  const DType y = query.out_dtype();
  if (y != DType::i32 && y != DType::f32 && !is_byte(y)) return no("the result's type");
  for (const int role : {roles.a_scale, roles.b_scale, roles.y_scale})
    if (role >= 0 && type(role) != DType::f32) return no("a scale that is not f32");
  for (const int role : {roles.a_zero, roles.a_scale, roles.y_zero, roles.y_scale})
    if (role >= 0 && !is_one_value(query.in(static_cast<size_t>(role))))
      return no("A or the result has more than one scale or zero point");
  for (const int role : {roles.b_zero, roles.b_scale})
    if (role >= 0 && (!query.in(static_cast<size_t>(role)).ranked() ||
                      query.in(static_cast<size_t>(role)).shape->size() > 1))
      return no("B has scales or zero points per matrix");
  if (roles.bias >= 0) {
    if (!query.in(static_cast<size_t>(roles.bias)).ranked()) return no("the bias' rank is unknown");
    if (query.in(static_cast<size_t>(roles.bias)).shape->size() > 1)
      return no("a bias of more than one axis");
    if (y == DType::f32 && type(roles.bias) != DType::f32)
      return no("an integer bias, float result");
  }
  return yes();
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<ByteProductKernel>(query);
}

}  // namespace

void register_byte_products(Kernels& kernels) {
  for (const Op* op :
       {&MatMulInteger::op, &MatMulIntegerToFloat::op, &QLinearMatMul::op, &QGemm::op})
    kernels.add({.name = "byte_product", .op = op, .accepts = accepts, .prepare = prepare});
}

}  // namespace dais
