#include <algorithm>

#include "backends/cuda/row.h"
#include "ops/pad/pad.h"
#include "ops/pad/pad_maps.h"
#include "ops/transpose/moves_cpu.h"

namespace dais {
namespace {

constexpr size_t kMostAxes = 8;

/// As in pad.cu.
struct Padding {
  uint32_t sizes[kMostAxes] = {};
  int32_t kept[kMostAxes] = {};
  int32_t before[kMostAxes] = {};
  uint32_t steps[kMostAxes] = {};
  int64_t first = 0;
  int rank = 0;
};

/// Axes that are not padded join the one behind them when that is not padded either.
std::optional<Padding> padding_of(const Node& node, const Sizes& sizes) {
  const Shape &from = sizes.in[0], &to = sizes.out[0];
  const auto pads = constant_pads(node, from.rank());
  if (!pads) return std::nullopt;
  const Shape strides = strides_of(from);
  Padding out;
  bool joins = false;
  for (size_t axis = from.rank(); axis-- > 0;) {
    const int64_t kept = kept_elements(from, *pads, axis);
    const int64_t before = std::max<int64_t>(0, (*pads)[axis]);
    if (node.as<Pad>()->mode != "constant" && kept <= 0) return std::nullopt;
    out.first += std::max<int64_t>(0, -(*pads)[axis]) * strides[axis];
    const bool plain = to[axis] == from[axis] && before == 0 && kept == from[axis];
    if (plain && joins) {
      out.sizes[out.rank - 1] *= cuda::size32(to[axis]);
      out.kept[out.rank - 1] *= static_cast<int32_t>(kept);
      continue;
    }
    if (out.rank == static_cast<int>(kMostAxes)) return std::nullopt;
    const auto at = static_cast<size_t>(out.rank++);
    out.sizes[at] = cuda::size32(to[axis]);
    out.kept[at] = static_cast<int32_t>(std::max<int64_t>(0, kept));
    out.before[at] = static_cast<int32_t>(before);
    out.steps[at] = cuda::size32(strides[axis]);
    joins = plain;
  }
  return out;
}

bool takes(const Node& node, const Sizes& sizes) {
  return padding_of(node, sizes) && (!node.has(2) || sizes.in[2].elements() == 1);
}

void run(const cuda::RowCall& call) noexcept {
  const int64_t count = call.sizes.out[0].elements();
  if (count == 0) return;
  call.launch(0, cuda::grid_of(count), call.in(0), call.node.has(2) ? call.in(2) : nullptr,
              call.out(0), cuda::size32(count), *padding_of(call.node, call.sizes));
}

Verdict accepts(const KernelQuery& query) {
  if (query.node.has(2) && query.in_dtype(2) != query.in_dtype(0))
    return no("a value of another type");
  return accepts_copy<1, 3>(query);
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  constexpr std::string_view kModes[] = {"constant", "reflect", "edge", "wrap"};
  const auto mode = std::find(std::begin(kModes), std::end(kModes), query.attrs<Pad>().mode);
  return cuda::make_text_kernel(query,
                                {.text = "pad.cu",
                                 .options = {cuda::word_option(dtype_size(query.in_dtype(0))),
                                             "-DMODE=" + std::to_string(mode - std::begin(kModes))},
                                 .kernels = {"pad"},
                                 .run = run,
                                 .takes = takes});
}

}  // namespace

namespace ops {
void register_pad_cuda(Kernels& kernels) {
  kernels.add({.name = "pad/cuda", .op = &Pad::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
