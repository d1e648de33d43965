// Recurrent layers on the engine's own products. The inputs of all steps meet W in one product;
// each step then multiplies the state with R and passes the gates in one go. Directions, and shares
// of the batch, are independent: each thread runs its own through all steps without meeting the
// others. A layer with one such share splits the product of each step when R is large.

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "backends/cpu/gemm.h"
#include "base/threads.h"
#include "ops/rnn/rnn.h"
#include "ops/rnn/rnn_loops.h"
#include "ops/rnn/rnn_rows_cpu.h"
#include "runtime/kernel.h"

namespace dais {

#define DAIS_RNN_LEVEL(level)            \
  namespace level {                      \
  void rnn_cell(const cpu::CellStep&);   \
  void lstm_cell(const cpu::CellStep&);  \
  void gru_cell(const cpu::CellStep&);   \
  void gru_reset(const cpu::CellStep&);  \
  void gru_finish(const cpu::CellStep&); \
  }
DAIS_RNN_LEVEL(plain)
DAIS_RNN_LEVEL(avx2)
DAIS_RNN_LEVEL(avx512)
#undef DAIS_RNN_LEVEL

namespace {

using cpu::CellStep;
using cpu::GemmBlock;
using cpu::GemmStep;

using CellLoop = void (*)(const CellStep&);
struct CellLoops {
  CellLoop rnn, lstm, gru, gru_reset, gru_finish;
};

const CellLoops& loops(Isa isa) {
  static constexpr CellLoops levels[] = {
      {plain::rnn_cell, plain::lstm_cell, plain::gru_cell, plain::gru_reset, plain::gru_finish},
      {avx2::rnn_cell, avx2::lstm_cell, avx2::gru_cell, avx2::gru_reset, avx2::gru_finish},
      {avx512::rnn_cell, avx512::lstm_cell, avx512::gru_cell, avx512::gru_reset,
       avx512::gru_finish}};
  return levels[std::min(static_cast<int>(isa), 2)];
}

constexpr size_t kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kInitialH = 5, kInitialC = 6,
                 kPeepholes = 7;

/// What a node asks for, the three ops alike.
struct Layer {
  enum class Cell : uint8_t { rnn, gru, lstm };
  Cell cell = Cell::rnn;
  Isa isa = Isa::plain;
  int64_t gates = 1, directions = 1, input = 0, hidden = 0;
  bool reverse = false, batch_first = false;
  bool input_forget = false;
  bool reset_state = false;  ///< GRU: the reset gate multiplies the state, not R times it

  int64_t rows() const { return gates * hidden; }
  /// Numbers kept of each step for the gradient.
  int64_t kept() const { return rows() + (cell == Cell::gru && !reset_state ? hidden : 0); }
  /// Gates whose product is of the state as it is.
  int64_t plain_gates() const { return reset_state ? 2 : gates; }
};

template <typename S>
constexpr Layer::Cell cell_of = std::is_same_v<S, LSTM>  ? Layer::Cell::lstm
                                : std::is_same_v<S, GRU> ? Layer::Cell::gru
                                                         : Layer::Cell::rnn;

template <typename S>
Layer layer_of(const KernelQuery& query) {
  const auto& attrs = query.attrs<S>();
  Layer out;
  out.cell = cell_of<S>;
  out.isa = query.isa;
  if constexpr (std::is_same_v<S, LSTM>) {
    out.gates = 4;
    out.input_forget = attrs.input_forget;
  } else if constexpr (std::is_same_v<S, GRU>) {
    out.gates = 3;
    out.reset_state = !attrs.linear_before_reset;
  }
  out.directions = attrs.direction == "bidirectional" ? 2 : 1;
  out.reverse = attrs.direction == "reverse";
  out.batch_first = attrs.layout == 1;
  out.input = (*query.in(kW).shape)[2].constant().value_or(0);
  out.hidden = (*query.in(kR).shape)[2].constant().value_or(0);
  return out;
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x | 32) == (y | 32); });
}

