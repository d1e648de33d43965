// Recurrent layers in bf16 and their gradients, with products on the tile unit. The inputs of all
// steps meet W in one product; R is brought into tiles once for all steps. States, cells and sums
// stay f32 from step to step; what is kept of each step is rounded. Directions, and shares of the
// batch, are independent: each thread runs its own through all steps.

#include <algorithm>
#include <cstring>

#include "backends/cpu/convert.h"
#include "backends/cpu/half_gemm.h"
#include "base/threads.h"
#include "ops/rnn/rnn.h"
#include "ops/rnn/rnn_loops.h"
#include "ops/rnn/rnn_rows_cpu.h"
#include "runtime/kernel.h"

namespace dais {

namespace avx512 {
void lstm_cell(const cpu::CellStep&);
void gru_cell(const cpu::CellStep&);
void lstm_back(const cpu::CellBack&);
void gru_back(const cpu::CellBack&);
}  // namespace avx512

namespace {

using cpu::CellBack;
using cpu::CellStep;
using cpu::Half;
using cpu::HalfBlock;

constexpr size_t kX = 0, kW = 1, kR = 2, kB = 3;
enum Back : size_t { kDy = 0, kBackR = 3, kY = 8, kGates = 9, kCells = 10 };

void widen(const uint16_t* from, float* to, int64_t count) {
  cpu::widen(Isa::amx, Half::bf16, from, to, count);
}
void narrow(const float* from, uint16_t* to, int64_t count) {
  cpu::narrow(Isa::amx, Half::bf16, from, to, count);
}

/// What a node asks for. GRU: the reset gate multiplies R times the state.
struct Form {
  bool lstm = false, reverse = false, batch_first = false, input_forget = false;
  int64_t directions = 1;

  int64_t gates() const { return lstm ? 4 : 3; }
  static constexpr int64_t kept() { return 4; }
};

template <typename S>
Form form_of(const S& attrs, bool lstm, bool input_forget) {
  return {.lstm = lstm,
          .reverse = attrs.direction == "reverse",
          .batch_first = attrs.layout == 1,
          .input_forget = input_forget,
          .directions = attrs.direction == "bidirectional" ? 2 : 1};
}

/// Memory of one run, taken piece by piece.
class Pieces {
 public:
  explicit Pieces(void* scratch) : at_(static_cast<std::byte*>(scratch)) {}
  template <typename T>
  T* take(int64_t count) {
    auto* out = reinterpret_cast<T*>(at_);
    at_ += bytes<T>(count);
    return out;
  }
  template <typename T>
  static int64_t bytes(int64_t count) {
    return (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
  }

 private:
  std::byte* at_;
};

/// Sizes of a layer, and where its rows lie.
class BoundLayer : public BoundKernel {
 public:
  BoundLayer(const Form& form, int64_t length, int64_t batch, int64_t hidden)
      : form_(form),
        length_(length),
        batch_(batch),
        hidden_(hidden),
        rows_(form.gates() * hidden),
        states_(form.directions * batch * hidden) {
    const int64_t wanted = std::max<int64_t>(1, team_size() / form.directions);
    // Whole tiles of rows, as far as they go.
    shares_ = std::clamp<int64_t>((batch + 15) / 16, 1, wanted);
  }

 protected:
  /// Examples [first, last) of a direction, the `index`-th share of all.
  struct Share {
    int64_t d, index, first, last;
  };
  template <typename Body>
  void run_shares(Body&& share) const {
    parallel_for(form_.directions * shares_, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t at = i % shares_;
        share(Share{i / shares_, i, batch_ * at / shares_, batch_ * (at + 1) / shares_});
      }
    });
  }
  bool reverse(int64_t d) const { return form_.reverse || d == 1; }
  int64_t x_row(int64_t step, int64_t n) const {
    return form_.batch_first ? n * length_ + step : step * batch_ + n;
  }
  int64_t y_row(int64_t step, int64_t d, int64_t n) const {
    return form_.batch_first ? (n * length_ + step) * form_.directions + d
                             : (step * form_.directions + d) * batch_ + n;
  }
  int64_t state_row(int64_t d, int64_t n) const {
    return form_.batch_first ? n * form_.directions + d : d * batch_ + n;
  }
  int64_t place(int64_t d, int64_t step, int64_t n) const {
    return (d * length_ + step) * batch_ + n;
  }
  static const uint16_t* given(const Arguments& arguments, size_t i) {
    return i < arguments.in.size() ? static_cast<const uint16_t*>(arguments.in[i]) : nullptr;
  }
  static uint16_t* output(const Arguments& arguments, size_t i) {
    return i < arguments.out.size() ? static_cast<uint16_t*>(arguments.out[i]) : nullptr;
  }
  void copy_row(const uint16_t* from, uint16_t* to, int64_t count) const {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(uint16_t));
  }

