#include "ops/ml/scores.h"

#include <cmath>
#include <numbers>

#include "ops/elementwise/elements.h"

namespace dais {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// The argument at which the normal distribution's sum reaches p.
double probit(double p) {
  const double wanted = 2 * p - 1;
  if (!(wanted > -1 && wanted < 1)) return wanted == 1 ? HUGE_VAL : wanted == -1 ? -HUGE_VAL : NAN;
  // Newton's method on erf from a closed approximation.
  const double a = 0.147, log = std::log1p(-wanted * wanted);
  const double b = 2 / (std::numbers::pi * a) + log / 2;
  double x = std::copysign(std::sqrt(std::sqrt(b * b - log / a) - b), wanted);
  for (int i = 0; i < 4; ++i)
    x -= (std::erf(x) - wanted) * std::sqrt(std::numbers::pi) / 2 * std::exp(x * x);
  return x * std::numbers::sqrt2;
}

/// Softmax; in its zero-keeping form scores of zero take no part in the competition.
void softmax(std::span<double> scores, bool keep_zeros) {
  double top = -HUGE_VAL, sum = 0;
  for (const double score : scores) top = std::fmax(top, score);
  for (double& score : scores) {
    const bool zero = keep_zeros && std::fabs(score) <= 1e-7;
    score = zero ? score * std::exp(-top) : std::exp(score - top);
    sum += score;
  }
  for (double& score : scores) score = sum == 0 ? 0 : score / sum;
}

}  // namespace

std::optional<PostTransform> post_transform_of(std::string_view name) {
  if (name == "NONE") return PostTransform::none;
  if (name == "SOFTMAX") return PostTransform::softmax;
  if (name == "LOGISTIC") return PostTransform::logistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::softmax_zero;
  if (name == "PROBIT") return PostTransform::probit;
  return std::nullopt;
}

void transform_scores(PostTransform transform, std::span<double> scores) {
  switch (transform) {
    case PostTransform::none: return;
    case PostTransform::softmax: return softmax(scores, false);
    case PostTransform::softmax_zero: return softmax(scores, true);
    case PostTransform::logistic:
      for (double& score : scores) score = logistic(score);
      return;
    case PostTransform::probit:
      for (double& score : scores) score = probit(score);
      return;
  }
}

void Labels::write(size_t index, Tensor& to, size_t at) const {
  if (dtype() == DType::string)
    to.data<std::string>()[at] = index < strings.size() ? strings[index] : std::string();
  else
    to.data<int64_t>()[at] = index < ints.size() ? ints[index] : static_cast<int64_t>(index);
}

Rows rows_of(Call& c, size_t input) {
  const Tensor& x = c.in(input);
  if (x.rank() == 0 || x.rank() > 2) c.fail("x is " + x.describe() + ", not rows of features");
  return {x.rank() == 2 ? x.shape()[0] : 1, x.shape().back(), widen<double>(x)};
}

Dim count_rows(Inference& c, size_t input) {
  const Dims& x = c.shape(input);
  if (x.empty() || x.size() > 2) c.fail("x is not a matrix of rows of features");
  return x.size() == 2 ? x[0] : Dim(1);
}

void check_post_transform(Inference& c, const std::string& name) {
  if (!post_transform_of(name))
    c.fail("post_transform is '" + name + "'",
           "Use NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT");
}

}  // namespace dais
