#include <algorithm>

#include "backends/cuda/row.h"
#include "ops/pool/pool.h"
#include "ops/reduce/arg_cuda.h"
#include "ops/reduce/reduce.h"
#include "ops/strided.h"

namespace dais {
namespace {

constexpr int64_t kPiece = 8192;  ///< elements of a row that one block joins

/// Whether a global pool has its channels last; nothing: the node is none.
std::optional<bool> pools_channels_last(const Node& node) {
  if (const auto* average = node.as<GlobalAveragePool>()) return average->channels_last;
  if (const auto* maximum = node.as<GlobalMaxPool>()) return maximum->channels_last;
  return std::nullopt;
}

/// The tensor as [outer, size, inner] when the reduced axes lie side by side.
std::optional<AxisSplit> split_of(const Node& node, const Shape& shape) {
  if (const auto last = pools_channels_last(node)) {
    const AxisSplit planes = split_axis(shape, 1);
    return *last ? AxisSplit{shape[0], shape.elements(1, shape.rank() - 1), shape[shape.rank() - 1]}
                 : AxisSplit{planes.outer * planes.size, planes.inner, 1};
  }
  std::vector<int64_t> axes;
  if (node.has(1)) axes = node.in[1]->constant()->to_ints();
  if (axes.empty() && reduce_attrs(node).noop_with_empty_axes)
    return AxisSplit{1, 1, shape.elements()};
  std::vector<bool> reduced(shape.rank(), axes.empty());
  for (const int64_t axis : axes) reduced[normalize_axis(axis, shape.rank())] = true;
  AxisSplit split;
  bool before = true;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    if (reduced[axis]) {
      if (split.inner != 1) return std::nullopt;
      split.size *= shape[axis];
      before = false;
    } else {
      (before ? split.outer : split.inner) *= shape[axis];
    }
  }
  return split;
}

int64_t pieces_of(const AxisSplit& split) {
  // Enough rows fill the device as they are.
  if (split.inner != 1 || split.outer > 1024) return 1;
  return std::clamp<int64_t>(split.size / kPiece, 1, 1024);
}

size_t scratch_bytes(const Node& node, const Sizes& sizes) {
  const AxisSplit split = *split_of(node, sizes.in[0]);
  const int64_t pieces = pieces_of(split);
  return pieces == 1 ? 0 : static_cast<size_t>(split.outer * pieces) * sizeof(float);
}

bool takes(const Node& node, const Sizes& sizes) {
  const auto split = split_of(node, sizes.in[0]);
  // Rows are the grid's second dimension.
  return split && sizes.in[0].elements() > 0 && (split->inner != 1 || split->outer <= 65535);
}

void run(const cuda::RowCall& call) noexcept {
  const AxisSplit split = *split_of(call.node, call.sizes.in[0]);
  if (split.inner != 1)
    return call.launch(2, cuda::grid_of(split.outer * split.inner), call.in(0), call.out(0),
                       cuda::size32(split.outer), cuda::size32(split.size),
                       cuda::size32(split.inner));
  const int64_t pieces = pieces_of(split);
  const int64_t piece = cuda::ceil_div(cuda::ceil_div(split.size, pieces), 8) * 8;
  cuda::Grid grid;
  grid.x = cuda::size32(cuda::ceil_div(split.size, piece));
  grid.y = cuda::size32(split.outer);
  grid.threads = cuda::row_threads(piece);
  if (grid.x == 1)
    return call.launch(0, grid, call.in(0), call.out(0), cuda::size32(split.size),
                       cuda::size32(piece));
  void* parts = call.arguments.scratch;
  call.launch(0, grid, call.in(0), parts, cuda::size32(split.size), cuda::size32(piece));
  cuda::Grid last;
  last.y = grid.y;
  last.threads = cuda::row_threads(grid.x);
  call.launch(1, last, static_cast<const void*>(parts), call.out(0), grid.x,
              cuda::size32(split.size));
}

const char* text_name(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return "Sum";
    case Reduction::mean: return "Mean";
    case Reduction::max: return "Max";
    case Reduction::min: return "Min";
    case Reduction::prod: return "Prod";
    case Reduction::l1: return "L1";
    case Reduction::l2: return "L2";
    case Reduction::log_sum: return "LogSum";
    case Reduction::sum_square: return "SumSquare";
    default: return nullptr;
  }
}

const char* text_name(const Node& node) {
  if (node.as<GlobalAveragePool>()) return "Mean";
  return node.as<GlobalMaxPool>() ? "Max" : text_name(*reduction_of(*node.op));
}

