// Gradients of recurrent layers. Back through time goes only what each step hands to the one
// before; all else are products over all steps at once.
#include "ops/rnn/rnn_backward.h"

#include <algorithm>

#include "ops/concat/concat.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gather/gather.h"
#include "ops/gradient.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/rnn/rnn_layer.h"
#include "ops/split/split.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

enum In : size_t { kDy, kDh, kDc, kR, kLens, kH0, kC0, kPeeps, kY, kGates, kCells };

template <RecurrentCell cell>
using LayerOf = std::conditional_t<cell == RecurrentCell::rnn, RNN,
                                   std::conditional_t<cell == RecurrentCell::gru, GRU, LSTM>>;

template <RecurrentCell cell>
void infer(Inference& c) {
  const auto& attrs = c.attrs<RecurrentBackward<cell>>();
  const size_t outputs = cell == RecurrentCell::lstm ? 5 : cell == RecurrentCell::gru ? 4 : 3;
  for (size_t i = 0; i < outputs; ++i) c.set(i, c.dtype(kR));
  const Dims &r = c.shape(kR), &y = c.shape(kY);
  c.require(r.size() == 3 && y.size() == 4, "R must have three axes, Y four");
  const bool batch_first = attrs.layout == 1;
  const Dim &batch = y[batch_first ? 0 : 2], &length = y[batch_first ? 1 : 0];
  const Dims states{r[0], length, batch, r[2]};
  const Dims first = batch_first ? Dims{batch, r[0], r[2]} : Dims{r[0], batch, r[2]};
  c.set(0, c.dtype(kR), Dims{r[0], length, batch, r[1]});
  c.set(1, c.dtype(kR), first);
  c.set(2, c.dtype(kR), states);
  c.set(3, c.dtype(kR), cell == RecurrentCell::lstm ? first : states);
  c.set(4, c.dtype(kR), Dims{r[0], Dim(3) * r[2]});
}

/// One direction of a layer on the way back.
template <RecurrentCell cell>
class Back {
 public:
  Back(const Call& c, const RecurrentBackward<cell>& attrs, const LayerSizes& s, int64_t d,
       const GateActivation* activations, std::vector<std::vector<double>>& out)
      : attrs_(attrs),
        s_(s),
        d_(d),
        activations_(activations),
        reverse_(attrs.direction == "reverse" || d == 1),
        r_(c.in(kR)),
        y_(c.in(kY)),
        dy_(c.in(c.has(kDy) ? kDy : kR)),
        gates_(c.in(c.has(kGates) ? kGates : kR)),
        cells_(c.in(c.has(kCells) ? kCells : kR)),
        peepholes_(c.in(c.has(kPeeps) ? kPeeps : kR)),
        has_dy_(c.has(kDy)),
        has_peepholes_(c.has(kPeeps)),
        out_(out) {
    h0_ = state(c, kH0);
    c0_ = state(c, kC0);
    dh_ = state(c, kDh);
    dc_ = state(c, kDc);
    width_ = s.gates * s.hidden;
    kept_ = cell == RecurrentCell::gru && attrs.flag ? width_ + s.hidden : width_;
    slopes_.resize(static_cast<size_t>(s.batch * width_));
    carried_.resize(static_cast<size_t>(s.batch * s.hidden));
  }

  void run(const std::vector<int64_t>& lengths) {
    for (int64_t t = s_.length; t-- > 0;) {
      std::fill(slopes_.begin(), slopes_.end(), 0.0);
      std::copy(dh_.begin(), dh_.end(), carried_.begin());
      for (int64_t n = 0; n < s_.batch; ++n)
        if (const int64_t length = lengths[static_cast<size_t>(n)]; t < length) {
          const int64_t step = reverse_ ? length - 1 - t : t;
          gates_of(n, t, step);
        }
      if (cell == RecurrentCell::gru && !attrs_.flag) reset_gates(lengths, t);
      hand_back(lengths, t);
    }
    for (int64_t n = 0; n < s_.batch; ++n) {
      const int64_t to = s_.state_row(d_, n) * s_.hidden;
      std::copy_n(dh_.begin() + n * s_.hidden, s_.hidden, out_[1].begin() + to);
      if (cell == RecurrentCell::lstm)
        std::copy_n(dc_.begin() + n * s_.hidden, s_.hidden, out_[3].begin() + to);
    }
  }