template <typename S>
Verdict accepts(const KernelQuery& query) {
  const auto& attrs = query.attrs<S>();
  if (query.in_dtype(kX) != DType::f32) return no("an element type other than f32");
  constexpr std::array<std::string_view, 3> usual =
      std::is_same_v<S, RNN> ? std::array<std::string_view, 3>{"tanh", "tanh", "tanh"}
                             : std::array<std::string_view, 3>{"sigmoid", "tanh", "tanh"};
  constexpr size_t each = std::is_same_v<S, LSTM> ? 3 : std::is_same_v<S, GRU> ? 2 : 1;
  for (size_t i = 0; i < attrs.activations.size(); ++i)
    if (!same_word(attrs.activations[i], usual[i % each]))
      return no("an activation other than the op's own");
  if (attrs.clip > 0) return no("clipped activations");
  const int64_t directions = attrs.direction == "bidirectional" ? 2 : 1;
  if (!attrs.activations.empty() &&
      attrs.activations.size() != each * static_cast<size_t>(directions))
    return no("a wrong number of activations");
  for (const size_t i : {kW, kR})
    if (!query.node.has(i) || !query.in(i).static_shape() || query.in(i).shape->size() != 3)
      return no("sizes of the weights are not known");
  const Layer layer = layer_of<S>(query);
  const Shape w{directions, layer.rows(), layer.input}, r{directions, layer.rows(), layer.hidden};
  if (!(*query.in(kW).static_shape() == w) || !(*query.in(kR).static_shape() == r) ||
      layer.hidden == 0 || layer.input == 0)
    return no("weights of unexpected sizes");
  if (attrs.hidden_size != 0 && attrs.hidden_size != layer.hidden)
    return no("hidden_size does not match R");
  if (query.node.has(kLengths) && query.in_dtype(kLengths) != DType::i32)
    return no("lengths that are not i32");
  return yes();
}

/// Weights as the products read them.
struct Weights {
  const float* w = nullptr;                    ///< all directions side by side
  std::array<const float*, 2> r{}, r_reset{};  ///< by direction; r_reset: see Layer::reset_state
};

/// Floats of packed weights, and packing them. Constant weights are packed once, others on each
/// run.
class Packing {
 public:
  explicit Packing(const Layer& layer) : layer_(layer) {
    w_ = size(layer.input, layer.directions * layer.rows());
    r_ = size(layer.hidden, layer.plain_gates() * layer.hidden);
    reset_ = layer.reset_state ? size(layer.hidden, layer.hidden) : 0;
  }
  int64_t floats() const { return w_ + layer_.directions * (r_ + reset_); }

  void pack(const float* w, const float* r, float* to) const {
    const Weights at = places(to);
    pack(w, layer_.input, layer_.directions * layer_.rows(), at.w);
    for (int64_t d = 0; d < layer_.directions; ++d) {
      const auto index = static_cast<size_t>(d);
      const float* from = r + d * layer_.rows() * layer_.hidden;
      pack(from, layer_.hidden, layer_.plain_gates() * layer_.hidden, at.r[index]);
      if (reset_ > 0)
        pack(from + 2 * layer_.hidden * layer_.hidden, layer_.hidden, layer_.hidden,
             at.r_reset[index]);
    }
  }

  Weights places(const float* packed) const {
    Weights out;
    out.w = packed;
    for (int64_t d = 0; d < layer_.directions; ++d) {
      const auto index = static_cast<size_t>(d);
      out.r[index] = packed + w_ + d * (r_ + reset_);
      out.r_reset[index] = out.r[index] + r_;
    }
    return out;
  }

 private:
  int64_t size(int64_t depth, int64_t columns) const {
    return (cpu::gemm_packed_floats(layer_.isa, depth, columns) + 15) / 16 * 16;
  }
  void pack(const float* from, int64_t depth, int64_t columns, const float* to) const {
    cpu::gemm_pack(layer_.isa, from, 1, depth, depth, columns, const_cast<float*>(to));
  }

  const Layer& layer_;
  int64_t w_ = 0, r_ = 0, reset_ = 0;
};

class BoundLayer : public BoundKernel {
 public:
  BoundLayer(const Layer& layer, const Packing& packing, const float* packed, const Sizes& sizes)
      : layer_(layer), packing_(packing), packed_(packed) {
    const Shape& x = sizes.in[kX];
    length_ = x[layer.batch_first ? 1 : 0];
    batch_ = x[layer.batch_first ? 0 : 1];
    const int64_t work = length_ * batch_ * layer.rows() * layer.hidden;
    const int64_t wanted = std::clamp<int64_t>(work / 100000, 1, team_size());
    shares_ = std::clamp<int64_t>(wanted / layer.directions, 1, std::max<int64_t>(batch_, 1));
    // Rows of one product run better together: four at least.
    shares_ = std::min(shares_, std::max<int64_t>(1, batch_ / 4));
    // One share: its products may take the pool themselves.
    split_steps_ = shares_ * layer.directions == 1 && layer.rows() * layer.hidden > 500000;
    products_ = length_ * batch_ * layer.directions * layer.rows();
    states_ = layer.directions * batch_ * layer.hidden;
    recurrent_ = layer.directions * batch_ * layer.rows();
    bias_ = layer.directions * layer.rows();
  }

