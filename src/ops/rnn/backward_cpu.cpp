// Gradients of recurrent layers on the engine's own products: each step turns the gradients of the
// state into those of the gates in one pass, and hands back their product with R. Directions, and
// shares of the batch, are independent, as in the forward direction.

#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm.h"
#include "base/threads.h"
#include "ops/rnn/rnn.h"
#include "ops/rnn/rnn_loops.h"
#include "ops/rnn/rnn_rows_cpu.h"
#include "runtime/kernel.h"

namespace dais {

#define DAIS_RNN_LEVEL(level)           \
  namespace level {                     \
  void rnn_back(const cpu::CellBack&);  \
  void lstm_back(const cpu::CellBack&); \
  void gru_back(const cpu::CellBack&);  \
  }
DAIS_RNN_LEVEL(plain)
DAIS_RNN_LEVEL(avx2)
DAIS_RNN_LEVEL(avx512)
#undef DAIS_RNN_LEVEL

namespace {

using cpu::CellBack;
using cpu::GemmBlock;

enum In : size_t { kDy, kDh, kDc, kR, kLens, kH0, kC0, kPeeps, kY, kGates, kCells };

using BackLoop = void (*)(const CellBack&);
template <RecurrentCell cell>
BackLoop back_loop(Isa isa) {
  static constexpr BackLoop levels[3][3] = {
      {plain::rnn_back, plain::gru_back, plain::lstm_back},
      {avx2::rnn_back, avx2::gru_back, avx2::lstm_back},
      {avx512::rnn_back, avx512::gru_back, avx512::lstm_back}};
  return levels[std::min(static_cast<int>(isa), 2)][static_cast<size_t>(cell)];
}

template <RecurrentCell cell>
constexpr int64_t gates_of = cell == RecurrentCell::rnn   ? 1
                             : cell == RecurrentCell::gru ? 3
                                                          : 4;
template <RecurrentCell cell>
constexpr int64_t kept_of = cell == RecurrentCell::rnn ? 1 : 4;

template <RecurrentCell cell>
class BoundBack : public BoundKernel {
 public:
  BoundBack(const RecurrentBackward<cell>& attrs, Isa isa, const Sizes& sizes)
      : attrs_(attrs), isa_(isa), loop_(back_loop<cell>(isa)) {
    const Shape &r = sizes.in[kR], &y = sizes.in[kY];
    batch_first_ = attrs.layout == 1;
    directions_ = r[0];
    hidden_ = r[2];
    rows_ = r[1];
    length_ = y[batch_first_ ? 1 : 0];
    batch_ = y[batch_first_ ? 0 : 2];
    const int64_t work = length_ * batch_ * rows_ * hidden_;
    const int64_t wanted = std::clamp<int64_t>(work / 100000, 1, team_size());
    shares_ = std::clamp<int64_t>(wanted / directions_, 1, std::max<int64_t>(batch_, 1));
    shares_ = std::min(shares_, std::max<int64_t>(1, batch_ / 4));
    packed_ = (cpu::gemm_packed_floats(isa, rows_, hidden_) + 15) / 16 * 16;
    states_ = directions_ * batch_ * hidden_;
  }

  size_t scratch_bytes() const override {
    const int64_t slopes = directions_ * batch_ * rows_;
    return sizeof(float) *
           static_cast<size_t>(directions_ * packed_ + 4 * states_ + slopes + hidden_);
  }

  Fault run(const Arguments& arguments) noexcept override {
    const auto given = [&](size_t i) {
      return i < arguments.in.size() ? static_cast<const float*>(arguments.in[i]) : nullptr;
    };
    const auto out = [&](size_t i) {
      return i < arguments.out.size() ? static_cast<float*>(arguments.out[i]) : nullptr;
    };
    Run run;
    if (kLens < arguments.in.size()) run.lengths = static_cast<const int32_t*>(arguments.in[kLens]);
    for (int64_t n = 0; run.lengths && n < batch_; ++n)
      if (run.lengths[n] < 0 || run.lengths[n] > length_)
        return {"a sequence length is out of range", run.lengths[n]};
    auto* scratch = static_cast<float*>(arguments.scratch);
    run.packed = scratch;
    run.carried = run.packed + directions_ * packed_;
    run.through = run.carried + states_;
    run.dc = run.through + states_;
    run.start = run.dc + states_;
    run.slopes = run.start + states_;
    run.zeros = run.slopes + directions_ * batch_ * rows_;
    std::fill_n(run.zeros, hidden_, 0.0F);
    run.dy = given(kDy);
    run.y = given(kY);
    run.gates = cell == RecurrentCell::rnn ? nullptr : given(kGates);
    run.cells = cell == RecurrentCell::lstm ? given(kCells) : nullptr;
    run.out = out(0);
    run.before = out(2);
    run.extra = cell == RecurrentCell::gru ? out(3) : nullptr;
    for (int64_t d = 0; d < directions_; ++d)
      cpu::gemm_pack(isa_, given(kR) + d * rows_ * hidden_, hidden_, 1, rows_, hidden_,
                     run.packed + d * packed_);
    load_state(given(kDh), run.carried);
    load_state(given(kDc), run.dc);
    load_state(given(kH0), run.start);
    run.cell_start = given(kC0);
    std::fill_n(run.through, states_, 0.0F);
    parallel_for(directions_ * shares_, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t share = i % shares_;
        run_share(run, i / shares_, batch_ * share / shares_, batch_ * (share + 1) / shares_);
      }
    });
    for (int64_t i = 0; i < states_; ++i) run.carried[i] += run.through[i];
    store_state(run.carried, out(1));
    if (cell == RecurrentCell::lstm) store_state(run.dc, out(3));
    if (cell == RecurrentCell::lstm && out(4)) std::fill_n(out(4), directions_ * 3 * hidden_, 0.0F);
    return {};
  }

