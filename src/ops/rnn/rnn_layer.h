#pragma once

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/gemm_loop.h"
#include "ops/rnn/cells.h"
#include "ops/rnn/rnn.h"
#include "ops/wide.h"

/// What the references of recurrent layers and of their gradients share.
namespace dais {

template <typename S>
struct Traits;
template <>
struct Traits<RNN> {
  static constexpr CellKind kind = CellKind::rnn;
  static constexpr int64_t gates = 1;
  static std::vector<std::string> activations() { return {"Tanh"}; }
  static bool flag(const RNN&) { return false; }
};
template <>
struct Traits<GRU> {
  static constexpr CellKind kind = CellKind::gru;
  static constexpr int64_t gates = 3;
  static std::vector<std::string> activations() { return {"Sigmoid", "Tanh"}; }
  static bool flag(const GRU& attrs) { return attrs.linear_before_reset; }
};
template <>
struct Traits<LSTM> {
  static constexpr CellKind kind = CellKind::lstm;
  static constexpr int64_t gates = 4;
  static std::vector<std::string> activations() { return {"Sigmoid", "Tanh", "Tanh"}; }
  static bool flag(const LSTM& attrs) { return attrs.input_forget; }
};

constexpr size_t kLengths = 4, kInitialH = 5, kInitialC = 6, kPeepholes = 7;

template <typename Context>
int64_t directions_of(const Context& c, const std::string& direction) {
  if (direction == "bidirectional") return 2;
  if (direction != "forward" && direction != "reverse")
    c.fail("direction '" + direction + "' is not forward, reverse or bidirectional");
  return 1;
}

/// Sizes of a layer, and where its rows lie.
struct LayerSizes {
  int64_t length = 0, batch = 0, input = 0, hidden = 0, directions = 1, gates = 1;
  bool batch_first = false;

  int64_t x_row(int64_t step, int64_t n) const {
    return batch_first ? n * length + step : step * batch + n;
  }
  int64_t y_row(int64_t step, int64_t d, int64_t n) const {
    return batch_first ? (n * length + step) * directions + d : (step * directions + d) * batch + n;
  }
  int64_t state_row(int64_t d, int64_t n) const {
    return batch_first ? n * directions + d : d * batch + n;
  }
  Shape y_shape() const {
    return batch_first ? Shape{batch, length, directions, hidden}
                       : Shape{length, directions, batch, hidden};
  }
  Shape state_shape() const {
    return batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  }
};

template <typename S>
LayerSizes layer_sizes(const Call& c, const S& attrs) {
  const Tensor &x = c.in(0), &w = c.in(1), &r = c.in(2);
  c.require(x.rank() == 3 && w.rank() == 3 && r.rank() == 3, "X, W and R must have three axes");
  LayerSizes s;
  s.batch_first = attrs.layout == 1;
  s.length = x.shape()[s.batch_first ? 1 : 0];
  s.batch = x.shape()[s.batch_first ? 0 : 1];
  s.input = x.shape()[2];
  s.hidden = r.shape()[2];
  s.directions = directions_of(c, attrs.direction);
  s.gates = Traits<S>::gates;
  c.require(attrs.hidden_size == 0 || attrs.hidden_size == s.hidden,
            "hidden_size does not match R");
  const int64_t rows = s.gates * s.hidden;
  c.require(
      w.shape() == Shape{s.directions, rows, s.input} &&
          r.shape() == Shape{s.directions, rows, s.hidden},
      "W must be [directions, gates * hidden, input], R [directions, gates * hidden, hidden]");
  c.require(!c.has(3) || c.in(3).shape() == Shape{s.directions, 2 * rows},
            "B must be [directions, 2 * gates * hidden]");
  for (const size_t i : {kInitialH, kInitialC})
    c.require(!c.has(i) || c.in(i).shape() == s.state_shape(),
              "initial states must be [directions, batch, hidden] (batch first with layout 1)");
  c.require(!c.has(kPeepholes) || c.in(kPeepholes).shape() == Shape{s.directions, 3 * s.hidden},
            "P must be [directions, 3 * hidden]");
  return s;
}

inline std::vector<int64_t> lengths_of(const Call& c, const LayerSizes& s) {
  if (!c.has(kLengths)) return std::vector<int64_t>(static_cast<size_t>(s.batch), s.length);
  auto lengths = c.in(kLengths).to_ints();
  c.require(std::ssize(lengths) == s.batch, "sequence_lens must have one number per example");
  for (const int64_t length : lengths)
    c.require(length >= 0 && length <= s.length, "sequence_lens is out of range");
  return lengths;
}

inline Direction load_direction(const Call& c, const LayerSizes& s, int64_t d,
                                const GateActivation* gates) {
  const int64_t rows = s.gates * s.hidden;
  Direction out{.w = {},
                .r = {},
                .w_bias = {},
                .r_bias = {},
                .peepholes = {},
                .activations = gates,
                .hidden = s.hidden};
  const auto turned = [&](const Tensor& tensor, int64_t columns) {
    const WideView<double> values(tensor);
    std::vector<double> to(static_cast<size_t>(rows * columns));
    transpose_loop(rows, columns, values.data() + d * rows * columns, to.data());
    return to;
  };
  out.w = turned(c.in(1), s.input);
  out.r = turned(c.in(2), s.hidden);
  out.w_bias.assign(static_cast<size_t>(rows), 0.0);
  out.r_bias = out.w_bias;
  if (c.has(3)) {
    const WideView<double> bias(c.in(3));
    std::copy_n(bias.data() + 2 * d * rows, rows, out.w_bias.begin());
    std::copy_n(bias.data() + (2 * d + 1) * rows, rows, out.r_bias.begin());
  }
  if (c.has(kPeepholes)) {
    const WideView<double> all(c.in(kPeepholes));
    out.peepholes.assign(all.data() + 3 * d * s.hidden, all.data() + 3 * (d + 1) * s.hidden);
  }
  return out;
}

/// State rows of one direction, [batch, hidden].
inline std::vector<double> load_state(const Call& c, size_t input, const LayerSizes& s, int64_t d) {
  std::vector<double> out(static_cast<size_t>(s.batch * s.hidden), 0.0);
  if (!c.has(input)) return out;
  const WideView<double> all(c.in(input));
  for (int64_t n = 0; n < s.batch; ++n)
    std::copy_n(all.data() + s.state_row(d, n) * s.hidden, s.hidden, out.begin() + n * s.hidden);
  return out;
}

/// The gates' activations of all directions.
template <typename S, typename Attrs>
std::vector<GateActivation> layer_activations(const Attrs& attrs, int64_t directions) {
  const auto usual = Traits<S>::activations();
  auto names = attrs.activations;
  if (names.empty())
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), usual.begin(), usual.end());
  return gate_activations(names, attrs.activation_alpha, attrs.activation_beta,
                          static_cast<double>(attrs.clip),
                          usual.size() * static_cast<size_t>(directions));
}

/// Numbers kept of each gate for the gradient: GRU also the recurrent product that the reset gate
/// scales, when it does.
template <typename S>
int64_t kept_width(const S& attrs, int64_t hidden) {
  if constexpr (std::is_same_v<S, GRU>) return (attrs.linear_before_reset ? 4 : 3) * hidden;
  return Traits<S>::gates * hidden;
}

}  // namespace dais
