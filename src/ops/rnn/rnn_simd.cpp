// Gates of recurrent cells: elementwise over the hidden units, all gates of a unit in one pass, so
// that nothing but the state is written. Bound by the exponentials.

#include "backends/cpu/simd.h"
#include "ops/rnn/rnn_loops.h"

namespace dais::DAIS_ISA {
namespace {

using cpu::CellStep;

/// Calls body(index, count) for each vector of the hidden units; count lanes are real.
template <typename Body>
inline void over_units(int64_t hidden, Body body) {
  for (int64_t i = 0; i < hidden; i += kLanes) body(i, hidden - i);
}

}  // namespace

void rnn_cell(const CellStep& s) {
  over_units(s.hidden, [&](int64_t i, int64_t count) {
    store_first(s.h + i, tanh(add(load_first(s.x + i, count), load_first(s.hr + i, count))), count);
  });
}

void lstm_cell(const CellStep& s) {
  const int64_t n = s.hidden;
  over_units(n, [&](int64_t i, int64_t count) {
    const auto sum = [&](int64_t gate) {
      return add(load_first(s.x + gate * n + i, count), load_first(s.hr + gate * n + i, count));
    };
    const auto peep = [&](int64_t gate, Vf value, Vf cell) {
      if (!s.peepholes) return value;
      return fma(load_first(s.peepholes + gate * n + i, count), cell, value);
    };
    const Vf before = load_first(s.c + i, count);
    const Vf input = sigmoid(peep(0, sum(0), before));
    const Vf forget = s.input_forget ? sub(all(1), input) : sigmoid(peep(2, sum(2), before));
    const Vf cell = fma(forget, before, mul(input, tanh(sum(3))));
    const Vf output = sigmoid(peep(1, sum(1), cell));
    store_first(s.c + i, cell, count);
    store_first(s.h + i, mul(output, tanh(cell)), count);
  });
}

/// A step whose reset gate multiplies R h.
void gru_cell(const CellStep& s) {
  const int64_t n = s.hidden;
  over_units(n, [&](int64_t i, int64_t count) {
    const auto x = [&](int64_t gate) { return load_first(s.x + gate * n + i, count); };
    const auto hr = [&](int64_t gate) { return load_first(s.hr + gate * n + i, count); };
    const Vf update = sigmoid(add(x(0), hr(0))), reset = sigmoid(add(x(1), hr(1)));
    Vf recalled = hr(2);
    if (s.reset_bias) recalled = add(recalled, load_first(s.reset_bias + i, count));
    const Vf fresh = tanh(fma(reset, recalled, x(2)));
    const Vf before = load_first(s.h + i, count);
    store_first(s.h + i, fma(update, sub(before, fresh), fresh), count);
  });
}

/// The first half of a step whose reset gate multiplies the state: `reset` becomes that product.
void gru_reset(const CellStep& s) {
  const int64_t n = s.hidden;
  over_units(n, [&](int64_t i, int64_t count) {
    const Vf gate = sigmoid(add(load_first(s.x + n + i, count), load_first(s.hr + n + i, count)));
    store_first(s.reset + i, mul(gate, load_first(s.h + i, count)), count);
  });
}

/// The second half: hr's third part now holds R times `reset`.
void gru_finish(const CellStep& s) {
  const int64_t n = s.hidden;
  over_units(n, [&](int64_t i, int64_t count) {
    const Vf update = sigmoid(add(load_first(s.x + i, count), load_first(s.hr + i, count)));
    const Vf fresh =
        tanh(add(load_first(s.x + 2 * n + i, count), load_first(s.hr + 2 * n + i, count)));
    const Vf before = load_first(s.h + i, count);
    store_first(s.h + i, fma(update, sub(before, fresh), fresh), count);
  });
}

}  // namespace dais::DAIS_ISA