 private:
  std::vector<double> state(const Call& c, size_t input) const {
    std::vector<double> out(static_cast<size_t>(s_.batch * s_.hidden), 0.0);
    if (!c.has(input)) return out;
    const WideView<double> all(c.in(input));
    for (int64_t n = 0; n < s_.batch; ++n)
      std::copy_n(all.data() + s_.state_row(d_, n) * s_.hidden, s_.hidden,
                  out.begin() + n * s_.hidden);
    return out;
  }

  int64_t place(int64_t step, int64_t n) const { return (d_ * s_.length + step) * s_.batch + n; }
  int64_t before(int64_t step) const { return reverse_ ? step + 1 : step - 1; }

  void gates_of(int64_t n, int64_t t, int64_t step) {
    const int64_t h = s_.hidden;
    const double* past =
        t == 0 ? h0_.data() + n * h : y_.data() + s_.y_row(before(step), d_, n) * h;
    double* states = out_[2].data() + place(step, n) * h;
    double* slopes = slopes_.data() + n * width_;
    for (int64_t i = 0; i < h; ++i) {
      states[i] = past[i];
      double dh = dh_[static_cast<size_t>(n * h + i)];
      if (has_dy_) dh += dy_[s_.y_row(step, d_, n) * h + i];
      double& carried = carried_[static_cast<size_t>(n * h + i)];
      if constexpr (cell == RecurrentCell::rnn) {
        slopes[i] = dh * activations_[0].slope(y_[s_.y_row(step, d_, n) * h + i]);
        carried = 0;
      } else if constexpr (cell == RecurrentCell::gru) {
        gru_cell(n, step, i, dh, past[i], slopes, carried);
      } else {
        lstm_cell(n, t, step, i, dh, slopes);
        carried = 0;
      }
    }
    std::copy_n(slopes, width_, out_[0].begin() + place(step, n) * width_);
  }

  void gru_cell(int64_t n, int64_t step, int64_t i, double dh, double past, double* slopes,
                double& carried) {
    const int64_t h = s_.hidden;
    const double* gates = gates_.data() + place(step, n) * kept_;
    const double update = gates[i], reset = gates[h + i], fresh = gates[2 * h + i];
    const double back = dh * (1 - update) * activations_[1].slope(fresh);
    slopes[i] = dh * (past - fresh) * activations_[0].slope(update);
    slopes[2 * h + i] = back;
    carried = dh * update;
    double& extra = out_[3][static_cast<size_t>(place(step, n) * h + i)];
    extra = attrs_.flag ? back * reset : reset * past;
    if (attrs_.flag) slopes[h + i] = back * gates[3 * h + i] * activations_[0].slope(reset);
  }

  void lstm_cell(int64_t n, int64_t t, int64_t step, int64_t i, double dh, double* slopes) {
    const int64_t h = s_.hidden;
    const double* gates = gates_.data() + place(step, n) * kept_;
    const double input = gates[i], output = gates[h + i], forget = gates[2 * h + i],
                 fresh = gates[3 * h + i];
    const double now = cells_[place(step, n) * h + i];
    const double past =
        t == 0 ? c0_[static_cast<size_t>(n * h + i)] : cells_[place(before(step), n) * h + i];
    const auto peephole = [&](int64_t gate) {
      return has_peepholes_ ? peepholes_[(3 * d_ + gate) * h + i] : 0;
    };
    const GateActivation &f = activations_[0], &g = activations_[1], &squash = activations_[2];
    const double shown = squash(now);
    slopes[h + i] = dh * shown * f.slope(output);
    double& dc = dc_[static_cast<size_t>(n * h + i)];
    const double whole = dc + dh * output * squash.slope(shown) + slopes[h + i] * peephole(1);
    slopes[i] = whole * (attrs_.flag ? fresh - past : fresh) * f.slope(input);
    slopes[2 * h + i] = attrs_.flag ? 0 : whole * past * f.slope(forget);
    slopes[3 * h + i] = whole * input * g.slope(fresh);
    dc = whole * forget + slopes[i] * peephole(0) + slopes[2 * h + i] * peephole(2);
    double* peeps = out_[4].data() + 3 * d_ * h + i;
    peeps[0] += slopes[i] * past;
    peeps[h] += slopes[h + i] * now;
    peeps[2 * h] += slopes[2 * h + i] * past;
  }

  const double* weights() const { return r_.data() + d_ * width_ * s_.hidden; }

