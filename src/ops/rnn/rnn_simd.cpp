// Gates of recurrent cells: elementwise over the hidden units, all gates of a unit in one pass, so
// that nothing but the state is written. Bound by the exponentials.

#include "backends/cpu/simd.h"
#include "ops/rnn/rnn_loops.h"

namespace dais::DAIS_ISA {
namespace {

using cpu::CellBack;
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
    const Vf fresh = tanh(sum(3));
    const Vf cell = fma(forget, before, mul(input, fresh));
    const Vf output = sigmoid(peep(1, sum(1), cell));
    store_first(s.c + i, cell, count);
    store_first(s.h + i, mul(output, tanh(cell)), count);
    if (!s.gates) return;
    store_first(s.gates + i, input, count);
    store_first(s.gates + n + i, output, count);
    store_first(s.gates + 2 * n + i, forget, count);
    store_first(s.gates + 3 * n + i, fresh, count);
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
    if (!s.gates) return;
    store_first(s.gates + i, update, count);
    store_first(s.gates + n + i, reset, count);
    store_first(s.gates + 2 * n + i, fresh, count);
    store_first(s.gates + 3 * n + i, recalled, count);
  });
}

/// The first half of a step whose reset gate multiplies the state: `reset` becomes that product.
void gru_reset(const CellStep& s) {
  const int64_t n = s.hidden;
  over_units(n, [&](int64_t i, int64_t count) {
    const Vf gate = sigmoid(add(load_first(s.x + n + i, count), load_first(s.hr + n + i, count)));
    store_first(s.reset + i, mul(gate, load_first(s.h + i, count)), count);
    if (s.gates) store_first(s.gates + n + i, gate, count);
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
    if (!s.gates) return;
    store_first(s.gates + i, update, count);
    store_first(s.gates + 2 * n + i, fresh, count);
  });
}

void rnn_back(const CellBack& s) {
  over_units(s.hidden, [&](int64_t i, int64_t count) {
    Vf dh = add(load_first(s.carried + i, count), load_first(s.through + i, count));
    if (s.dy) dh = add(dh, load_first(s.dy + i, count));
    const Vf h = load_first(s.gates + i, count);
    store_first(s.slopes + i, mul(dh, sub(all(1), mul(h, h))), count);
    store_first(s.carried + i, all(0), count);
  });
}

void lstm_back(const CellBack& s) {
  const int64_t n = s.hidden;
  over_units(n, [&](int64_t i, int64_t count) {
    const auto gate = [&](int64_t k) { return load_first(s.gates + k * n + i, count); };
    const auto slope = [&](Vf value) { return mul(value, sub(all(1), value)); };
    Vf dh = add(load_first(s.carried + i, count), load_first(s.through + i, count));
    if (s.dy) dh = add(dh, load_first(s.dy + i, count));
    const Vf input = gate(0), output = gate(1), forget = gate(2), fresh = gate(3);
    const Vf past = load_first(s.before + i, count);
    const Vf shown = tanh(load_first(s.cell + i, count));
    const Vf whole =
        fma(mul(dh, output), sub(all(1), mul(shown, shown)), load_first(s.dc + i, count));
    const Vf met = s.input_forget ? sub(fresh, past) : fresh;
    store_first(s.slopes + i, mul(mul(whole, met), slope(input)), count);
    store_first(s.slopes + n + i, mul(mul(dh, shown), slope(output)), count);
    const Vf forgot = s.input_forget ? all(0) : mul(mul(whole, past), slope(forget));
    store_first(s.slopes + 2 * n + i, forgot, count);
    store_first(s.slopes + 3 * n + i, mul(mul(whole, input), sub(all(1), mul(fresh, fresh))),
                count);
    store_first(s.dc + i, mul(whole, forget), count);
    store_first(s.carried + i, all(0), count);
  });
}

/// A step whose reset gate multiplies R h.
void gru_back(const CellBack& s) {
  const int64_t n = s.hidden;
  over_units(n, [&](int64_t i, int64_t count) {
    const auto gate = [&](int64_t k) { return load_first(s.gates + k * n + i, count); };
    const auto slope = [&](Vf value) { return mul(value, sub(all(1), value)); };
    Vf dh = add(load_first(s.carried + i, count), load_first(s.through + i, count));
    if (s.dy) dh = add(dh, load_first(s.dy + i, count));
    const Vf update = gate(0), reset = gate(1), fresh = gate(2), recalled = gate(3);
    const Vf past = load_first(s.before + i, count);
    const Vf back = mul(mul(dh, sub(all(1), update)), sub(all(1), mul(fresh, fresh)));
    store_first(s.slopes + i, mul(mul(dh, sub(past, fresh)), slope(update)), count);
    store_first(s.slopes + n + i, mul(mul(back, recalled), slope(reset)), count);
    store_first(s.slopes + 2 * n + i, mul(back, reset), count);
    store_first(s.fresh_slopes + i, back, count);
    store_first(s.carried + i, mul(dh, update), count);
  });
}

}  // namespace dais::DAIS_ISA
