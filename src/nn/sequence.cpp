#include "nn/body.h"
#include "ops/attention/attention.h"
#include "ops/rnn/rnn.h"

namespace dais::nn {
namespace {

/// One recurrent layer over x [length, batch, in], both directions side by side in the result.
/// The bias holds those of the input and of the state, as the operators want them.
template <typename Cell>
Value recurrent_layer(Value x, int64_t hidden, int64_t gates, Cell cell,
                      const RecurrentOptions& options, const std::string& name) {
  NetworkBody& body = NetworkBody::of(x);
  const int64_t directions = options.bidirectional ? 2 : 1, in = x.size(-1);
  // Every matrix and bias within 1 / sqrt(hidden).
  const NetworkBody::Fans fans{static_cast<double>(hidden), static_cast<double>(hidden)};
  const auto parameter = [&](const char* what, const std::vector<int64_t>& shape) {
    return NetworkBody::inner(body.parameter(name + what, shape, Init::fan_in_uniform(), fans));
  };
  dais::Values inputs{NetworkBody::inner(x),
                      parameter(".weight_input", {directions, gates * hidden, in}),
                      parameter(".weight_state", {directions, gates * hidden, hidden}),
                      parameter(".bias", {directions, 2 * gates * hidden})};
  cell.hidden_size = hidden;
  cell.direction = options.bidirectional ? "bidirectional" : "forward";
  const Value y = body.add(std::move(cell), std::move(inputs), name);
  if (!options.bidirectional) return squeeze(y, 1);
  return reshape(transpose(y, {0, 2, 1, 3}), {0, 0, 2 * hidden});
}

template <typename Cell>
Value recurrent(Value x, int64_t hidden, int64_t gates, const Cell& cell,
                const RecurrentOptions& options, const char* kind) {
  NetworkBody& body = NetworkBody::of(x);
  if (x.rank() != 3 || hidden <= 0 || options.layers <= 0)
    throw Error(Code::invalid_argument,
                std::string(kind) +
                    " needs an input [batch, length, width], a positive hidden size "
                    "and at least one layer",
                body.prefix);
  const std::string name = body.layer_name(options.name, kind);
  if (!options.time_first) x = transpose(x, {1, 0, 2});
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    if (layer > 0) x = dropout(x, options.dropout);
    x = recurrent_layer(x, hidden, gates, cell, options, name + "." + std::to_string(layer));
  }
  return options.time_first ? x : transpose(x, {1, 0, 2});
}

}  // namespace

Value lstm(Value x, int64_t hidden, const RecurrentOptions& options) {
  return recurrent(x, hidden, 4, LSTM{}, options, "lstm");
}

Value gru(Value x, int64_t hidden, const RecurrentOptions& options) {
  return recurrent(x, hidden, 3, GRU{.linear_before_reset = true}, options, "gru");
}

Value attention(Value query, Value key, Value value, const AttentionOptions& options) {
  NetworkBody& body = NetworkBody::of(query);
  if (options.heads <= 0 || query.size(-1) % options.heads != 0)
    throw Error(Code::invalid_argument,
                std::to_string(options.heads) + " heads do not divide a width of " +
                    std::to_string(query.size(-1)),
                body.prefix);
  dais::Values inputs{NetworkBody::inner(query), NetworkBody::inner(key),
                      NetworkBody::inner(value)};
  if (options.mask) inputs.push_back(NetworkBody::inner(*options.mask));
  return body.add(
      Attention{
          .is_causal = options.causal, .kv_num_heads = options.heads, .q_num_heads = options.heads},
      std::move(inputs));
}

namespace {

struct TransformerParts {
  const TransformerOptions& options;

  LinearOptions matrix(const char* name, bool joins_residual) const {
    LinearOptions out{.init = options.init, .name = name};
    if (joins_residual && options.residual_init) out.init = options.residual_init;
    if (out.init) out.bias_init = Init::constant(0);
    return out;
  }

  Value attend(Value x) const {
    const int64_t width = x.size(-1);
    const Value joined = linear(x, 3 * width, matrix("attention.qkv", false));
    const std::vector<Value> parts = split(joined, -1, {width, width, width});
    const Value y =
        attention(parts[0], parts[1], parts[2],
                  {.heads = options.heads, .causal = options.causal, .mask = options.mask});
    return dropout(linear(y, width, matrix("attention.out", true)), options.dropout);
  }

  Value feed(Value x) const {
    const int64_t width = x.size(-1);
    const int64_t hidden = options.hidden > 0 ? options.hidden : 4 * width;
    const Value y = gelu(linear(x, hidden, matrix("feed.in", false)));
    return dropout(linear(y, width, matrix("feed.out", true)), options.dropout);
  }
};

}  // namespace

Value transformer_block(Value x, const TransformerOptions& options) {
  const TransformerParts parts{options};
  const NormOptions first{.epsilon = options.epsilon, .name = "norm1"};
  const NormOptions second{.epsilon = options.epsilon, .name = "norm2"};
  if (options.norm_first) {
    x = x + parts.attend(layer_norm(x, first));
    return x + parts.feed(layer_norm(x, second));
  }
  x = layer_norm(x + parts.attend(x), first);
  return layer_norm(x + parts.feed(x), second);
}

}  // namespace dais::nn