  Form form_;
  int64_t length_, batch_, hidden_, rows_, states_, shares_ = 1;
};

class BoundForward : public BoundLayer {
 public:
  BoundForward(const Form& form, int64_t length, int64_t batch, int64_t hidden, int64_t input)
      : BoundLayer(form, length, batch, hidden),
        input_(input),
        columns_(form.directions * rows_),
        packed_(cpu::half_packed_numbers(hidden, rows_)) {}

  size_t scratch_bytes() const override {
    const int64_t bytes =
        Pieces::bytes<uint16_t>(form_.directions * packed_) +
        Pieces::bytes<float>(length_ * batch_ * columns_) + 2 * Pieces::bytes<float>(states_) +
        Pieces::bytes<float>(batch_ * columns_) + Pieces::bytes<uint16_t>(states_) +
        2 * Pieces::bytes<float>(2 * columns_) +
        Pieces::bytes<float>(form_.directions * shares_ * Form::kept() * hidden_);
    return static_cast<size_t>(bytes);
  }

  Fault run(const Arguments& arguments) noexcept override {
    Pieces pieces(arguments.scratch);
    Run run;
    run.packed = pieces.take<uint16_t>(form_.directions * packed_);
    run.products = pieces.take<float>(length_ * batch_ * columns_);
    run.h = pieces.take<float>(states_);
    run.c = pieces.take<float>(states_);
    run.recurrent = pieces.take<float>(batch_ * columns_);
    run.state = pieces.take<uint16_t>(states_);
    run.bias = pieces.take<float>(2 * columns_);
    run.sums = pieces.take<float>(2 * columns_);
    run.kept = pieces.take<float>(form_.directions * shares_ * Form::kept() * hidden_);
    run.y = output(arguments, 0);
    run.gates = output(arguments, 3);
    run.cells = output(arguments, 4);
    std::fill_n(run.h, states_, 0.0F);
    std::fill_n(run.c, states_, 0.0F);
    std::fill_n(run.state, states_, uint16_t{0});
    load_bias(given(arguments, kB), run);
    project(given(arguments, kX), given(arguments, kW), run);
    for (int64_t d = 0; d < form_.directions; ++d)
      cpu::half_pack(
          {.data = given(arguments, kR) + d * rows_ * hidden_, .line = hidden_, .turned = true},
          hidden_, rows_, run.packed + d * packed_);
    run_shares([&](const Share& share) { run_share(run, share); });
    store_state(run.h, output(arguments, 1));
    store_state(run.c, output(arguments, 2));
    return {};
  }

 private:
  struct Run {
    uint16_t *packed, *state;  ///< R in tiles; states as products read them
    float *products, *h, *c, *recurrent, *bias, *sums, *kept;
    uint16_t *y, *gates, *cells;
  };

  /// Biases of W and R together, but for the one that the reset gate multiplies.
  void load_bias(const uint16_t* b, const Run& run) const {
    std::fill_n(run.bias, 2 * columns_, 0.0F);
    std::fill_n(run.sums, columns_, 0.0F);
    if (!b) return;
    widen(b, run.bias, 2 * columns_);
    for (int64_t d = 0; d < form_.directions; ++d) {
      const float *w = run.bias + 2 * d * rows_, *r = w + rows_;
      for (int64_t i = 0; i < rows_; ++i)
        run.sums[d * rows_ + i] = w[i] + (form_.lstm || i < 2 * hidden_ ? r[i] : 0);
    }
  }

