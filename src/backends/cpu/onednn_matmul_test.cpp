#include "backends/cpu/onednn_testing.h"

namespace dais::onednn::testing {
namespace {

/// Empty strides in a MatrixDesc, spelt out.
Dims strides_of(const MatrixDesc& matrix, const Dims& dims) {
  if (!matrix.strides.empty()) return matrix.strides;
  Dims strides = dense_strides(dims);
  if (matrix.transposed) {
    strides[strides.size() - 2] = 1;
    strides[strides.size() - 1] = dims[dims.size() - 2];
  }
  return strides;
}

void expect_matmul(const MatmulDesc& desc) {
  const Created created = create(desc);
  ASSERT_TRUE(created) << created.reason;
  const auto dims_of = [&](const MatrixDesc& matrix, int64_t rows, int64_t columns) {
    Dims dims = matrix.batch.empty() ? Dims(desc.c.batch.size(), 1) : matrix.batch;
    dims.push_back(rows);
    dims.push_back(columns);
    return dims;
  };
  Tensor a = filled(dims_of(desc.a, desc.m, desc.k), desc.a.data, 1);
  Tensor b = filled(dims_of(desc.b, desc.k, desc.n), desc.b.data, 2);
  const Dims c = dims_of(desc.c, desc.m, desc.n);
  EpilogueCase epilogue(desc.epilogue, desc.c.data, c, c.size() - 1);
  const auto sum = [&](const Dims& out) {
    Dims left = out, right = out;
    for (size_t axis = 0; axis + 2 < out.size(); ++axis) {
      if (a.dims[axis] == 1) left[axis] = 0;
      if (b.dims[axis] == 1) right[axis] = 0;
    }
    double total = 0;
    for (int64_t index = 0; index < desc.k; ++index) {
      left[left.size() - 1] = right[right.size() - 2] = index;
      total += (a.at(left) - desc.a.zero_point) * (b.at(right) - desc.b.zero_point);
    }
    return total;
  };
  expect_run(*created.primitive, epilogue, bytes_of(a, strides_of(desc.a, a.dims)),
             bytes_of(b, strides_of(desc.b, b.dims)), strides_of(desc.c, c),
             operand_strides(epilogue, false), static_cast<double>(desc.k) + 8, sum);
}

MatmulDesc matmul(int64_t m, int64_t n, int64_t k) {
  MatmulDesc desc;
  desc.m = m;
  desc.n = n;
  desc.k = k;
  return desc;
}

TEST(OnednnMatmul, ShapesAndLayouts) {
  SKIP_WITHOUT_ONEDNN();
  for (const bool pack : {false, true}) {
    for (const bool transposed : {false, true}) {
      MatmulDesc desc = matmul(17, 33, 29);
      desc.pack_b = pack;
      desc.b.transposed = transposed;
      expect_matmul(desc);
      desc.a.transposed = true;
      expect_matmul(desc);
      MatmulDesc row = matmul(1, 65, 40);
      row.pack_b = pack;
      row.b.transposed = transposed;
      expect_matmul(row);
    }
  }
  expect_matmul(matmul(5, 1, 7));
}

TEST(OnednnMatmul, BatchesAndStrides) {
  SKIP_WITHOUT_ONEDNN();
  MatmulDesc batched = matmul(6, 10, 8);
  batched.a.batch = batched.b.batch = batched.c.batch = {2, 3};
  expect_matmul(batched);
  batched.b.batch = {1, 3};
  expect_matmul(batched);
  batched.b.batch = {};
  expect_matmul(batched);
  // Heads inside rows, as attention has them: (batch, row, head, column) in memory.
  MatmulDesc heads = matmul(6, 6, 8);
  heads.a.batch = heads.b.batch = heads.c.batch = {2, 3};
  heads.a.strides = {6 * 24, 8, 24, 1};
  heads.b.strides = {6 * 24, 8, 1, 24};
  expect_matmul(heads);
}

TEST(OnednnMatmul, PostOps) {
  SKIP_WITHOUT_ONEDNN();
  MatmulDesc desc = matmul(12, 20, 16);
  desc.pack_b = true;
  desc.epilogue.bias = true;
  desc.epilogue.post_ops = {PostOp::apply(Eltwise::gelu_erf)};
  expect_matmul(desc);
  desc.epilogue.post_ops = {PostOp::mul_per_channel(), PostOp::add(Data::f32)};
  expect_matmul(desc);
  desc.epilogue.post_ops = {PostOp::sum(), PostOp::apply(Eltwise::relu)};
  expect_matmul(desc);
  MatmulDesc masked = matmul(6, 6, 8);
  masked.a.batch = masked.b.batch = masked.c.batch = {2, 3};
  masked.epilogue.post_ops = {PostOp::apply(Eltwise::linear, 0.125F, 0),
                              PostOp::add(Data::f32, {1, 1, 6, 6})};
  if (create(masked)) expect_matmul(masked);
}

TEST(OnednnMatmul, Bytes) {
  SKIP_WITHOUT_ONEDNN();
  if (cpu::isa() < Isa::avx512) GTEST_SKIP() << "no exact 8-bit sums";
  for (const Data src : {Data::u8, Data::s8}) {
    MatmulDesc desc = matmul(19, 32, 48);
    desc.pack_b = true;
    desc.a.data = src;
    desc.b.data = Data::s8;
    desc.c.data = Data::s32;
    expect_matmul(desc);
    desc.c.data = Data::u8;
    desc.epilogue.bias = true;
    desc.epilogue.bias_data = Data::s32;
    desc.epilogue.scales = {0.0009765625F};
    desc.epilogue.dst_zero_point = 101;
    expect_matmul(desc);
    desc.epilogue.scales.assign(32, 0.0005F);
    expect_matmul(desc);
  }
  MatmulDesc zero = matmul(19, 32, 48);
  zero.a.data = Data::u8;
  zero.b.data = Data::s8;
  zero.c.data = Data::s32;
  zero.a.zero_point = 117;
  zero.b.zero_point = -5;
  if (create(zero)) expect_matmul(zero);
}

TEST(OnednnMatmul, Bfloat16) {
  SKIP_WITHOUT_ONEDNN();
  MatmulDesc desc = matmul(33, 48, 64);
  desc.a.data = desc.b.data = Data::bf16;
  desc.pack_b = true;
  if (const Created created = create(desc); !created) GTEST_SKIP() << created.reason;
  expect_matmul(desc);
  desc.c.data = Data::bf16;
  desc.epilogue.bias = true;
  expect_matmul(desc);
}

TEST(OnednnZeroPoint, FoldsIntoBias) {
  const int8_t weights[] = {1, 2, 3, -1, -2, -4};
  const int32_t bias[] = {10, 20};
  EXPECT_EQ(zero_point_bias(weights, 2, 3, bias, 5), (std::vector<int32_t>{-20, 55}));
  EXPECT_EQ(zero_point_bias(weights, 2, 3, nullptr, -1), (std::vector<int32_t>{6, -7}));
}

TEST(CpuIsa, LevelsAreOrdered) {
  EXPECT_LE(cpu::isa(), cpu::machine_isa());
  EXPECT_EQ(isa_name(Isa::avx512), "avx512");
}

}  // namespace
}  // namespace dais::onednn::testing
