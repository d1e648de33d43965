#include "nn/parts.h"

namespace dais::nn {
namespace {

/// The mean over time: of all steps, or of those that `used` [batch, length] marks.
Value mean_over_time(Value x, const std::optional<Value>& used) {
  if (!used) return mean(x, {1});
  const Value weight = unsqueeze(to_float(*used), -1);
  return sum(x * weight, {1}) / maximum(sum(weight, {1}), 1);
}

}  // namespace

Network SequenceClassifier::build(uint64_t seed) const {
  check_flags(*this);
  Network net(gated ? "gru" : "lstm", seed);
  std::optional<Value> used;
  const auto read = [&] {
    if (features > 0) return net.input("features", {"batch", "length", features});
    const Value tokens = net.tokens();
    used = negate(equals(tokens, 0));
    return embedding(tokens, vocab, width, {.name = "embedding"});
  };
  const RecurrentOptions options{
      .layers = layers, .bidirectional = bidirectional, .dropout = dropout, .name = "recurrent"};
  Value x = nn::dropout(read(), dropout);
  x = gated ? gru(x, hidden, options) : lstm(x, hidden, options);
  x = nn::dropout(mean_over_time(x, used), dropout);
  return finish(std::move(net), "classification", linear(x, classes, {.name = "head"}));
}

Network LstmLanguageModel::build(uint64_t seed) const {
  check_flags(*this);
  Network net("lstm-lm", seed);
  Value x = embedding(net.tokens(), vocab, width, {.name = "embedding"});
  x = lstm(nn::dropout(x, dropout), hidden,
           {.layers = layers, .dropout = dropout, .name = "recurrent"});
  return finish(std::move(net), "next_token",
                linear(nn::dropout(x, dropout), vocab, {.name = "head"}));
}

Network DeepSpeech::build(uint64_t seed) const {
  check_flags(*this);
  Network net("deepspeech2", seed);
  Value x = net.input("features", {"batch", 1, features, "time"});
  const auto unit = [&](const Sizes& kernel, const Sizes& stride, const Sizes& padding,
                        const std::string& number) {
    return relu(conv_norm(
        x, channels,
        {.conv = {.kernel = kernel, .stride = stride, .padding = padding, .name = "conv" + number},
         .norm = {.name = "norm" + number}}));
  };
  x = unit({41, 11}, {2, 2}, {20, 5}, "1");
  x = unit({21, 11}, {2, 1}, {10, 5}, "2");
  const int64_t joined = channels * x.size(2);
  x = reshape(transpose(x, {3, 0, 1, 2}), {0, 0, joined});
  x = gru(x, hidden,
          {.layers = layers,
           .bidirectional = true,
           .dropout = dropout,
           .time_first = true,
           .name = "recurrent"});
  x = linear(nn::dropout(x, dropout), classes, {.name = "head"});
  return finish(std::move(net), "transcription", transpose(x, {1, 0, 2}));
}

}  // namespace dais::nn
