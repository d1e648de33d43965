#include <array>

#include "backends/cuda/row.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

enum : size_t { kTiles, kPermute };
constexpr size_t kMostAxes = 8;

/// As in transpose.cu.
struct Permutation {
  uint32_t sizes[kMostAxes] = {};
  uint32_t strides[kMostAxes] = {};
  int rank = 0;
};

/// The axes that move, the last one of the output first, neighbours that stay together merged.
struct Moves {
  std::vector<int64_t> sizes, strides;
};

Moves moves_of(const Node& node, const Shape& x) {
  std::vector<int64_t> perm = node.as<Transpose>()->perm;
  if (perm.empty())
    for (size_t axis = x.rank(); axis-- > 0;) perm.push_back(static_cast<int64_t>(axis));
  Moves out;
  for (size_t i = perm.size(); i-- > 0;) {
    const auto axis = normalize_axis(perm[i], x.rank());
    if (x[axis] == 1) continue;
    const int64_t stride = x.elements(axis + 1, x.rank());
    if (!out.sizes.empty() && stride == out.strides.back() * out.sizes.back()) {
      out.sizes.back() *= x[axis];
    } else {
      out.sizes.push_back(x[axis]);
      out.strides.push_back(stride);
    }
  }
  if (out.sizes.empty()) {
    out.sizes.push_back(1);
    out.strides.push_back(1);
  }
  return out;
}

/// [batch, rows, columns] to [batch, columns, rows]: the last two axes change places.
bool turns_matrices(const Moves& moves) {
  const auto &sizes = moves.sizes, &strides = moves.strides;
  if (sizes.size() < 2 || sizes.size() > 3 || strides[1] != 1 || strides[0] != sizes[1])
    return false;
  return sizes.size() == 2 || (strides[2] == sizes[0] * sizes[1] && sizes[2] <= 65535);
}

void run(const cuda::RowCall& call) noexcept {
  const Shape& x = call.sizes.in[0];
  if (x.elements() == 0) return;
  const Moves moves = moves_of(call.node, x);
  if (turns_matrices(moves) && cuda::ceil_div(moves.sizes[0], 32) <= 65535) {
    cuda::Grid grid;
    grid.threads = 32;
    grid.threads_y = 8;
    grid.x = cuda::size32(cuda::ceil_div(moves.sizes[1], 32));
    grid.y = cuda::size32(cuda::ceil_div(moves.sizes[0], 32));
    grid.z = moves.sizes.size() == 3 ? cuda::size32(moves.sizes[2]) : 1;
    return call.launch(kTiles, grid, call.in(0), call.out(0), cuda::size32(moves.sizes[0]),
                       cuda::size32(moves.sizes[1]));
  }
  Permutation by;
  by.rank = static_cast<int>(moves.sizes.size());
  for (size_t axis = 0; axis < moves.sizes.size(); ++axis) {
    by.sizes[axis] = cuda::size32(moves.sizes[axis]);
    by.strides[axis] = cuda::size32(moves.strides[axis]);
  }
  call.launch(kPermute, cuda::grid_of(x.elements()), call.in(0), call.out(0),
              cuda::size32(x.elements()), by);
}

bool takes(const Node& node, const Sizes& sizes) {
  return moves_of(node, sizes.in[0]).sizes.size() <= kMostAxes;
}

Verdict accepts(const KernelQuery& query) {
  const DType dtype = query.in_dtype(0);
  if (dtype == DType::string) return no("strings");
  return query.in(0).ranked() ? yes() : no("the rank is unknown");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(query,
                                {.text = "transpose.cu",
                                 .options = {cuda::word_option(dtype_size(query.in_dtype(0)))},
                                 .kernels = {"transpose_tiles", "permute"},
                                 .run = run,
                                 .takes = takes});
}

}  // namespace

namespace ops {
void register_transpose_cuda(Kernels& kernels) {
  kernels.add(
      {.name = "transpose/cuda", .op = &Transpose::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
