// The host's side of loss.cu.
#include <algorithm>

#include "backends/cuda/row.h"
#include "ops/loss/loss.h"

namespace dais {
namespace {

enum : size_t { kEach, kPieces, kTotal, kGradient };
constexpr int64_t kPiece = 1024, kMostPieces = 256;

/// As in loss.cu.
struct Targets {
  const void *at = nullptr, *weights = nullptr;
  cuda::FaultRecord* fault = nullptr;
  int64_t ignored = 0;
  uint32_t count = 0, classes = 0, cells = 0;
  int ignores = 0, step = 0;
};

/// Inputs from `first` on are X, targets and weights?.
template <typename S>
Targets targets_of(const cuda::RowCall& call, size_t first) noexcept {
  const auto& attrs = *call.node.as<S>();
  const Shape& x = call.sizes.in[first];
  return {.at = call.in(first + 1),
          .weights = call.in(first + 2),
          .fault = call.queue().faults(),
          .ignored = attrs.ignore_index.value_or(0),
          .count = cuda::size32(call.sizes.in[first + 1].elements()),
          .classes = cuda::size32(x[1]),
          .cells = cuda::size32(x.elements(2, x.rank())),
          .ignores = attrs.ignore_index.has_value(),
          .step = call.queue().step()};
}

/// Takes the sums in pieces; `x` may be null, and one of `y` and `weight`.
void launch_sums(const cuda::RowCall& call, const Targets& targets, const void* x, void* y,
                 void* weight, bool mean) noexcept {
  const int64_t pieces = std::clamp<int64_t>(targets.count / kPiece, 1, kMostPieces);
  const int64_t piece = std::max<int64_t>(cuda::ceil_div(targets.count, pieces), 1);
  void* parts = call.arguments.scratch;
  cuda::Grid grid, one;
  grid.x = cuda::size32(pieces);
  grid.threads = one.threads = 256;
  call.launch(kPieces, grid, targets, x, parts, cuda::size32(piece));
  call.launch(kTotal, one, static_cast<const void*>(parts), y, weight, grid.x,
              static_cast<int>(mean));
}

/// The parts, and behind them the weight of all.
size_t scratch_bytes(const Node&, const Sizes&) { return (kMostPieces + 1) * 2 * sizeof(float); }

void run(const cuda::RowCall& call) noexcept {
  const auto& attrs = *call.node.as<NegativeLogLikelihoodLoss>();
  const Targets targets = targets_of<NegativeLogLikelihoodLoss>(call, 0);
  if (attrs.reduction != "none")
    return launch_sums(call, targets, call.in(0), call.out(0), nullptr, attrs.reduction == "mean");
  if (targets.count > 0)
    call.launch(kEach, cuda::grid_of(targets.count), targets, call.in(0), call.out(0));
}

void run_backward(const cuda::RowCall& call) noexcept {
  using Backward = NegativeLogLikelihoodLossBackward;
  const auto& reduction = call.node.as<Backward>()->reduction;
  const Targets targets = targets_of<Backward>(call, 1);
  const int64_t elements = call.sizes.in[1].elements();
  if (elements == 0) return;
  float* weight = nullptr;
  if (reduction == "mean") {
    weight = static_cast<float*>(call.arguments.scratch) + 2 * kMostPieces;
    launch_sums(call, targets, nullptr, nullptr, weight, false);
  }
  call.launch(kGradient, cuda::grid_of(elements), targets, call.in(0),
              static_cast<const void*>(weight), call.out(0), static_cast<int>(reduction == "none"));
}

template <size_t first>
Verdict accepts(const KernelQuery& query) {
  const DType targets = query.in_dtype(first + 1);
  if (targets != DType::i32 && targets != DType::i64) return no("targets of another element type");
  for (const size_t i : {size_t{0}, first + 2})
    if (query.node.has(i) && query.in_dtype(i) != query.in_dtype(first))
      return no("element types differ");
  return cuda::accepts_floats(query, first);
}

template <size_t first>
bool takes(const Node&, const Sizes& sizes) {
  const Shape &x = sizes.in[first], &targets = sizes.in[first + 1];
  return targets[0] == x[0] && targets.elements() == x[0] * x.elements(2, x.rank());
}

template <size_t first>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const bool narrow = query.in_dtype(first + 1) == DType::i32;
  return cuda::make_text_kernel(
      query, {.text = "loss.cu",
              .options = {cuda::element_option(query.in_dtype(first)),
                          narrow ? "-DTARGET=int32" : "-DTARGET=int64"},
              .kernels = {"loss_each", "loss_pieces", "loss_total", "loss_gradient"},
              .run = first == 0 ? run : run_backward,
              .scratch_bytes = scratch_bytes,
              .takes = takes<first>});
}

}  // namespace

namespace ops {
void register_loss_cuda(Kernels& kernels) {
  kernels.add({.name = "loss/cuda",
               .op = &NegativeLogLikelihoodLoss::op,
               .accepts = accepts<0>,
               .prepare = prepare<0>});
  kernels.add({.name = "loss_backward/cuda",
               .op = &NegativeLogLikelihoodLossBackward::op,
               .accepts = accepts<1>,
               .prepare = prepare<1>});
}
}  // namespace ops
}  // namespace dais
