// Padding with zeros moves into the convolution or averaging window that reads it.

#include <algorithm>

#include "ops/conv/conv.h"
#include "ops/pad/pad.h"
#include "ops/pool/pool.h"
#include "ops/window.h"
#include "passes/passes.h"

namespace dais {
namespace {

/// Begins, then ends, of the padding for each axis; nothing when it is not constant zeros.
std::optional<std::vector<int64_t>> zero_pads(const Node& pad) {
  const auto* attrs = pad.as<Pad>();
  if (!attrs || attrs->mode != "constant" || !pad.in[0]->type.ranked()) return {};
  if (pad.has(2) && !pad.in[2]->constant()) return {};
  if (pad.has(2) && pad.in[2]->constant()->to_double() != 0) return {};
  const Tensor* given = pad.in[1]->constant();
  if (!given || (pad.has(3) && !pad.in[3]->constant())) return {};
  const size_t rank = pad.in[0]->type.shape->size();
  std::vector<int64_t> axes(rank), out(2 * rank, 0);
  for (size_t axis = 0; axis < rank; ++axis) axes[axis] = static_cast<int64_t>(axis);
  if (pad.has(3)) axes = pad.in[3]->constant()->to_ints();
  const auto pads = given->to_ints();
  if (pads.size() != 2 * axes.size()) return {};
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = normalize_axis(axes[i], rank);
    out[axis] = pads[i];
    out[rank + axis] = pads[axes.size() + i];
  }
  if (std::any_of(out.begin(), out.end(), [](int64_t pad) { return pad < 0; })) return {};
  return out;
}

/// The window's own padding with that of the Pad node added; nothing when it cannot be.
std::optional<std::vector<int64_t>> merged_pads(const std::vector<int64_t>& all,
                                                const std::vector<int64_t>& own,
                                                const std::string& auto_pad, bool channels_last) {
  if (auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty()) return {};
  const size_t rank = all.size() / 2, space = rank - 2, first = channels_last ? 1 : 2;
  std::vector<int64_t> out(2 * space, 0);
  if (auto_pad != "VALID" && own.size() == out.size()) out = own;
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t axis = i % rank;
    const bool spatial = axis >= first && axis < first + space;
    if (!spatial && all[i] != 0) return {};
    if (spatial) out[i / rank * space + axis - first] += all[i];
  }
  return out;
}

template <typename S>
Values absorb(Graph& graph, Node& node, const S& attrs) {
  Node* pad = producer_as<Pad>(node.in[0]);
  const auto all = pad ? zero_pads(*pad) : std::nullopt;
  if (!all || all->size() < 6) return {};
  const auto pads = merged_pads(*all, attrs.pads, attrs.auto_pad, attrs.channels_last);
  if (!pads) return {};
  S changed = attrs;
  changed.auto_pad = "NOTSET";
  changed.pads = *pads;
  Values in = node.in;
  in[0] = pad->in[0];
  Node& made = graph.add_node(std::move(changed), std::move(in), node.outs.size(), node.name);
  return made.outs;
}

Values absorb_pad(Graph& graph, Node& node) {
  if (const auto* conv = node.as<Conv>()) return absorb(graph, node, *conv);
  // A mean counts padded cells only when they are its own and it is told to.
  const auto* average = node.as<AveragePool>();
  if (!average || average->ceil_mode) return {};
  const bool unpadded =
      std::all_of(average->pads.begin(), average->pads.end(), [](int64_t pad) { return pad == 0; });
  if (!average->count_include_pad && !unpadded) return {};
  AveragePool counting = *average;
  counting.count_include_pad = true;
  return absorb(graph, node, counting);
}

constexpr Rule kRules[] = {{"absorb_pad", absorb_pad}};

}  // namespace

bool fold_pad(Graph& graph, const Target&) { return rewrite(graph, kRules); }

}  // namespace dais