Verdict accepts(const KernelQuery& query) {
  if (query.node.has(1) && !query.constant(1)) return no("the axes are not constant");
  return cuda::accepts_floats(query);
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const std::string type = cuda::float_name(query.in_dtype(0));
  return cuda::make_text_kernel(query,
                                {.text = "reduce.cu",
                                 .options = {"-DIN=" + type, "-DOUT=" + type,
                                             std::string("-DREDUCE=") + text_name(query.node)},
                                 .kernels = {"reduce_rows", "join_pieces", "reduce_columns"},
                                 .run = run,
                                 .scratch_bytes = scratch_bytes,
                                 .takes = takes});
}

constexpr size_t kMostAxes = 8;  ///< where the axis of a scan is known to the device only

/// As in scan.cu.
struct Axes {
  uint32_t sizes[kMostAxes] = {};
  int rank = 0;
};

Axes axes_of(const Shape& shape) {
  Axes axes;
  axes.rank = static_cast<int>(shape.rank());
  for (size_t i = 0; i < shape.rank(); ++i) axes.sizes[i] = cuda::size32(shape[i]);
  return axes;
}

size_t scanned_axis(const Node& node, const Shape& shape) {
  return normalize_axis(node.in[1]->constant()->to_ints()[0], shape.rank());
}

template <typename S>
void run_scan(const cuda::RowCall& call) noexcept {
  const auto& attrs = *call.node.as<S>();
  const Shape& shape = call.sizes.in[0];
  const int reverse = attrs.reverse, exclusive = attrs.exclusive;
  if (shape.elements() == 0) return;
  if (!call.node.in[1]->constant())
    return call.launch(2, cuda::grid_of(shape.elements()), call.in(0), call.out(0), call.in(1),
                       axes_of(shape), cuda::size32(shape.elements()), reverse, exclusive,
                       call.queue().faults(), call.queue().step());
  const AxisSplit split = split_axis(shape, scanned_axis(call.node, shape));
  if (split.inner != 1)
    return call.launch(1, cuda::grid_of(split.outer * split.inner), call.in(0), call.out(0),
                       cuda::size32(split.outer), cuda::size32(split.size),
                       cuda::size32(split.inner), reverse, exclusive);
  cuda::Grid grid;
  grid.x = cuda::size32(split.outer);
  grid.threads = cuda::row_threads(split.size, 1024);
  call.launch(0, grid, call.in(0), call.out(0), cuda::size32(split.size), reverse, exclusive);
}

bool takes_scan(const Node& node, const Sizes& sizes) {
  return node.in[1]->constant() || (sizes.in[1].elements() == 1 && sizes.in[0].rank() <= kMostAxes);
}

Verdict accepts_scan(const KernelQuery& query) {
  const DType axis = query.in_dtype(1);
  if (axis != DType::i64 && axis != DType::i32) return no("an axis of another type");
  return cuda::accepts_floats(query);
}

template <typename S>
std::unique_ptr<Kernel> prepare_scan(const KernelQuery& query) {
  constexpr bool sum = std::is_same_v<S, CumSum>;
  const bool wide = query.in_dtype(1) == DType::i64;
  return cuda::make_text_kernel(query, {.text = "scan.cu",
                                        .options = {cuda::element_option(query.in_dtype(0)),
                                                    sum ? "-DJOIN=Plus" : "-DJOIN=Times",
                                                    wide ? "-DAXIS=int64" : "-DAXIS=int32"},
                                        .kernels = {"scan_rows", "scan_columns", "scan_along"},
                                        .run = run_scan<S>,
                                        .takes = takes_scan});
}

}  // namespace

namespace ops {
void register_reduce_cuda(Kernels& kernels) {
  for (const Op* op : {&ReduceSum::op, &ReduceMean::op, &ReduceMax::op, &ReduceMin::op,
                       &ReduceProd::op, &ReduceL1::op, &ReduceL2::op, &ReduceLogSum::op,
                       &ReduceSumSquare::op, &GlobalAveragePool::op, &GlobalMaxPool::op})
    kernels.add({.name = "reduce/cuda", .op = op, .accepts = accepts, .prepare = prepare});
  register_arg_cuda(kernels);
  kernels.add({.name = "cum_sum/cuda",
               .op = &CumSum::op,
               .accepts = accepts_scan,
               .prepare = prepare_scan<CumSum>});
  kernels.add({.name = "cum_prod/cuda",
               .op = &CumProd::op,
               .accepts = accepts_scan,
               .prepare = prepare_scan<CumProd>});
}
}  // namespace ops
}  // namespace dais