 private:
  struct Run {
    float *packed, *carried, *through, *dc, *start, *slopes, *zeros;
    const float *dy, *y, *gates, *cells, *cell_start;
    float *out, *before, *extra;
    const int32_t* lengths = nullptr;
  };

  int64_t state_row(int64_t d, int64_t n) const {
    return batch_first_ ? n * directions_ + d : d * batch_ + n;
  }
  int64_t y_row(int64_t step, int64_t d, int64_t n) const {
    return batch_first_ ? (n * length_ + step) * directions_ + d
                        : (step * directions_ + d) * batch_ + n;
  }
  int64_t place(int64_t d, int64_t step, int64_t n) const {
    return (d * length_ + step) * batch_ + n;
  }
  void copy_row(const float* from, float* to, int64_t count) const {
    std::memcpy(to, from, sizeof(float) * static_cast<size_t>(count));
  }
  /// States are kept [directions, batch, hidden] while running.
  void load_state(const float* from, float* to) const {
    if (!from) {
      std::fill_n(to, states_, 0.0F);
      return;
    }
    for (int64_t d = 0; d < directions_; ++d)
      for (int64_t n = 0; n < batch_; ++n)
        copy_row(from + state_row(d, n) * hidden_, to + (d * batch_ + n) * hidden_, hidden_);
  }
  void store_state(const float* from, float* to) const {
    if (!to) return;
    for (int64_t d = 0; d < directions_; ++d)
      for (int64_t n = 0; n < batch_; ++n)
        copy_row(from + (d * batch_ + n) * hidden_, to + state_row(d, n) * hidden_, hidden_);
  }

  void run_share(const Run& run, int64_t d, int64_t first, int64_t last) const {
    const bool reverse = attrs_.direction == "reverse" || d == 1;
    for (int64_t t = length_; t-- > 0;) {
      for (int64_t n = first; n < last; ++n) {
        const int64_t length = run.lengths ? run.lengths[n] : length_;
        float* slopes = run.slopes + (d * batch_ + n) * rows_;
        if (t >= length) {
          std::fill_n(slopes, rows_, 0.0F);
          clear(run, place(d, t, n));
        } else {
          step_back(run, d, n, t, reverse ? length - 1 - t : t, reverse ? 1 : -1);
        }
      }
      GemmBlock block;
      block.a = run.slopes + (d * batch_ + first) * rows_;
      block.a_row = rows_;
      block.rows = last - first;
      block.depth = rows_;
      block.columns = hidden_;
      block.c = run.through + (d * batch_ + first) * hidden_;
      block.c_row = hidden_;
      cpu::gemm_set_packed(isa_, block, run.packed + d * packed_);
      cpu::gemm_serial(isa_, block);
    }
  }

  /// Places beyond an example's length.
  void clear(const Run& run, int64_t at) const {
    std::fill_n(run.out + at * rows_, rows_, 0.0F);
    if (run.before) std::fill_n(run.before + at * hidden_, hidden_, 0.0F);
    if (run.extra) std::fill_n(run.extra + at * hidden_, hidden_, 0.0F);
  }

