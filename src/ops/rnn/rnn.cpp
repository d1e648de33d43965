#include "ops/rnn/rnn.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/gemm_loop.h"
#include "ops/rnn/cells.h"
#include "ops/rnn/rnn_backward.h"
#include "ops/rnn/rnn_layer.h"
#include "ops/wide.h"

namespace dais {
namespace {

template <typename S>
void infer(Inference& c) {
  const auto& attrs = c.attrs<S>();
  for (size_t i = 0; i < 5; ++i) c.set(i, c.dtype(0));
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
  // What the gradient needs; see rnn.h.
  c.set(3, c.dtype(0), Dims{directions, length, batch, Dim(kept_width(attrs, 1)) * hidden});
  c.set(4, c.dtype(0), Dims{directions, length, batch, hidden});
}

struct Outputs {
  std::vector<double> y, h, c;
  std::vector<double> gates, cells;  ///< empty unless asked for
};

template <typename S>
void run_direction(const Call& c, const S& attrs, const LayerSizes& s, int64_t d,
                   const Direction& direction, const WideView<double>& x, Outputs& out) {
  const bool reverse = attrs.direction == "reverse" || d == 1;
  const int64_t rows = s.gates * s.hidden, width = kept_width(attrs, s.hidden);
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
      const int64_t place = (d * s.length + step) * s.batch + n;
      double* gates = out.gates.empty() ? nullptr : out.gates.data() + place * width;
      step_cell(Traits<S>::kind, direction, Traits<S>::flag(attrs),
                products.data() + s.x_row(step, n) * rows, recurrent.data() + n * rows, state,
                cell.data() + n * s.hidden, gates);
      if (!out.cells.empty())
        std::copy_n(cell.begin() + n * s.hidden, s.hidden, out.cells.begin() + place * s.hidden);
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
  const LayerSizes s = layer_sizes(c, attrs);
  const size_t each = Traits<S>::activations().size();
  const auto gates = layer_activations<S>(attrs, s.directions);
  const WideView<double> x(c.in(0));
  Outputs out;
  out.y.assign(static_cast<size_t>(s.y_shape().elements()), 0.0);
  out.h.assign(static_cast<size_t>(s.state_shape().elements()), 0.0);
  out.c = out.h;
  const int64_t places = s.directions * s.length * s.batch, width = kept_width(attrs, s.hidden);
  if (c.outputs() > 3) out.gates.assign(static_cast<size_t>(places * width), 0.0);
  if (c.outputs() > 4) out.cells.assign(static_cast<size_t>(places * s.hidden), 0.0);
  for (int64_t d = 0; d < s.directions; ++d)
    run_direction(c, attrs, s, d,
                  load_direction(c, s, d, gates.data() + static_cast<size_t>(d) * each), x, out);
  const auto emit = [&](size_t i, const Shape& shape, const std::vector<double>& values) {
    if (i < c.outputs()) store_wide(c.out(i, shape), 0, values.data(), std::ssize(values));
  };
  emit(0, s.y_shape(), out.y);
  emit(1, s.state_shape(), out.h);
  emit(2, s.state_shape(), out.c);
  emit(3, Shape{s.directions, s.length, s.batch, width}, out.gates);
  emit(4, Shape{s.directions, s.length, s.batch, s.hidden}, out.cells);
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
    .gradient = gradient_rnn,
    .cost = cost<RNN>,
    .onnx = {{"RNN", 7}, {.type = "RNN", .until = 6, .import = import_old<RNN>}},
};
const Op GRU::op{
    .name = "gru",
    .attrs = &AttrsOf<GRU>::info,
    .infer = infer<GRU>,
    .reference = reference<GRU>,
    .gradient = gradient_gru,
    .cost = cost<GRU>,
    .onnx = {{"GRU", 7}, {.type = "GRU", .until = 6, .import = import_old<GRU>}},
};
const Op LSTM::op{
    .name = "lstm",
    .attrs = &AttrsOf<LSTM>::info,
    .infer = infer<LSTM>,
    .reference = reference<LSTM>,
    .gradient = gradient_lstm,
    .cost = cost<LSTM>,
    .onnx = {{"LSTM", 7}, {.type = "LSTM", .until = 6, .import = import_old<LSTM>}},
};

namespace ops {
void define_rnn(OpRegistry& registry) {
  for (const Op* op :
       {&RNN::op, &GRU::op, &LSTM::op, &RNNBackward::op, &GRUBackward::op, &LSTMBackward::op})
    registry.add(*op);
}
}  // namespace ops
}  // namespace dais
