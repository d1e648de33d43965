#include "ops/rnn/rnn.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/gemm_loop.h"
#include "ops/rnn/cells.h"
#include "ops/wide.h"

namespace dais {
namespace {

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

template <typename S>
void infer(Inference& c) {
  const auto& attrs = c.attrs<S>();
  for (size_t i = 0; i < 3; ++i) c.set(i, c.dtype(0));
  const Dim directions = directions_of(c, attrs.direction);
  const Dims& x = c.shape(0);
  c.require(x.size() == 3, "X must have three axes");
  c.require(attrs.layout == 0 || attrs.layout == 1, "layout must be 0 or 1");
  const Dim hidden = attrs.hidden_size > 0 ? Dim(attrs.hidden_size) : c.shape(2).back();
  const bool batch_first = attrs.layout == 1;
  const Dim& length = x[batch_first ? 1 : 0];
  const Dim& batch = x[batch_first ? 0 : 1];
  c.set(0, c.dtype(0),
        batch_first ? Dims{batch, length, directions, hidden}
                    : Dims{length, directions, batch, hidden});
  for (size_t i : {1, 2})
    c.set(i, c.dtype(0),
          batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden});
}

struct Sizes {
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
Sizes sizes_of(const Call& c, const S& attrs) {
  const Tensor &x = c.in(0), &w = c.in(1), &r = c.in(2);
  c.require(x.rank() == 3 && w.rank() == 3 && r.rank() == 3, "X, W and R must have three axes");
  Sizes s;
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

std::vector<int64_t> lengths_of(const Call& c, const Sizes& s) {
  if (!c.has(kLengths)) return std::vector<int64_t>(static_cast<size_t>(s.batch), s.length);
  auto lengths = c.in(kLengths).to_ints();
  c.require(std::ssize(lengths) == s.batch, "sequence_lens must have one number per example");
  for (const int64_t length : lengths)
    c.require(length >= 0 && length <= s.length, "sequence_lens is out of range");
  return lengths;
}

Direction load_direction(const Call& c, const Sizes& s, int64_t d, const GateActivation* gates) {
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
std::vector<double> load_state(const Call& c, size_t input, const Sizes& s, int64_t d) {
  std::vector<double> out(static_cast<size_t>(s.batch * s.hidden), 0.0);
  if (!c.has(input)) return out;
  const WideView<double> all(c.in(input));
  for (int64_t n = 0; n < s.batch; ++n)
    std::copy_n(all.data() + s.state_row(d, n) * s.hidden, s.hidden, out.begin() + n * s.hidden);
  return out;
}

struct Outputs {
  std::vector<double> y, h, c;
};

template <typename S>
void run_direction(const Call& c, const S& attrs, const Sizes& s, int64_t d,
                   const Direction& direction, const WideView<double>& x, Outputs& out) {
  const bool reverse = attrs.direction == "reverse" || d == 1;
  const int64_t rows = s.gates * s.hidden;
  const auto lengths = lengths_of(c, s);
  std::vector<double> products(static_cast<size_t>(s.length * s.batch * rows));
  gemm_loop<double>({.rows = s.length * s.batch,
                     .columns = rows,
                     .depth = s.input,
                     .a_row = s.input,
                     .b_row = rows},
                    x.data(), direction.w.data(), products.data());
  auto h = load_state(c, kInitialH, s, d), cell = load_state(c, kInitialC, s, d);
  std::vector<double> recurrent(static_cast<size_t>(s.batch * rows));
  for (int64_t t = 0; t < s.length; ++t) {
    gemm_loop<double>(
        {.rows = s.batch, .columns = rows, .depth = s.hidden, .a_row = s.hidden, .b_row = rows},
        h.data(), direction.r.data(), recurrent.data());
    for (int64_t n = 0; n < s.batch; ++n) {
      const int64_t length = lengths[static_cast<size_t>(n)];
      if (t >= length) continue;
      const int64_t step = reverse ? length - 1 - t : t;
      double* state = h.data() + n * s.hidden;
      step_cell(Traits<S>::kind, direction, Traits<S>::flag(attrs),
                products.data() + s.x_row(step, n) * rows, recurrent.data() + n * rows, state,
                cell.data() + n * s.hidden);
      std::copy_n(state, s.hidden, out.y.begin() + s.y_row(step, d, n) * s.hidden);
    }
  }
  for (int64_t n = 0; n < s.batch; ++n) {
    const int64_t to = s.state_row(d, n) * s.hidden;
    std::copy_n(h.begin() + n * s.hidden, s.hidden, out.h.begin() + to);
    std::copy_n(cell.begin() + n * s.hidden, s.hidden, out.c.begin() + to);
  }
}

template <typename S>
void reference(Call& c) {
  const auto& attrs = c.attrs<S>();
  const Sizes s = sizes_of(c, attrs);
  auto names = attrs.activations;
  if (names.empty())
    for (int64_t d = 0; d < s.directions; ++d)
      for (auto& name : Traits<S>::activations()) names.push_back(name);
  const size_t each = Traits<S>::activations().size();
  const auto gates =
      gate_activations(names, attrs.activation_alpha, attrs.activation_beta,
                       static_cast<double>(attrs.clip), each * static_cast<size_t>(s.directions));
  const WideView<double> x(c.in(0));
  Outputs out;
  out.y.assign(static_cast<size_t>(s.y_shape().elements()), 0.0);
  out.h.assign(static_cast<size_t>(s.state_shape().elements()), 0.0);
  out.c = out.h;
  for (int64_t d = 0; d < s.directions; ++d)
    run_direction(c, attrs, s, d,
                  load_direction(c, s, d, gates.data() + static_cast<size_t>(d) * each), x, out);
  const auto emit = [&](size_t i, const Shape& shape, const std::vector<double>& values) {
    if (i < c.outputs()) store_wide(c.out(i, shape), 0, values.data(), std::ssize(values));
  };
  emit(0, s.y_shape(), out.y);
  emit(1, s.state_shape(), out.h);
  emit(2, s.state_shape(), out.c);
}

template <typename S>
Cost cost(const Node& node) {
  const auto &x = node.in[0]->type.shape, &w = node.in[1]->type.shape;
  const auto& r = node.in[2]->type.shape;
  if (!x || !w || !r || x->size() != 3) return {};
  const auto steps = product(*x, 0, 2).constant();
  const auto each = (product(*w, 0, w->size()) + product(*r, 0, r->size())).constant();
  if (!steps || !each) return {};
  return {.flops = 2 * static_cast<double>(*steps) * static_cast<double>(*each)};
}

/// The first versions said by output_sequence whether Y is wanted; its name says so too.
template <typename S>
Values import_old(OnnxImport& c) {
  return c.emit(c.attrs<S>(), c.in);
}

}  // namespace

const Op RNN::op{
    .name = "rnn",
    .attrs = &AttrsOf<RNN>::info,
    .infer = infer<RNN>,
    .reference = reference<RNN>,
    .cost = cost<RNN>,
    .onnx = {{"RNN", 7}, {.type = "RNN", .until = 6, .import = import_old<RNN>}},
};
const Op GRU::op{
    .name = "gru",
    .attrs = &AttrsOf<GRU>::info,
    .infer = infer<GRU>,
    .reference = reference<GRU>,
    .cost = cost<GRU>,
    .onnx = {{"GRU", 7}, {.type = "GRU", .until = 6, .import = import_old<GRU>}},
};
const Op LSTM::op{
    .name = "lstm",
    .attrs = &AttrsOf<LSTM>::info,
    .infer = infer<LSTM>,
    .reference = reference<LSTM>,
    .cost = cost<LSTM>,
    .onnx = {{"LSTM", 7}, {.type = "LSTM", .until = 6, .import = import_old<LSTM>}},
};

namespace ops {
void define_rnn(OpRegistry& registry) {
  for (const Op* op : {&RNN::op, &GRU::op, &LSTM::op}) registry.add(*op);
}
}  // namespace ops
}  // namespace dais
