#include "ops/matmul/product.h"

#include "ops/strided.h"

namespace dais {
namespace {

void require_matrices(const Inference& c, const Dims& a, const Dims& b) {
  c.require(!a.empty() && !b.empty(), "a scalar has no matrix product");
  const Dim& left = a.back();
  const Dim& right = b.size() == 1 ? b[0] : b[b.size() - 2];
  if (left.is_constant() && right.is_constant() && !(left == right))
    c.fail("shapes " + dims_text(a) + " and " + dims_text(b) + " do not multiply: the depths are " +
           left.text() + " and " + right.text());
}

std::vector<int64_t> offsets(const Shape& batch, const Shape& operand, int64_t matrix) {
  std::vector<int64_t> out;
  const StridedLoop<1> loop(batch, {broadcast_strides(operand, batch)});
  out.reserve(static_cast<size_t>(batch.elements()));
  loop.rows([&](const std::array<int64_t, 1>& at) {
    for (int64_t i = 0; i < loop.size(); ++i) out.push_back((at[0] + i * loop.step(0)) * matrix);
  });
  return out;
}

Shape leading(const Shape& shape) {
  return Shape(shape.dims().first(shape.rank() < 2 ? 0 : shape.rank() - 2));
}

}  // namespace

Dims product_dims(const Inference& c, const Dims& a, const Dims& b) {
  require_matrices(c, a, b);
  const auto lead = [](const Dims& dims) {
    return Dims(dims.begin(), dims.end() - std::min<std::ptrdiff_t>(2, std::ssize(dims)));
  };
  Dims out = c.broadcast(lead(a), lead(b));
  if (a.size() > 1) out.push_back(a[a.size() - 2]);
  if (b.size() > 1) out.push_back(b.back());
  return out;
}

ProductShape product_shape(const Shape& a, const Shape& b) {
  ProductShape out;
  if (a.rank() == 0 || b.rank() == 0)
    throw Error(Code::invalid_argument, "a scalar has no matrix product");
  const int64_t depth = b.rank() == 1 ? b[0] : b[b.rank() - 2];
  if (a.back() != depth)
    throw Error(Code::invalid_argument,
                "shapes " + a.text() + " and " + b.text() + " do not multiply");
  out.gemm = {.rows = a.rank() == 1 ? 1 : a[a.rank() - 2],
              .columns = b.rank() == 1 ? 1 : b.back(),
              .depth = depth,
              .a_row = depth};
  out.gemm.b_row = out.gemm.columns;
  out.batch = broadcast(leading(a), leading(b));
  out.out = out.batch;
  if (a.rank() > 1) out.out.push_back(out.gemm.rows);
  if (b.rank() > 1) out.out.push_back(out.gemm.columns);
  out.a_offset = offsets(out.batch, leading(a), out.gemm.rows * depth);
  out.b_offset = offsets(out.batch, leading(b), depth * out.gemm.columns);
  // One matrix on the right for all: the rows of every batch entry form one tall product.
  if (leading(b).elements() == 1 && leading(a) == out.batch) {
    out.gemm.rows *= out.batch.elements();
    out.a_offset = {0};
    out.b_offset = {0};
  }
  return out;
}

}  // namespace dais