  void project(const uint16_t* x, const uint16_t* w, const Run& run) const {
    HalfBlock block{.rows = length_ * batch_, .columns = columns_, .depth = input_};
    block.a = {.data = x, .line = input_};
    block.b = {.data = w, .line = input_, .turned = true};
    block.c = run.products;
    block.c_row = columns_;
    block.c_half = false;
    block.wide_bias = run.sums;
    cpu::half_gemm(block);
  }

  void run_share(const Run& run, const Share& share) const {
    const auto& [d, index, first, last] = share;
    const int64_t start = d * batch_ + first;
    HalfBlock block{.rows = last - first, .columns = rows_, .depth = hidden_};
    block.a = {.data = run.state + start * hidden_, .line = hidden_};
    block.c = run.recurrent + start * rows_;
    block.c_row = rows_;
    block.c_half = false;
    for (int64_t t = 0; t < length_; ++t) {
      const int64_t step = reverse(d) ? length_ - 1 - t : t;
      cpu::half_gemm_packed(block, run.packed + d * packed_);
      float* kept = run.kept + index * Form::kept() * hidden_;
      for (int64_t n = first; n < last; ++n) run_cell(run, d, n, step, kept);
    }
  }

  void run_cell(const Run& run, int64_t d, int64_t n, int64_t step, float* kept) const {
    const int64_t state = (d * batch_ + n) * hidden_, at = place(d, step, n);
    CellStep cell;
    cell.hidden = hidden_;
    cell.x = run.products + x_row(step, n) * columns_ + d * rows_;
    cell.hr = run.recurrent + (d * batch_ + n) * rows_;
    cell.h = run.h + state;
    cell.c = run.c + state;
    cell.input_forget = form_.input_forget;
    cell.gates = run.gates ? kept : nullptr;
    if (!form_.lstm) cell.reset_bias = run.bias + 2 * d * rows_ + rows_ + 2 * hidden_;
    (form_.lstm ? avx512::lstm_cell : avx512::gru_cell)(cell);
    narrow(cell.h, run.state + state, hidden_);
    if (run.y) copy_row(run.state + state, run.y + y_row(step, d, n) * hidden_, hidden_);
    if (run.gates) narrow(kept, run.gates + at * Form::kept() * hidden_, Form::kept() * hidden_);
    if (run.cells) narrow(cell.c, run.cells + at * hidden_, hidden_);
  }

  void store_state(const float* from, uint16_t* to) const {
    if (!to) return;
    for (int64_t d = 0; d < form_.directions; ++d)
      for (int64_t n = 0; n < batch_; ++n)
        narrow(from + (d * batch_ + n) * hidden_, to + state_row(d, n) * hidden_, hidden_);
  }

  int64_t input_, columns_, packed_;
};

class BoundBackward : public BoundLayer {
 public:
  BoundBackward(const Form& form, int64_t length, int64_t batch, int64_t hidden)
      : BoundLayer(form, length, batch, hidden),
        packed_(cpu::half_packed_numbers(rows_, hidden)),
        row_((Form::kept() + 6) * hidden + rows_) {}

  size_t scratch_bytes() const override {
    const int64_t bytes = Pieces::bytes<uint16_t>(form_.directions * packed_) +
                          3 * Pieces::bytes<float>(states_) +
                          Pieces::bytes<uint16_t>(form_.directions * batch_ * rows_) +
                          Pieces::bytes<float>(form_.directions * shares_ * row_);
    return static_cast<size_t>(bytes);
  }

  Fault run(const Arguments& arguments) noexcept override {
    Pieces pieces(arguments.scratch);
    Run run;
    run.packed = pieces.take<uint16_t>(form_.directions * packed_);
    run.carried = pieces.take<float>(states_);
    run.through = pieces.take<float>(states_);
    run.dc = pieces.take<float>(states_);
    run.slopes = pieces.take<uint16_t>(form_.directions * batch_ * rows_);
    run.rows = pieces.take<float>(form_.directions * shares_ * row_);
    run.dy = given(arguments, kDy);
    run.y = given(arguments, kY);
    run.gates = given(arguments, kGates);
    run.cells = form_.lstm ? given(arguments, kCells) : nullptr;
    run.out = output(arguments, 0);
    run.before = output(arguments, 2);
    run.extra = form_.lstm ? nullptr : output(arguments, 3);
    for (float* state : {run.carried, run.through, run.dc}) std::fill_n(state, states_, 0.0F);
    for (int64_t d = 0; d < form_.directions; ++d)
      cpu::half_pack({.data = given(arguments, kBackR) + d * rows_ * hidden_, .line = hidden_},
                     rows_, hidden_, run.packed + d * packed_);
    run_shares([&](const Share& share) { run_share(run, share); });
    for (int64_t i = 0; i < states_; ++i) run.carried[i] += run.through[i];
    store_state(run.carried, output(arguments, 1));
    if (!form_.lstm) return {};
    store_state(run.dc, output(arguments, 3));
    if (uint16_t* peepholes = output(arguments, 4))
      std::fill_n(peepholes, form_.directions * 3 * hidden_, uint16_t{0});
    return {};
  }

