#include "ops/affine_grid/affine_grid.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/concat/concat.h"
#include "ops/dims.h"
#include "ops/gradient.h"
#include "ops/matmul/matmul.h"
#include "ops/parts.h"
#include "ops/reshape/reshape.h"
#include "ops/transpose/transpose.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& theta = c.shape(0);
  c.require(theta.size() == 3, "theta is not [N, d, d+1]");
  Dims size;
  if (auto known = c.known(1)) {
    size = *known;
  } else {
    const Dims& length = c.shape(1);
    if (length.size() != 1 || !length[0].is_constant()) return;
    for (int64_t i = 0; i < std::min<int64_t>(*length[0].constant(), 6); ++i)
      size.push_back(c.fresh());
  }
  if (size.size() != 4 && size.size() != 5) c.fail("the size is not that of images or volumes");
  Dims out{theta[0]};
  out.insert(out.end(), size.begin() + 2, size.end());
  out.push_back(static_cast<int64_t>(size.size()) - 2);
  c.set(0, c.dtype(0), out);
}

double coordinate(int64_t at, int64_t size, bool align_corners) {
  const double count = static_cast<double>(size), place = static_cast<double>(at);
  if (!align_corners) return (2 * place + 1) / count - 1;
  return size == 1 ? 0 : 2 * place / (count - 1) - 1;
}

void reference(Call& c) {
  const Tensor& theta = c.in(0);
  const auto size = c.in(1).to_ints();
  const int64_t axes = std::ssize(size) - 2;
  if (axes != 2 && axes != 3) c.fail("the size is not that of images or volumes");
  if (!(theta.shape() == Shape{size[0], axes, axes + 1}))
    c.fail("theta " + theta.shape().text() + " does not fit the size " + Shape(size).text());
  Shape shape{size[0]};
  for (size_t i = 2; i < size.size(); ++i) shape.push_back(size[i]);
  shape.push_back(axes);
  Tensor& y = c.out(0, shape);
  const WideView<double> map(theta);
  const int64_t cells = shape.elements(1, shape.rank() - 1);
  const bool align = c.attrs<AffineGrid>().align_corners;
  std::vector<double> line(static_cast<size_t>(axes));
  for (int64_t n = 0; n < size[0]; ++n)
    for (int64_t cell = 0; cell < cells; ++cell) {
      double at[3] = {};
      int64_t rest = cell;
      // The innermost axis is x.
      for (int64_t k = 0; k < axes; ++k) {
        const int64_t extent = size[static_cast<size_t>(axes + 1 - k)];
        at[k] = coordinate(rest % extent, extent, align);
        rest /= extent;
      }
      for (int64_t row = 0; row < axes; ++row) {
        const double* m = map.data() + (n * axes + row) * (axes + 1);
        double sum = m[axes];
        for (int64_t k = 0; k < axes; ++k) sum += m[k] * at[k];
        line[static_cast<size_t>(row)] = sum;
      }
      store_wide<double>(y, (n * cells + cell) * axes, line.data(), axes);
    }
}

/// Places of the grid and a one for each cell, [1, cells, axes + 1].
Tensor grid_places(const std::vector<int64_t>& size, bool align, DType dtype) {
  const int64_t axes = std::ssize(size) - 2;
  int64_t cells = 1;
  for (int64_t k = 0; k < axes; ++k) cells *= size[static_cast<size_t>(2 + k)];
  Tensor out(dtype, Shape{1, cells, axes + 1});
  std::vector<double> line(static_cast<size_t>(axes + 1), 1.0);
  for (int64_t cell = 0; cell < cells; ++cell) {
    int64_t rest = cell;
    for (int64_t k = 0; k < axes; ++k) {
      const int64_t extent = size[static_cast<size_t>(axes + 1 - k)];
      line[static_cast<size_t>(k)] = coordinate(rest % extent, extent, align);
      rest /= extent;
    }
    store_wide<double>(out, cell * (axes + 1), line.data(), axes + 1);
  }
  return out;
}

/// A product of the places with theta, where the size is a constant.
Values decompose(Graph& graph, const Node& node) {
  const Tensor* given = node.in[1]->constant();
  if (!given || given->elements() < 4 || given->elements() > 5) return {};
  const auto size = given->to_ints();
  constexpr int64_t kMostCells = int64_t{1} << 24;
  std::vector<int64_t> shape{0};
  int64_t cells = 1;
  for (size_t i = 2; i < size.size(); ++i) {
    if (size[i] <= 0 || size[i] > kMostCells || (cells *= size[i]) > kMostCells) return {};
    shape.push_back(size[i]);
  }
  shape.push_back(std::ssize(size) - 2);
  const DType dtype = wide_type(*node.in[0]);
  const bool align = node.as<AffineGrid>()->align_corners;
  Value* places = graph.add_constant(grid_places(size, align, dtype));
  Value* slopes = graph.add(Transpose{{0, 2, 1}}, {as_type(graph, node.in[0], dtype)});
  Value* y = graph.add(MatMul{}, {places, slopes});
  y = graph.add(Reshape{}, {y, graph.add_constant(Tensor::ints(shape))});
  return {as_type(graph, y, node.in[0]->type.dtype)};
}

/// Linear in theta: each row meets the places of the grid, which the identity gives, and one.
Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto axes = static_cast<int64_t>(rank_for_gradient(n, n.outs[0])) - 2;
  Tensor same(n.in[0]->type.dtype, Shape{1, axes, axes + 1});
  std::vector<double> numbers(static_cast<size_t>(same.elements()));
  for (int64_t i = 0; i < axes; ++i) numbers[static_cast<size_t>(i * (axes + 2))] = 1;
  store_wide(same, 0, numbers.data(), same.elements());
  Value* theta = expand_like(g, g.add_constant(same), n.in[0]);
  const auto rows = [&](Value* grid) { return g.add(Reshape{}, {grid, ints(g, {0, -1, axes})}); };
  Value* places = rows(g.add(*n.as<AffineGrid>(), {theta, n.in[1]}));
  Value* slopes = swap_last_axes(g, rows(dy[0]));
  return {
      g.add(Concat{.axis = 2}, {g.add(MatMul{}, {slopes, places}), sum_over(g, slopes, {2}, true)}),
      nullptr};
}

}  // namespace

const Op AffineGrid::op{
    .name = "affine_grid",
    .attrs = &AttrsOf<AffineGrid>::info,
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .gradient = gradient,
    .onnx = {{"AffineGrid", 20}},
};

namespace ops {
void define_affine_grid(OpRegistry& registry) { registry.add(AffineGrid::op); }
}  // namespace ops
}  // namespace dais
