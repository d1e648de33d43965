#include "ops/det/det.h"

#include <algorithm>
#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& in = c.shape(0);
  c.require(in.size() >= 2, "the input holds no matrices");
  merge_dim(c, in[in.size() - 2], in.back(), "rows and columns of the matrices");
  c.set(0, c.dtype(0), Dims(in.begin(), in.end() - 2));
}

/// Elimination with row pivots; destroys the matrix.
double determinant(std::vector<double>& m, int64_t n) {
  double out = 1;
  auto at = [&](int64_t row, int64_t column) -> double& {
    return m[static_cast<size_t>(row * n + column)];
  };
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t row = k + 1; row < n; ++row)
      if (std::fabs(at(row, k)) > std::fabs(at(pivot, k))) pivot = row;
    if (at(pivot, k) == 0) return 0;
    if (pivot != k) {
      for (int64_t column = 0; column < n; ++column) std::swap(at(k, column), at(pivot, column));
      out = -out;
    }
    out *= at(k, k);
    for (int64_t row = k + 1; row < n; ++row) {
      const double factor = at(row, k) / at(k, k);
      for (int64_t column = k; column < n; ++column) at(row, column) -= factor * at(k, column);
    }
  }
  return out;
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  c.require(x.rank() >= 2 && x.shape()[x.rank() - 2] == x.shape().back(),
            "the matrices are not square");
  const int64_t n = x.shape().back();
  Shape shape;
  for (size_t axis = 0; axis + 2 < x.rank(); ++axis) shape.push_back(x.shape()[axis]);
  Tensor& y = c.out(0, shape);
  std::vector<double> matrix(static_cast<size_t>(n * n));
  visit_dtype<FloatTypes>(x.dtype(), [&]<typename T>() {
    for (int64_t i = 0; i < y.elements(); ++i) {
      const T* from = x.data<T>().data() + i * n * n;
      std::transform(from, from + n * n, matrix.begin(),
                     [](T value) { return number_cast<double>(value); });
      y.storage<T>()[i] = number_cast<T>(determinant(matrix, n));
    }
  });
}

void infer_backward(Inference& c) {
  c.set(0, c.dtype(1));
  c.set(0, c.dtype(1), c.shape(1));
}

/// Without one row and one column, with the sign of its place: right for singular matrices too.
double cofactor(const double* matrix, int64_t n, int64_t row, int64_t column) {
  std::vector<double> rest;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (i != row && j != column) rest.push_back(matrix[i * n + j]);
  return ((row + column) % 2 == 0 ? 1 : -1) * determinant(rest, n - 1);
}

void reference_backward(Call& c) {
  const Tensor &dy = c.in(0), &x = c.in(1);
  c.require(x.rank() >= 2 && x.shape()[x.rank() - 2] == x.shape().back(),
            "the matrices are not square");
  const int64_t n = x.shape().back(), count = x.shape().elements(0, x.rank() - 2);
  c.require(dy.elements() == count, "dy must have one number for each matrix");
  const WideView<double> slopes(dy), values(x);
  std::vector<double> out(static_cast<size_t>(x.elements()));
  for (int64_t at = 0; at < x.elements(); ++at) {
    const int64_t matrix = at / (n * n), place = at % (n * n);
    out[static_cast<size_t>(at)] =
        slopes[matrix] * cofactor(values.data() + matrix * n * n, n, place / n, place % n);
  }
  store_wide(c.out(0, x.shape()), 0, out.data(), x.elements());
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  return {g.add(DetBackward{}, {dy[0], n.in[0]})};
}

}  // namespace

const Op Det::op{
    .name = "det",
    .attrs = &AttrsOf<Det>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{"Det", 11}},
};

const Op DetBackward::op{
    .name = "det_backward",
    .attrs = &AttrsOf<DetBackward>::info,
    .infer = infer_backward,
    .reference = reference_backward,
    .onnx = {{.type = "DetBackward", .domain = "dais"}},
};

namespace ops {
void define_det(OpRegistry& registry) {
  registry.add(Det::op);
  registry.add(DetBackward::op);
}
}  // namespace ops
}  // namespace dais