  void step_back(const Run& run, int64_t d, int64_t n, int64_t t, int64_t step,
                 int64_t back) const {
    const int64_t state = (d * batch_ + n) * hidden_, at = place(d, step, n);
    const int64_t now = y_row(step, d, n) * hidden_;
    const float* before = t == 0 ? run.start + state : run.y + y_row(step + back, d, n) * hidden_;
    CellBack s;
    s.hidden = hidden_;
    s.dy = run.dy ? run.dy + now : nullptr;
    s.through = run.through + state;
    s.carried = run.carried + state;
    s.slopes = run.slopes + (d * batch_ + n) * rows_;
    s.gates = run.gates ? run.gates + at * kept_of<cell> * hidden_ : run.y + now;
    s.before = before;
    float* out = run.out + at * rows_;
    if constexpr (cell == RecurrentCell::lstm) {
      s.input_forget = attrs_.flag;
      s.dc = run.dc + state;
      s.cell = run.cells + at * hidden_;
      const float* cell_start =
          run.cell_start ? run.cell_start + state_row(d, n) * hidden_ : run.zeros;
      s.before = t == 0 ? cell_start : run.cells + place(d, step + back, n) * hidden_;
    }
    if constexpr (cell == RecurrentCell::gru) s.fresh_slopes = out + 2 * hidden_;
    loop_(s);
    if (run.before) copy_row(before, run.before + at * hidden_, hidden_);
    if constexpr (cell == RecurrentCell::gru) {
      copy_row(s.slopes, out, 2 * hidden_);
      if (run.extra) copy_row(s.slopes + 2 * hidden_, run.extra + at * hidden_, hidden_);
    } else {
      copy_row(s.slopes, out, rows_);
    }
  }

  const RecurrentBackward<cell>& attrs_;
  Isa isa_;
  BackLoop loop_;
  bool batch_first_ = false;
  int64_t directions_ = 1, hidden_ = 0, rows_ = 0, length_ = 0, batch_ = 0;
  int64_t shares_ = 1, packed_ = 0, states_ = 0;
};

template <RecurrentCell cell>
class BackKernel : public Kernel {
 public:
  explicit BackKernel(const KernelQuery& query) : node_(query.node), isa_(query.isa) {}
  /// Operands of other sizes are left to the reference, which says what is wrong.
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const auto& attrs = *node_.as<RecurrentBackward<cell>>();
    const Shape &r = sizes.in[kR], &y = sizes.in[kY];
    const int64_t directions = attrs.direction == "bidirectional" ? 2 : 1;
    if (r.rank() != 3 || y.rank() != 4 || r[0] != directions || r[1] != gates_of<cell> * r[2] ||
        r[2] == 0)
      return nullptr;
    const bool batch_first = attrs.layout == 1;
    const int64_t batch = y[batch_first ? 0 : 2], length = y[batch_first ? 1 : 0];
    if (!(y == (batch_first ? Shape{batch, length, directions, r[2]}
                            : Shape{length, directions, batch, r[2]})))
      return nullptr;
    const Shape state =
        batch_first ? Shape{batch, directions, r[2]} : Shape{directions, batch, r[2]};
    const int64_t kept = kept_of<cell> * r[2];
    const std::pair<size_t, Shape> wanted[] = {{kDy, y},
                                               {kDh, state},
                                               {kDc, state},
                                               {kLens, Shape{batch}},
                                               {kH0, state},
                                               {kC0, state},
                                               {kGates, Shape{directions, length, batch, kept}},
                                               {kCells, Shape{directions, length, batch, r[2]}}};
    for (const auto& [input, shape] : wanted)
      if (node_.has(input) && !(sizes.in[input] == shape)) return nullptr;
    return std::make_unique<BoundBack<cell>>(attrs, isa_, sizes);
  }

 private:
  const Node& node_;
  Isa isa_;
};

template <RecurrentCell cell>
Verdict accepts(const KernelQuery& query) {
  const auto& attrs = query.attrs<RecurrentBackward<cell>>();
  if (query.in_dtype(kR) != DType::f32) return no("an element type other than f32");
  if (!attrs.activations.empty()) return no("activations are listed");
  if (attrs.clip > 0) return no("clipped activations");
  if (query.node.has(kPeeps)) return no("peepholes");
  if (cell == RecurrentCell::gru && !attrs.flag) return no("the reset gate multiplies the state");
  if (query.node.has(kLens) && query.in_dtype(kLens) != DType::i32)
    return no("lengths that are not i32");
  return yes();
}

template <RecurrentCell cell>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<BackKernel<cell>>(query);
}

template <RecurrentCell cell>
void add_row(Kernels& kernels, std::string_view name) {
  kernels.add({.name = name,
               .op = &RecurrentBackward<cell>::op,
               .accepts = accepts<cell>,
               .prepare = prepare<cell>});
}

}  // namespace

void register_rnn_backward(Kernels& kernels) {
  add_row<RecurrentCell::rnn>(kernels, "rnn_backward/steps");
  add_row<RecurrentCell::gru>(kernels, "gru_backward/steps");
  add_row<RecurrentCell::lstm>(kernels, "lstm_backward/steps");
}

}  // namespace dais