 private:
  struct Run {
    uint16_t *packed, *slopes;
    float *carried, *through, *dc, *rows;
    const uint16_t *dy, *y, *gates, *cells;
    uint16_t *out, *before, *extra;
  };

  void run_share(const Run& run, const Share& share) const {
    const auto& [d, index, first, last] = share;
    const int64_t start = d * batch_ + first;
    HalfBlock block{.rows = last - first, .columns = hidden_, .depth = rows_};
    block.a = {.data = run.slopes + start * rows_, .line = rows_};
    block.c = run.through + start * hidden_;
    block.c_row = hidden_;
    block.c_half = false;
    float* room = run.rows + index * row_;
    for (int64_t t = length_; t-- > 0;) {
      for (int64_t n = first; n < last; ++n) step_back(run, d, n, t, room);
      cpu::half_gemm_packed(block, run.packed + d * packed_);
    }
  }

  void step_back(const Run& run, int64_t d, int64_t n, int64_t t, float* room) const {
    const int64_t step = reverse(d) ? length_ - 1 - t : t, past = reverse(d) ? step + 1 : step - 1;
    const int64_t h = hidden_, state = (d * batch_ + n) * h, at = place(d, step, n);
    const auto loaded = [&](const uint16_t* from) {
      float* to = room;
      room += h;
      widen(from, to, h);
      return to;
    };
    const auto before_first = [&] {
      std::fill_n(room, h, 0.0F);
      room += h;
      return room - h;
    };
    CellBack s;
    s.hidden = h;
    s.input_forget = form_.input_forget;
    s.gates = room;
    widen(run.gates + at * Form::kept() * h, room, Form::kept() * h);
    room += Form::kept() * h;
    s.slopes = room;
    room += rows_;
    if (run.dy) s.dy = loaded(run.dy + y_row(step, d, n) * h);
    s.through = run.through + state;
    s.carried = run.carried + state;
    const uint16_t* states = t > 0 ? run.y + y_row(past, d, n) * h : nullptr;
    if (form_.lstm) {
      s.dc = run.dc + state;
      s.cell = loaded(run.cells + at * h);
      s.before = t > 0 ? loaded(run.cells + place(d, past, n) * h) : before_first();
    } else {
      s.before = states ? loaded(states) : before_first();
      s.fresh_slopes = room;
    }
    (form_.lstm ? avx512::lstm_back : avx512::gru_back)(s);
    uint16_t *slopes = run.slopes + (d * batch_ + n) * rows_, *out = run.out + at * rows_;
    narrow(s.slopes, slopes, rows_);
    copy_row(slopes, out, rows_);
    if (!form_.lstm) {
      narrow(s.fresh_slopes, out + 2 * h, h);
      if (run.extra) copy_row(slopes + 2 * h, run.extra + at * h, h);
    }
    if (!run.before) return;
    if (states)
      copy_row(states, run.before + at * h, h);
    else
      std::fill_n(run.before + at * h, h, uint16_t{0});
  }

  void store_state(const float* from, uint16_t* to) const {
    if (!to) return;
    for (int64_t d = 0; d < form_.directions; ++d)
      for (int64_t n = 0; n < batch_; ++n)
        narrow(from + (d * batch_ + n) * hidden_, to + state_row(d, n) * hidden_, hidden_);
  }

  int64_t packed_, row_;
};

