#pragma once

#include "passes/pass.h"
#include "passes/rewriter.h"

/// Every pass of the pipelines; each in the file of its name.
namespace dais {

bool einsum_products(Graph& graph, const Target& target);
bool fold_constants(Graph& graph, const Target& target);
bool fold_affine(Graph& graph, const Target& target);
bool fold_pad(Graph& graph, const Target& target);
bool fold_weights(Graph& graph, const Target& target);
bool fuse_conv(Graph& graph, const Target& target);
bool fuse_elementwise(Graph& graph, const Target& target);
bool fuse_matmul_epilogue(Graph& graph, const Target& target);
bool fuse_rows(Graph& graph, const Target& target);
bool inline_branches(Graph& graph, const Target& target);
bool layout(Graph& graph, const Target& target);
bool recognize_activations(Graph& graph, const Target& target);
bool recognize_attention(Graph& graph, const Target& target);
bool recognize_norms(Graph& graph, const Target& target);
bool recognize_products(Graph& graph, const Target& target);
bool recognize_rotary(Graph& graph, const Target& target);
bool shuffle_channels(Graph& graph, const Target& target);
bool simplify(Graph& graph, const Target& target);
bool simplify_moves(Graph& graph, const Target& target);
bool split_conv_transpose(Graph& graph, const Target& target);
bool split_nms(Graph& graph, const Target& target);
bool share_common(Graph& graph, const Target& target);
bool fuse_quantised(Graph& graph, const Target& target);
bool quantise_linear(Graph& graph, const Target& target);
bool remove_dead(Graph& graph, const Target& target);
bool widen_half(Graph& graph, const Target& target);

}  // namespace dais