  /// The reset gate scales the state before it meets R: its gradient comes through that product.
  void reset_gates(const std::vector<int64_t>& lengths, int64_t t) {
    const int64_t h = s_.hidden;
    std::vector<double> scaled(static_cast<size_t>(s_.batch * h));
    gemm_loop<double>({.rows = s_.batch, .columns = h, .depth = h, .a_row = width_, .b_row = h},
                      slopes_.data() + 2 * h, weights() + 2 * h * h, scaled.data());
    for (int64_t n = 0; n < s_.batch; ++n) {
      const int64_t length = lengths[static_cast<size_t>(n)];
      if (t >= length) continue;
      const int64_t at = place(reverse_ ? length - 1 - t : t, n);
      for (int64_t i = 0; i < h; ++i) {
        const double reset = gates_[at * kept_ + h + i],
                     past = out_[2][static_cast<size_t>(at * h + i)];
        const double slope = scaled[static_cast<size_t>(n * h + i)];
        slopes_[static_cast<size_t>(n * width_ + h + i)] =
            slope * past * activations_[0].slope(reset);
        carried_[static_cast<size_t>(n * h + i)] += slope * reset;
        out_[0][static_cast<size_t>(at * width_ + h + i)] =
            slopes_[static_cast<size_t>(n * width_ + h + i)];
      }
    }
  }

  /// What the step before gets: through R, and past the gates.
  void hand_back(const std::vector<int64_t>& lengths, int64_t t) {
    const int64_t h = s_.hidden;
    int64_t depth = width_;
    if constexpr (cell == RecurrentCell::gru) {
      if (!attrs_.flag) depth = 2 * h;
      for (int64_t n = 0; attrs_.flag && n < s_.batch; ++n)
        if (const int64_t length = lengths[static_cast<size_t>(n)]; t < length)
          std::copy_n(out_[3].begin() + place(reverse_ ? length - 1 - t : t, n) * h, h,
                      slopes_.begin() + n * width_ + 2 * h);
    }
    std::vector<double> through(static_cast<size_t>(s_.batch * h));
    gemm_loop<double>({.rows = s_.batch, .columns = h, .depth = depth, .a_row = width_, .b_row = h},
                      slopes_.data(), weights(), through.data());
    for (size_t i = 0; i < through.size(); ++i) dh_[i] = carried_[i] + through[i];
  }

  const RecurrentBackward<cell>& attrs_;
  const LayerSizes& s_;
  int64_t d_;
  const GateActivation* activations_;
  bool reverse_;
  WideView<double> r_, y_, dy_, gates_, cells_, peepholes_;
  bool has_dy_, has_peepholes_;
  std::vector<std::vector<double>>& out_;
  std::vector<double> h0_, c0_, dh_, dc_, slopes_, carried_;
  int64_t width_ = 0, kept_ = 0;
};

template <RecurrentCell cell>
LayerSizes sizes_of(const Call& c, const RecurrentBackward<cell>& attrs) {
  const Tensor &r = c.in(kR), &y = c.in(kY);
  c.require(r.rank() == 3 && y.rank() == 4, "R must have three axes, Y four");
  LayerSizes s;
  s.batch_first = attrs.layout == 1;
  s.length = y.shape()[s.batch_first ? 1 : 0];
  s.batch = y.shape()[s.batch_first ? 0 : 2];
  s.hidden = r.shape()[2];
  s.directions = directions_of(c, attrs.direction);
  s.gates = Traits<LayerOf<cell>>::gates;
  c.require(
      r.shape() == Shape{s.directions, s.gates * s.hidden, s.hidden} && y.shape() == s.y_shape(),
      "R and Y do not match");
  for (const size_t i : {kDy})
    c.require(!c.has(i) || c.in(i).shape() == y.shape(), "dY is not of the shape of Y");
  for (const size_t i : {kDh, kDc, kH0, kC0})
    c.require(!c.has(i) || c.in(i).shape() == s.state_shape(), "a state has the wrong shape");
  const int64_t places = s.directions * s.length * s.batch;
  const bool more = cell == RecurrentCell::gru && attrs.flag;
  c.require(
      cell == RecurrentCell::rnn || c.in(kGates).elements() == places * (s.gates + more) * s.hidden,
      "the kept gates do not match");
  c.require(cell != RecurrentCell::lstm || c.in(kCells).elements() == places * s.hidden,
            "the kept cells do not match");
  c.require(!c.has(kPeeps) || c.in(kPeeps).elements() == s.directions * 3 * s.hidden,
            "P must be [directions, 3 * hidden]");
  return s;
}