template <bool backward>
class HalfKernel : public Kernel {
 public:
  explicit HalfKernel(const Form& form) : form_(form) {}
  /// Operands of other sizes are left to the reference, which says what is wrong.
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape& r = sizes.in[backward ? static_cast<size_t>(kBackR) : kR];
    const Shape& along = sizes.in[backward ? static_cast<size_t>(kY) : kX];
    if (r.rank() != 3 || r[0] != form_.directions || r[1] != form_.gates() * r[2] || r[2] == 0 ||
        r[1] > cpu::kHalfMostDepth)
      return nullptr;
    if (along.rank() != (backward ? 4 : 3)) return nullptr;
    const int64_t length = along[form_.batch_first ? 1 : 0];
    const int64_t batch = along[form_.batch_first ? 0 : (backward ? 2 : 1)];
    if (length == 0 || batch == 0) return nullptr;
    if constexpr (backward) {
      return std::make_unique<BoundBackward>(form_, length, batch, r[2]);
    } else {
      const Shape& w = sizes.in[kW];
      if (!(w == Shape{form_.directions, r[1], along[2]}) || along[2] == 0) return nullptr;
      return std::make_unique<BoundForward>(form_, length, batch, r[2], along[2]);
    }
  }

 private:
  Form form_;
};

/// What both directions ask: the usual cell, every number bf16, and no operand that few layers
/// have.
template <typename S>
Verdict usual(const KernelQuery& query, std::initializer_list<size_t> needed) {
  const auto& attrs = query.attrs<S>();
  if (!attrs.activations.empty() || attrs.clip > 0) return no("activations of its own");
  for (size_t i = 0; i < query.node.in.size(); ++i) {
    if (!query.node.has(i)) continue;
    if (query.in_dtype(i) != DType::bf16) return no("an element type other than bf16");
    if (query.constant(i)) return no("a constant operand");
    if (std::find(needed.begin(), needed.end(), i) == needed.end())
      return no("a first state, lengths or peepholes");
  }
  return yes();
}

template <typename S>
Verdict accepts_forward(const KernelQuery& query) {
  if constexpr (std::is_same_v<S, GRU>)
    if (!query.attrs<S>().linear_before_reset) return no("the reset gate multiplies the state");
  return usual<S>(query, {kX, kW, kR, kB});
}

template <RecurrentCell cell>
Verdict accepts_backward(const KernelQuery& query) {
  using S = RecurrentBackward<cell>;
  if (cell == RecurrentCell::gru && !query.attrs<S>().flag)
    return no("the reset gate multiplies the state");
  return usual<S>(query, {kDy, kBackR, kY, kGates, kCells});
}

template <typename S>
std::unique_ptr<Kernel> prepare_forward(const KernelQuery& query) {
  const auto& attrs = query.attrs<S>();
  if constexpr (std::is_same_v<S, LSTM>)
    return std::make_unique<HalfKernel<false>>(form_of(attrs, true, attrs.input_forget));
  else
    return std::make_unique<HalfKernel<false>>(form_of(attrs, false, false));
}

template <RecurrentCell cell>
std::unique_ptr<Kernel> prepare_backward(const KernelQuery& query) {
  constexpr bool lstm = cell == RecurrentCell::lstm;
  const auto& attrs = query.attrs<RecurrentBackward<cell>>();
  return std::make_unique<HalfKernel<true>>(form_of(attrs, lstm, lstm && attrs.flag));
}

}  // namespace

void register_half_rnn(Kernels& kernels) {
  const auto add = [&](std::string_view name, const Op& op, auto accepts, auto prepare) {
    kernels.add({.name = name,
                 .op = &op,
                 .isa = Isa::amx,
                 .accepts = accepts,
                 .prepare = prepare,
                 .priority = 10});
  };
  add("lstm/half", LSTM::op, accepts_forward<LSTM>, prepare_forward<LSTM>);
  add("gru/half", GRU::op, accepts_forward<GRU>, prepare_forward<GRU>);
  add("lstm_backward/half", LSTMBackward::op, accepts_backward<RecurrentCell::lstm>,
      prepare_backward<RecurrentCell::lstm>);
  add("gru_backward/half", GRUBackward::op, accepts_backward<RecurrentCell::gru>,
      prepare_backward<RecurrentCell::gru>);
}

}  // namespace dais
