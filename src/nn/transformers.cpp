#include <cmath>

#include "nn/parts.h"

namespace dais::nn {
namespace {

constexpr double kDeviation = 0.02;  // of all matrices and tables

void require_heads(int64_t width, int64_t heads) {
  if (width % heads == 0) return;
  fail_flag("heads",
            std::to_string(heads) + " heads do not divide a width of " + std::to_string(width), "");
}

LinearOptions head(const char* name, Init init) {
  return {.init = init, .bias_init = Init::constant(0), .name = name};
}

/// Adds the vectors of the first positions of a learned table.
Value with_positions(Network& net, Value x, Value tokens, int64_t context, Init init) {
  const Value table = net.parameter("positions.weight", {context, x.size(-1)}, init);
  return x + lookup(table, places_along(tokens, 1));
}

Value blocks(Value x, int64_t layers, const TransformerOptions& options) {
  for (int64_t i = 0; i < layers; ++i) {
    const Scope scope(x, "blocks." + std::to_string(i));
    x = transformer_block(x, options);
  }
  return x;
}

}  // namespace

Network Bert::build(uint64_t seed) const {
  check_flags(*this);
  require_heads(width, heads);
  Network net("bert", seed);
  const Init init = Init::truncated_normal(kDeviation);
  const NormOptions norm{.epsilon = 1e-12, .name = "norm"};
  const Value tokens = net.tokens();
  Value x = embedding(tokens, vocab, width, {.init = init, .name = "embedding"});
  x = with_positions(net, x, tokens, context, init);
  const Value segments = net.parameter("segments.weight", {2, width}, init);
  x = x + (pairs ? lookup(segments, net.input("segments", {"batch", "length"}, DType::i64))
                 : slice(segments, 0, 0, 1));
  x = nn::dropout(layer_norm(x, norm), dropout);
  // Every query of padding sees all keys: some key must be seen, and nobody reads the result.
  const Value padding = equals(tokens, 0);
  const Value used =
      either(negate(unsqueeze(unsqueeze(padding, 1), 1)), unsqueeze(unsqueeze(padding, 1), -1));
  x = blocks(x, layers,
             {.heads = heads,
              .norm_first = false,
              .dropout = dropout,
              .epsilon = norm.epsilon,
              .mask = used,
              .init = init});
  x = squeeze(slice(x, 1, 0, 1), 1);
  x = nn::dropout(tanh(linear(x, width, head("pool", init))), dropout);
  return finish(std::move(net), "classification", linear(x, classes, head("head", init)));
}

Network Gpt::build(uint64_t seed) const {
  check_flags(*this);
  require_heads(width, heads);
  Network net("gpt", seed);
  const Init init = Init::normal(kDeviation);
  const Value tokens = net.tokens();
  const Value table = net.parameter("embedding.weight", {vocab, width}, init);
  Value x = with_positions(net, lookup(table, tokens), tokens, context, init);
  // Each block adds twice to the residual stream, whose deviation is to stay near one.
  const double shrink = 1 / std::sqrt(2.0 * static_cast<double>(layers));
  x = blocks(nn::dropout(x, dropout), layers,
             {.heads = heads,
              .causal = true,
              .dropout = dropout,
              .init = init,
              .residual_init = Init::normal(kDeviation * shrink)});
  x = layer_norm(x, {.name = "norm"});
  const Value logits = tied ? matmul(x, transpose(table, {1, 0}))
                            : linear(x, vocab, {.bias = false, .init = init, .name = "head"});
  return finish(std::move(net), "next_token", logits);
}

Network VisionTransformer::build(uint64_t seed) const {
  check_flags(*this);
  require_image(input);
  require_heads(width, heads);
  if (input.sizes[1] % patch != 0 || input.sizes[2] % patch != 0)
    fail_flag("patch", "patches of " + std::to_string(patch) + " do not divide " + flag_text(input),
              "");
  Network net("vit", seed);
  const Init init = Init::truncated_normal(kDeviation);
  const int64_t patches = (input.sizes[1] / patch) * (input.sizes[2] / patch);
  Value x =
      conv(image_input(net, input), width, {.kernel = patch, .stride = patch, .name = "patches"});
  x = transpose(reshape(x, {0, width, patches}), {0, 2, 1});
  const Value mark = net.parameter("class_token", {1, 1, width}, init);
  x = concat({repeat_batch(mark, x), x}, 1);
  x = nn::dropout(x + net.parameter("positions", {1, patches + 1, width}, init), dropout);
  x = blocks(x, layers, {.heads = heads, .dropout = dropout, .epsilon = 1e-6, .init = init});
  x = layer_norm(squeeze(slice(x, 1, 0, 1), 1), {.epsilon = 1e-6, .name = "norm"});
  return finish(std::move(net), "classification", linear(x, classes, head("head", init)));
}

}  // namespace dais::nn