  size_t scratch_bytes() const override {
    return sizeof(float) * static_cast<size_t>(products_ + 3 * states_ + recurrent_ + bias_ +
                                               (packed_ ? 0 : packing_.floats()));
  }

  Fault run(const Arguments& arguments) noexcept override {
    const auto* lengths = static_cast<const int32_t*>(given(arguments, kLengths));
    for (int64_t n = 0; lengths && n < batch_; ++n)
      if (lengths[n] < 0 || lengths[n] > length_)
        return {"a sequence length is out of range", lengths[n]};
    Run run;
    auto* scratch = static_cast<float*>(arguments.scratch);
    run.weights = packing_.places(packed_ ? packed_ : scratch);
    if (!packed_) {
      packing_.pack(static_cast<const float*>(given(arguments, kW)),
                    static_cast<const float*>(given(arguments, kR)), scratch);
      scratch += packing_.floats();
    }
    run.products = scratch;
    run.h = run.products + products_;
    run.c = run.h + states_;
    run.reset = run.c + states_;
    run.recurrent = run.reset + states_;
    run.bias = run.recurrent + recurrent_;
    run.lengths = lengths;
    run.b = static_cast<const float*>(given(arguments, kB));
    run.peepholes = static_cast<const float*>(given(arguments, kPeepholes));
    run.y = static_cast<float*>(arguments.out[0]);
    run.gates = output(arguments, 3);
    run.cells = output(arguments, 4);
    load_bias(run);
    project(static_cast<const float*>(given(arguments, kX)), run);
    load_state(static_cast<const float*>(given(arguments, kInitialH)), run.h);
    load_state(static_cast<const float*>(given(arguments, kInitialC)), run.c);
    parallel_for(layer_.directions * shares_, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t share = i % shares_;
        run_share(run, i / shares_, batch_ * share / shares_, batch_ * (share + 1) / shares_);
      }
    });
    if (arguments.out.size() > 1) store_state(run.h, static_cast<float*>(arguments.out[1]));
    if (arguments.out.size() > 2) store_state(run.c, static_cast<float*>(arguments.out[2]));
    return {};
  }

 private:
  struct Run {
    Weights weights;
    float *products, *h, *c, *reset, *recurrent, *bias;
    const int32_t* lengths;
    const float *b, *peepholes;
    float* y;
    float *gates, *cells;  ///< what the gradient needs, or null
  };

  static float* output(const Arguments& arguments, size_t i) {
    return i < arguments.out.size() ? static_cast<float*>(arguments.out[i]) : nullptr;
  }
  static const void* given(const Arguments& arguments, size_t i) {
    return i < arguments.in.size() ? arguments.in[i] : nullptr;
  }

  /// Biases of W and R together, but for one that the reset gate multiplies.
  void load_bias(const Run& run) const {
    if (!run.b) return;
    const int64_t rows = layer_.rows(), apart = gate_bias_apart() ? 2 * layer_.hidden : rows;
    for (int64_t d = 0; d < layer_.directions; ++d) {
      const float *w = run.b + 2 * d * rows, *r = w + rows;
      for (int64_t i = 0; i < rows; ++i) run.bias[d * rows + i] = i < apart ? w[i] + r[i] : w[i];
    }
  }

  bool gate_bias_apart() const { return layer_.cell == Layer::Cell::gru && !layer_.reset_state; }

  void project(const float* x, const Run& run) const {
    GemmBlock block;
    block.a = x;
    block.a_row = layer_.input;
    block.rows = length_ * batch_;
    block.depth = layer_.input;
    block.columns = layer_.directions * layer_.rows();
    block.c = run.products;
    block.c_row = block.columns;
    GemmStep bias{.kind = GemmStep::Kind::column};
    bias.operand = run.bias;
    block.steps = &bias;
    block.step_count = run.b ? 1 : 0;
    cpu::gemm_set_packed(layer_.isa, block, run.weights.w);
    cpu::gemm(layer_.isa, block);
  }

  int64_t state_row(int64_t d, int64_t n) const {
    return layer_.batch_first ? n * layer_.directions + d : d * batch_ + n;
  }

  /// States are kept [directions, batch, hidden] while running.
  void load_state(const float* from, float* to) const {
    if (!from || !layer_.batch_first) {
      const size_t bytes = sizeof(float) * static_cast<size_t>(states_);
      if (from)
        std::memcpy(to, from, bytes);
      else
        std::memset(to, 0, bytes);
      return;
    }
    for (int64_t d = 0; d < layer_.directions; ++d)
      for (int64_t n = 0; n < batch_; ++n)
        copy_row(from + state_row(d, n) * layer_.hidden, to + (d * batch_ + n) * layer_.hidden);
  }

  void store_state(const float* from, float* to) const {
    if (!to) return;
    for (int64_t d = 0; d < layer_.directions; ++d)
      for (int64_t n = 0; n < batch_; ++n)
        copy_row(from + (d * batch_ + n) * layer_.hidden, to + state_row(d, n) * layer_.hidden);
  }

  void copy_row(const float* from, float* to) const {
    std::memcpy(to, from, sizeof(float) * static_cast<size_t>(layer_.hidden));
  }

  float* y_row(float* y, int64_t step, int64_t d, int64_t n) const {
    const int64_t row = layer_.batch_first ? (n * length_ + step) * layer_.directions + d
                                           : (step * layer_.directions + d) * batch_ + n;
    return y + row * layer_.hidden;
  }

  /// to = h * r for examples [first, last), columns [column, column + columns) of all gates.
  void multiply(const Run& run, int64_t d, int64_t first, int64_t last, const float* state,
                const float* r, int64_t column, int64_t columns) const {
    GemmBlock block;
    block.a = state + (d * batch_ + first) * layer_.hidden;
    block.a_row = layer_.hidden;
    block.rows = last - first;
    block.depth = layer_.hidden;
    block.columns = columns;
    block.c = run.recurrent + (d * batch_ + first) * layer_.rows() + column;
    block.c_row = layer_.rows();
    cpu::gemm_set_packed(layer_.isa, block, r);
    (split_steps_ ? cpu::gemm : cpu::gemm_serial)(layer_.isa, block);
  }

  CellStep cell_step(const Run& run, int64_t d, int64_t n, int64_t step) const {
    const int64_t x_row = layer_.batch_first ? n * length_ + step : step * batch_ + n;
    const int64_t rows = layer_.rows(), state = (d * batch_ + n) * layer_.hidden;
    CellStep out;
    out.hidden = layer_.hidden;
    out.x = run.products + (x_row * layer_.directions + d) * rows;
    out.hr = run.recurrent + (d * batch_ + n) * rows;
    out.h = run.h + state;
    out.c = run.c + state;
    out.reset = run.reset + state;
    if (run.peepholes) out.peepholes = run.peepholes + 3 * d * layer_.hidden;
    if (run.b && gate_bias_apart())
      out.reset_bias = run.b + 2 * d * rows + rows + 2 * layer_.hidden;
    out.input_forget = layer_.input_forget;
    if (run.gates) out.gates = run.gates + place(d, step, n) * layer_.kept();
    return out;
  }

  int64_t place(int64_t d, int64_t step, int64_t n) const {
    return (d * length_ + step) * batch_ + n;
  }

  void run_share(const Run& run, int64_t d, int64_t first, int64_t last) const {
    const CellLoops& cells = loops(layer_.isa);
    const auto at = static_cast<size_t>(d);
    const bool reverse = layer_.reverse || d == 1;
    const int64_t hidden = layer_.hidden;
    const CellLoop finish = layer_.cell == Layer::Cell::rnn    ? cells.rnn
                            : layer_.cell == Layer::Cell::lstm ? cells.lstm
                            : layer_.reset_state               ? cells.gru_finish
                                                               : cells.gru;
    for (int64_t t = 0; t < length_; ++t) {
      const auto each = [&](auto body) {
        for (int64_t n = first; n < last; ++n) {
          const int64_t length = run.lengths ? run.lengths[n] : length_;
          if (t < length) body(n, reverse ? length - 1 - t : t);
        }
      };
      multiply(run, d, first, last, run.h, run.weights.r[at], 0, layer_.plain_gates() * hidden);
      if (layer_.reset_state) {
        each([&](int64_t n, int64_t step) { cells.gru_reset(cell_step(run, d, n, step)); });
        multiply(run, d, first, last, run.reset, run.weights.r_reset[at], 2 * hidden, hidden);
      }
      each([&](int64_t n, int64_t step) {
        const CellStep cell = cell_step(run, d, n, step);
        finish(cell);
        if (run.y) copy_row(cell.h, y_row(run.y, step, d, n));
        if (run.cells) copy_row(cell.c, run.cells + place(d, step, n) * hidden);
      });
    }
    clear_rest(run, d, first, last);
  }

  /// Outputs are zero beyond an example's length.
  void clear_rest(const Run& run, int64_t d, int64_t first, int64_t last) const {
    if (!run.lengths) return;
    const auto clear = [](float* row, int64_t count) {
      std::memset(row, 0, sizeof(float) * static_cast<size_t>(count));
    };
    for (int64_t n = first; n < last; ++n)
      for (int64_t step = run.lengths[n]; step < length_; ++step) {
        const int64_t at = place(d, step, n), hidden = layer_.hidden;
        if (run.y) clear(y_row(run.y, step, d, n), hidden);
        if (run.gates) clear(run.gates + at * layer_.kept(), layer_.kept());
        if (run.cells) clear(run.cells + at * hidden, hidden);
      }
  }

  const Layer& layer_;
  const Packing& packing_;
  const float* packed_;
  int64_t length_ = 0, batch_ = 0;
  int64_t shares_ = 1;  ///< of the batch, run by a thread each
  bool split_steps_ = false;
  int64_t products_ = 0, states_ = 0, recurrent_ = 0, bias_ = 0;  ///< floats
};

