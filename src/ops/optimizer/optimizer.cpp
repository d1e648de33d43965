#include "ops/optimizer/optimizer.h"

#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/wide.h"

namespace dais {
namespace {

/// `moments` tensors follow X and G of each tensor trained.
template <size_t moments>
void infer(Inference& c) {
  constexpr size_t parts = moments + 2;
  if (c.inputs() < 2 + parts || (c.inputs() - 2) % parts != 0)
    c.fail("expects R, T and " + std::to_string(parts) + " inputs for each tensor");
  const size_t n = (c.inputs() - 2) / parts;
  const auto source = [&](size_t i) { return i < n ? 2 + i : 2 + n + i; };
  for (size_t i = 0; i < (moments + 1) * n; ++i) c.set(i, c.dtype(source(i)));
  for (size_t i = 0; i < (moments + 1) * n; ++i)
    if (c.ranked(source(i))) c.set(i, c.dtype(source(i)), c.shape(source(i)));
}

/// One scalar's step: x and its moments are replaced.
template <size_t moments, typename Body>
void each_element(Call& c, double norm, Body&& body) {
  constexpr size_t parts = moments + 2;
  c.require(c.inputs() >= 2 + parts && (c.inputs() - 2) % parts == 0, "inputs do not come in sets");
  c.require(c.in(0).elements() == 1 && c.in(1).elements() == 1, "R and T must be scalars");
  const size_t n = (c.inputs() - 2) / parts;
  const double rate = c.in(0).to_double(), updates = c.in(1).to_double();
  for (size_t k = 0; k < n; ++k) {
    const Shape& shape = c.in(2 + k).shape();
    std::vector<double> values[parts];
    for (size_t part = 0; part < parts; ++part) {
      const Tensor& from = c.in(2 + part * n + k);
      c.require(from.shape() == shape, "a gradient or moment is not shaped like its tensor");
      values[part] = to_wide<double>(from);
    }
    for (size_t i = 0; i < values[0].size(); ++i) {
      double* held[moments];
      for (size_t m = 0; m < moments; ++m) held[m] = &values[2 + m][i];
      double& x = values[0][i];
      body(rate, updates, x, values[1][i] + norm * x, held);
    }
    for (size_t part = 0; part < parts; ++part) {
      if (part == 1) continue;
      const size_t out = (part == 0 ? 0 : part - 1) * n + k;
      if (out < c.outputs())
        store_wide(c.out(out, shape), 0, values[part].data(), std::ssize(values[part]));
    }
  }
}

void reference_adagrad(Call& c) {
  const auto& attrs = c.attrs<Adagrad>();
  const auto decay = static_cast<double>(attrs.decay_factor);
  const auto epsilon = static_cast<double>(attrs.epsilon);
  each_element<1>(c, static_cast<double>(attrs.norm_coefficient),
                  [&](double rate, double t, double& x, double g, double** held) {
                    double& h = *held[0];
                    h += g * g;
                    x -= rate / (1 + t * decay) * g / (std::sqrt(h) + epsilon);
                  });
}

void reference_adam(Call& c) {
  const auto& attrs = c.attrs<Adam>();
  const auto alpha = static_cast<double>(attrs.alpha), beta = static_cast<double>(attrs.beta);
  const auto epsilon = static_cast<double>(attrs.epsilon);
  const auto post = static_cast<double>(attrs.norm_coefficient_post);
  each_element<2>(c, static_cast<double>(attrs.norm_coefficient),
                  [&](double rate, double t, double& x, double g, double** held) {
                    double &v = *held[0], &h = *held[1];
                    v = alpha * v + (1 - alpha) * g;
                    h = beta * h + (1 - beta) * g * g;
                    if (t > 0) rate *= std::sqrt(1 - std::pow(beta, t)) / (1 - std::pow(alpha, t));
                    x = (1 - post) * (x - rate * v / (std::sqrt(h) + epsilon));
                  });
}

void reference_momentum(Call& c) {
  const auto& attrs = c.attrs<Momentum>();
  const auto alpha = static_cast<double>(attrs.alpha), beta = static_cast<double>(attrs.beta);
  c.require(attrs.mode == "standard" || attrs.mode == "nesterov",
            "mode must be standard or nesterov");
  const bool nesterov = attrs.mode == "nesterov";
  each_element<1>(c, static_cast<double>(attrs.norm_coefficient),
                  [&](double rate, double t, double& x, double g, double** held) {
                    double& v = *held[0];
                    v = alpha * v + (t > 0 ? beta : 1) * g;
                    x -= rate * (nesterov ? g + alpha * v : v);
                  });
}

constexpr std::string_view kTraining = "ai.onnx.preview.training";

}  // namespace

const Op Adagrad::op{
    .name = "adagrad",
    .attrs = &AttrsOf<Adagrad>::info,
    .infer = infer<1>,
    .reference = reference_adagrad,
    .onnx = {{.type = "Adagrad", .domain = kTraining}},
};
const Op Adam::op{
    .name = "adam",
    .attrs = &AttrsOf<Adam>::info,
    .infer = infer<2>,
    .reference = reference_adam,
    .onnx = {{.type = "Adam", .domain = kTraining}},
};
const Op Momentum::op{
    .name = "momentum",
    .attrs = &AttrsOf<Momentum>::info,
    .infer = infer<1>,
    .reference = reference_momentum,
    .onnx = {{.type = "Momentum", .domain = kTraining}},
};

namespace ops {
void define_optimizer(OpRegistry& registry) {
  for (const Op* op : {&Adagrad::op, &Adam::op, &Momentum::op}) registry.add(*op);
}
}  // namespace ops
}  // namespace dais
