#include "ops/rnn/cells.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/gemm_loop.h"

namespace dais {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Known {
  std::string_view name;
  double (*function)(double, double, double);
  double (*derivative)(double, double, double);  ///< of the function's value
  bool takes_alpha, takes_beta;
  double alpha, beta;
};

double relu(double x, double, double) { return x > 0 || x != x ? x : 0; }
double softplus(double x, double, double) {
  return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
}
double positive(double y, double, double) { return y > 0 ? 1 : 0; }

constexpr Known kKnown[] = {
    {"Relu", relu, positive, false, false, 0, 0},
    {"Tanh", [](double x, double, double) { return std::tanh(x); },
     [](double y, double, double) { return 1 - y * y; }, false, false, 0, 0},
    {"Sigmoid", [](double x, double, double) { return sigmoid(x); },
     [](double y, double, double) { return y * (1 - y); }, false, false, 0, 0},
    {"Affine", [](double x, double a, double b) { return a * x + b; },
     [](double, double a, double) { return a; }, true, true, 1, 0},
    {"LeakyRelu", [](double x, double a, double) { return x < 0 ? a * x : x; },
     [](double y, double a, double) { return y < 0 ? a : 1; }, true, false, 0.01, 0},
    {"ThresholdedRelu", [](double x, double a, double) { return x > a ? x : 0; }, positive, true,
     false, 1, 0},
    {"ScaledTanh", [](double x, double a, double b) { return a * std::tanh(b * x); },
     [](double y, double a, double b) { return b * (a - y * y / a); }, true, true, 1, 1},
    {"HardSigmoid",
     [](double x, double a, double b) { return std::fmin(std::fmax(a * x + b, 0), 1); },
     [](double y, double a, double) { return y > 0 && y < 1 ? a : 0; }, true, true, 0.2, 0.5},
    {"Elu", [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; },
     [](double y, double a, double) { return y < 0 ? y + a : 1; }, true, false, 1, 0},
    {"Softsign", [](double x, double, double) { return x / (1 + std::fabs(x)); },
     [](double y, double, double) { return (1 - std::fabs(y)) * (1 - std::fabs(y)); }, false, false,
     0, 0},
    {"Softplus", softplus, [](double y, double, double) { return -std::expm1(-y); }, false, false,
     0, 0},
};

bool same_word(std::string_view a, std::string_view b) {
  // Exporters differ in case; the text compares without it.
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

const Known& find_activation(const std::string& name) {
  for (const Known& known : kKnown)
    if (same_word(known.name, name)) return known;
  throw Error(Code::invalid_argument, "activation '" + name + "' is not known");
}

void step_rnn(const Direction& d, const double* x, const double* hr, double* h) {
  for (int64_t i = 0; i < d.hidden; ++i) {
    const auto at = static_cast<size_t>(i);
    h[i] = d.activations[0](x[i] + hr[i] + d.w_bias[at] + d.r_bias[at]);
  }
}

void step_gru(const Direction& d, bool linear_before_reset, const double* x, const double* hr,
              double* h, double* gates) {
  const int64_t n = d.hidden;
  const auto &f = d.activations[0], &g = d.activations[1];
  std::vector<double> update(static_cast<size_t>(n)), reset(update), recalled(update);
  const auto gate = [&](int64_t i) {
    return f(x[i] + hr[i] + d.w_bias[static_cast<size_t>(i)] + d.r_bias[static_cast<size_t>(i)]);
  };
  for (int64_t i = 0; i < n; ++i) {
    update[static_cast<size_t>(i)] = gate(i);
    reset[static_cast<size_t>(i)] = gate(n + i);
  }
  if (linear_before_reset) {
    for (size_t i = 0; i < recalled.size(); ++i)
      recalled[i] = reset[i] * (hr[2 * recalled.size() + i] + d.r_bias[2 * recalled.size() + i]);
  } else {
    std::vector<double> kept(update.size());
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = reset[i] * h[i];
    gemm_loop<double>({.rows = 1, .columns = n, .depth = n, .a_row = n, .b_row = 3 * n},
                      kept.data(), d.r.data() + 2 * n, recalled.data());
    for (size_t i = 0; i < kept.size(); ++i) recalled[i] += d.r_bias[2 * kept.size() + i];
  }
  for (size_t i = 0; i < update.size(); ++i) {
    const size_t at = 2 * update.size() + i;
    const double fresh = g(x[at] + recalled[i] + d.w_bias[at]);
    h[i] = (1 - update[i]) * fresh + update[i] * h[i];
    if (!gates) continue;
    gates[i] = update[i];
    gates[update.size() + i] = reset[i];
    gates[at] = fresh;
    if (linear_before_reset) gates[update.size() + at] = hr[at] + d.r_bias[at];
  }
}

void step_lstm(const Direction& d, bool input_forget, const double* x, const double* hr, double* h,
               double* c, double* gates) {
  const auto n = static_cast<size_t>(d.hidden);
  const auto &f = d.activations[0], &g = d.activations[1], &out = d.activations[2];
  const auto sum = [&](size_t at) { return x[at] + hr[at] + d.w_bias[at] + d.r_bias[at]; };
  const auto peep = [&](size_t gate, size_t i, double cell) {
    return d.peepholes.empty() ? 0 : d.peepholes[gate * n + i] * cell;
  };
  for (size_t i = 0; i < n; ++i) {
    const double input = f(sum(i) + peep(0, i, c[i]));
    const double forget = input_forget ? 1 - input : f(sum(2 * n + i) + peep(2, i, c[i]));
    const double fresh = g(sum(3 * n + i));
    const double cell = forget * c[i] + input * fresh;
    const double output = f(sum(n + i) + peep(1, i, cell));
    c[i] = cell;
    h[i] = output * out(cell);
    if (!gates) continue;
    gates[i] = input;
    gates[n + i] = output;
    gates[2 * n + i] = forget;
    gates[3 * n + i] = fresh;
  }
}

}  // namespace

std::vector<GateActivation> gate_activations(const std::vector<std::string>& names,
                                             const std::vector<float>& alphas,
                                             const std::vector<float>& betas, double clip,
                                             size_t count) {
  if (names.size() != count)
    throw Error(Code::invalid_argument, "there are " + std::to_string(names.size()) +
                                            " activations instead of " + std::to_string(count));
  std::vector<GateActivation> out;
  size_t alpha = 0, beta = 0;
  for (const std::string& name : names) {
    const Known& known = find_activation(name);
    GateActivation next{known.function, known.derivative, known.alpha, known.beta, clip};
    if (known.takes_alpha && alpha < alphas.size())
      next.alpha = static_cast<double>(alphas[alpha++]);
    if (known.takes_beta && beta < betas.size()) next.beta = static_cast<double>(betas[beta++]);
    out.push_back(next);
  }
  return out;
}

void step_cell(CellKind kind, const Direction& direction, bool flag, const double* x,
               const double* hr, double* h, double* c, double* gates) {
  switch (kind) {
    case CellKind::rnn: return step_rnn(direction, x, hr, h);
    case CellKind::gru: return step_gru(direction, flag, x, hr, h, gates);
    case CellKind::lstm: return step_lstm(direction, flag, x, hr, h, c, gates);
  }
}

}  // namespace dais