template <RecurrentCell cell>
void reference(Call& c) {
  const auto& attrs = c.attrs<RecurrentBackward<cell>>();
  const LayerSizes s = sizes_of(c, attrs);
  std::vector<int64_t> lengths(static_cast<size_t>(s.batch), s.length);
  if (c.has(kLens)) lengths = c.in(kLens).to_ints();
  c.require(std::ssize(lengths) == s.batch, "sequence_lens must have one number per example");
  for (const int64_t length : lengths)
    c.require(length >= 0 && length <= s.length, "sequence_lens is out of range");
  const auto activations = layer_activations<LayerOf<cell>>(attrs, s.directions);
  const size_t each = activations.size() / static_cast<size_t>(s.directions);
  const Shape states{s.directions, s.length, s.batch, s.hidden};
  std::vector<Shape> shapes{{s.directions, s.length, s.batch, s.gates * s.hidden},
                            s.state_shape(),
                            states,
                            cell == RecurrentCell::lstm ? s.state_shape() : states,
                            {s.directions, 3 * s.hidden}};
  std::vector<std::vector<double>> out;
  for (const Shape& shape : shapes) out.emplace_back(static_cast<size_t>(shape.elements()), 0.0);
  for (int64_t d = 0; d < s.directions; ++d)
    Back<cell>(c, attrs, s, d, activations.data() + static_cast<size_t>(d) * each, out)
        .run(lengths);
  for (size_t i = 0; i < c.outputs(); ++i)
    store_wide(c.out(i, shapes[i]), 0, out[i].data(), shapes[i].elements());
}

/// The products that turn gradients of gates into those of X, W, R and B.
template <RecurrentCell cell>
class Products {
 public:
  Products(Graph& graph, const Node& node, const Values& back, bool flag, bool batch_first)
      : g_(graph), node_(node), flag_(flag), batch_first_(batch_first) {
    const Dims& r = *node.in[2]->type.shape;
    if (!r[0].is_constant() || !r[2].is_constant())
      no_gradient(node, "the sizes of R are not known");
    directions_ = *r[0].constant();
    hidden_ = *r[2].constant();
    Value* x = node.in[0];
    if (batch_first) x = g_.add(Transpose{.perm = {1, 0, 2}}, {x});
    x_ = x;
    rows_ = g_.add(Flatten{.axis = 2}, {x});
    gates_ = by_direction(back[0]);
    states_ = by_direction(back[2]);
    if (cell == RecurrentCell::gru) extra_ = by_direction(back[3]);
  }

  /// Gradients of X, W, R and B (when there is one).
  Values all() {
    Values dx, dw, dr, db;
    for (int64_t d = 0; d < directions_; ++d) one(static_cast<size_t>(d), dx, dw, dr, db);
    Value* sum = dx[0];
    for (size_t d = 1; d < dx.size(); ++d) sum = g_.add(Add{}, {sum, dx[d]});
    sum = reshape_like(g_, sum, x_);
    if (batch_first_) sum = g_.add(Transpose{.perm = {1, 0, 2}}, {sum});
    return {sum, joined(dw), joined(dr), node_.has(3) ? joined(db) : nullptr};
  }

 private:
  /// A value [D, L, N, k] as one matrix [L N, k] for each direction.
  Values by_direction(Value* value) {
    const std::vector<int64_t> form{-1, *value->type.shape->back().constant()};
    Values parts{value};
    if (directions_ > 1)
      parts =
          g_.add_node(Split{.axis = 0},
                      {value, ints(g_, std::vector<int64_t>(static_cast<size_t>(directions_), 1))},
                      static_cast<size_t>(directions_))
              .outs;
    for (Value*& part : parts) part = g_.add(Reshape{}, {part, ints(g_, form)});
    return parts;
  }
  Value* joined(const Values& parts) {
    Values stacked;
    for (Value* part : parts) stacked.push_back(g_.add(Unsqueeze{}, {part, ints(g_, {0})}));
    return stacked.size() == 1 ? stacked[0] : g_.add(Concat{.axis = 0}, stacked);
  }
  Value* total(Value* matrix) { return sum_over(g_, matrix, {0}, false); }
  Value* weights(size_t d) {
    const auto at = static_cast<int64_t>(d);
    if (directions_ == 1) return g_.add(Squeeze{}, {node_.in[1], ints(g_, {0})});
    return g_.add(Gather{}, {node_.in[1], g_.add_constant(Tensor::scalar(at))});
  }