class LayerKernel : public Kernel {
 public:
  LayerKernel(const Layer& layer, const KernelQuery& query) : layer_(layer), packing_(layer_) {
    for (size_t i = 0; i < given_.size(); ++i) given_[i] = query.node.has(i);
    const Tensor *w = query.constant(kW), *r = query.constant(kR);
    if (!w || !r) return;
    packed_.emplace(sizeof(float) * static_cast<size_t>(packing_.floats()));
    packing_.pack(w->storage<float>(), r->storage<float>(), packed_->as<float>());
  }
  /// Operands of other sizes are left to the reference, which says what is wrong.
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape& x = sizes.in[kX];
    if (x.rank() != 3 || x[2] != layer_.input) return nullptr;
    const int64_t batch = x[layer_.batch_first ? 0 : 1];
    const Shape state = layer_.batch_first ? Shape{batch, layer_.directions, layer_.hidden}
                                           : Shape{layer_.directions, batch, layer_.hidden};
    const std::pair<size_t, Shape> wanted[] = {
        {kB, Shape{layer_.directions, 2 * layer_.rows()}},
        {kLengths, Shape{batch}},
        {kInitialH, state},
        {kInitialC, state},
        {kPeepholes, Shape{layer_.directions, 3 * layer_.hidden}}};
    for (const auto& [input, shape] : wanted)
      if (given_[input] && !(sizes.in[input] == shape)) return nullptr;
    return std::make_unique<BoundLayer>(layer_, packing_, packed_ ? packed_->as<float>() : nullptr,
                                        sizes);
  }
  std::string detail() const override {
    return packed_ ? "weights packed" : "weights packed on each run";
  }

 private:
  const Layer layer_;
  const Packing packing_;
  std::array<bool, kPeepholes + 1> given_{};
  std::optional<cpu::PageMemory> packed_;
};

template <typename S>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<LayerKernel>(layer_of<S>(query), query);
}

template <typename S>
void add_row(Kernels& kernels, std::string_view name) {
  kernels.add({.name = name, .op = &S::op, .accepts = accepts<S>, .prepare = prepare<S>});
}

}  // namespace

namespace ops {
void register_rnn_cpu(Kernels& kernels) {
  register_rnn_backward(kernels);
  register_half_rnn(kernels);
  add_row<RNN>(kernels, "rnn/steps");
  add_row<GRU>(kernels, "gru/steps");
  add_row<LSTM>(kernels, "lstm/steps");
}
}  // namespace ops
}  // namespace dais