  void one(size_t d, Values& dx, Values& dw, Values& dr, Values& db) {
    Value* gates = gates_[d];
    dx.push_back(matrix_product(g_, gates, weights(d), false, false));
    dw.push_back(matrix_product(g_, gates, rows_, true, false));
    Value* sums = total(gates);
    if constexpr (cell != RecurrentCell::gru) {
      dr.push_back(matrix_product(g_, gates, states_[d], true, false));
      db.push_back(g_.add(Concat{.axis = 0}, {sums, sums}));
      return;
    }
    // The last gate meets R in another way than the first two.
    const Values parts =
        g_.add_node(Split{.axis = 1}, {gates, ints(g_, {2 * hidden_, hidden_})}, 2).outs;
    Value* fresh = flag_ ? extra_[d] : parts[1];
    Value* met = flag_ ? states_[d] : extra_[d];
    dr.push_back(g_.add(Concat{.axis = 0}, {matrix_product(g_, parts[0], states_[d], true, false),
                                            matrix_product(g_, fresh, met, true, false)}));
    db.push_back(g_.add(Concat{.axis = 0}, {sums, total(parts[0]), total(fresh)}));
  }

  Graph& g_;
  const Node& node_;
  bool flag_, batch_first_;
  int64_t directions_ = 1, hidden_ = 1;
  Value *x_ = nullptr, *rows_ = nullptr;
  Values gates_, states_, extra_;
};

template <RecurrentCell cell>
Values gradient(Graph& g, const Node& n, std::span<Value* const> dy, bool flag) {
  const auto& attrs = *n.as<LayerOf<cell>>();
  const auto at = [&](size_t i) { return n.has(i) ? n.in[i] : nullptr; };
  constexpr bool lstm = cell == RecurrentCell::lstm;
  for (size_t i = 0; i < 3; ++i) rank_for_gradient(n, n.in[i]);
  if (cell != RecurrentCell::rnn) need_outputs(g, n, lstm ? 5 : 4);
  const auto from = [&](size_t i) { return i < dy.size() ? dy[i] : nullptr; };
  RecurrentBackward<cell> back{.activation_alpha = attrs.activation_alpha,
                               .activation_beta = attrs.activation_beta,
                               .activations = attrs.activations,
                               .clip = attrs.clip,
                               .direction = attrs.direction,
                               .layout = attrs.layout,
                               .flag = flag};
  Values in{from(0),  from(1), lstm ? from(2) : nullptr, n.in[2],
            at(4),    at(5),   lstm ? at(6) : nullptr,   lstm ? at(7) : nullptr,
            n.outs[0]};
  if (cell != RecurrentCell::rnn) in.push_back(n.outs[3]);
  if (lstm) in.push_back(n.outs[4]);
  const size_t count = lstm ? 5 : cell == RecurrentCell::gru ? 4 : 3;
  const Values slopes = g.add_node(back, in, count).outs;
  Values out = Products<cell>(g, n, slopes, flag, attrs.layout == 1).all();
  out.insert(out.end(),
             {nullptr, slopes[1], lstm ? slopes[3] : nullptr, lstm ? slopes[4] : nullptr});
  return out;
}

}  // namespace

Values gradient_rnn(Graph& g, const Node& n, std::span<Value* const> dy) {
  return gradient<RecurrentCell::rnn>(g, n, dy, false);
}
Values gradient_gru(Graph& g, const Node& n, std::span<Value* const> dy) {
  return gradient<RecurrentCell::gru>(g, n, dy, n.as<GRU>()->linear_before_reset);
}
Values gradient_lstm(Graph& g, const Node& n, std::span<Value* const> dy) {
  return gradient<RecurrentCell::lstm>(g, n, dy, n.as<LSTM>()->input_forget);
}

template <>
const Op RNNBackward::op{
    .name = "rnn_backward",
    .attrs = &AttrsOf<RNNBackward>::info,
    .infer = infer<RecurrentCell::rnn>,
    .reference = reference<RecurrentCell::rnn>,
    .onnx = {{.type = "RNNBackward", .domain = "dais"}},
};
template <>
const Op GRUBackward::op{
    .name = "gru_backward",
    .attrs = &AttrsOf<GRUBackward>::info,
    .infer = infer<RecurrentCell::gru>,
    .reference = reference<RecurrentCell::gru>,
    .onnx = {{.type = "GRUBackward", .domain = "dais"}},
};
template <>
const Op LSTMBackward::op{
    .name = "lstm_backward",
    .attrs = &AttrsOf<LSTMBackward>::info,
    .infer = infer<RecurrentCell::lstm>,
    .reference = reference<RecurrentCell::lstm>,
    .onnx = {{.type = "LSTMBackward", .domain = "dais"}},
};

}  // namespace dais
