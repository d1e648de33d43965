// Linear models and support vector machines.
#include <algorithm>
#include <cmath>

#include "ops/elementwise/elements.h"
#include "ops/ml/ml.h"
#include "ops/ml/ml_parts.h"
#include "ops/ml/scores.h"

namespace dais {
namespace {

double dot(std::span<const double> x, const float* weights) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * weights[i];
  return sum;
}

/// Coefficients as rows of one weight per feature: how many rows there are.
int64_t count_planes(Call& c, const std::vector<float>& coefficients, int64_t width) {
  const auto size = static_cast<int64_t>(coefficients.size());
  if (width == 0 || size % width != 0 || size == 0)
    c.fail(std::to_string(size) + " coefficients do not fit " + std::to_string(width) +
           " features");
  return size / width;
}

/// x · coefficientsᵀ + intercepts of one row.
std::vector<double> planes(std::span<const double> row, const std::vector<float>& coefficients,
                           const std::vector<float>& intercepts, int64_t count) {
  std::vector<double> out;
  for (int64_t k = 0; k < count; ++k) {
    const auto at = static_cast<size_t>(k);
    out.push_back(dot(row, coefficients.data() + at * row.size()) +
                  (at < intercepts.size() ? intercepts[at] : 0));
  }
  return out;
}

size_t greatest(std::span<const double> scores) {
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

/// Writes one row of scores; rows may be asked for although the node has no such output.
struct Results {
  Results(Call& c, const Labels& labels, int64_t rows, int64_t columns)
      : label(c.out(0, labels.dtype(), Shape{rows})), columns(columns) {
    if (c.outputs() > 1) scores = &c.out(1, DType::f32, Shape{rows, columns});
  }
  void write(int64_t row, const std::vector<double>& values) {
    if (scores) store_elements(*scores, row * columns, 1, columns, values.data());
  }
  Tensor& label;
  Tensor* scores = nullptr;
  int64_t columns;
};

Labels labels_of(const LinearClassifier& a) { return {a.classlabels_ints, a.classlabels_strings}; }
Labels labels_of(const SVMClassifier& a) { return {a.classlabels_ints, a.classlabels_strings}; }

/// Scores a linear classifier gives, when the number of features is known.
std::optional<int64_t> linear_columns(const LinearClassifier& attrs, const Dims& x) {
  const auto width = x.back().constant();
  if (!width || *width <= 0) return std::nullopt;
  const auto count = static_cast<int64_t>(attrs.coefficients.size()) / *width;
  return count == 1 && labels_of(attrs).size() == 2 ? 2 : count;
}

void infer_linear_classifier(Inference& c) {
  const LinearClassifier& attrs = c.attrs<LinearClassifier>();
  check_post_transform(c, attrs.post_transform);
  const DType dtype = labels_of(attrs).dtype();
  c.set(0, dtype);
  c.set(1, DType::f32);
  const Dim rows = count_rows(c, 0);
  c.set(0, dtype, Dims{rows});
  const auto columns = linear_columns(attrs, c.shape(0));
  c.set(1, DType::f32, Dims{rows, columns ? Dim(*columns) : c.fresh()});
}

void reference_linear_classifier(Call& c) {
  const LinearClassifier& attrs = c.attrs<LinearClassifier>();
  const Labels labels = labels_of(attrs);
  const PostTransform transform = *post_transform_of(attrs.post_transform);
  const Rows rows = rows_of(c, 0);
  const int64_t count = count_planes(c, attrs.coefficients, rows.width);
  const bool mirrored = count == 1 && labels.size() == 2;
  Results results(c, labels, rows.count, mirrored ? 2 : count);
  for (int64_t i = 0; i < rows.count; ++i) {
    auto scores = planes(rows.row(i), attrs.coefficients, attrs.intercepts, count);
    if (mirrored) scores = {-scores[0], scores[0]};
    transform_scores(transform, scores);
    const auto at = static_cast<size_t>(i);
    if (scores.size() > 1) {
      labels.write(greatest(scores), results.label, at);
    } else {
      // A single plane with at most one label: that label above the threshold, else none.
      const bool above = scores[0] >= (transform == PostTransform::none ? 0 : 0.5);
      if (labels.size() == 1 && above)
        labels.write(0, results.label, at);
      else if (labels.dtype() == DType::i64)
        results.label.data<int64_t>()[at] = above ? 1 : 0;
    }
    results.write(i, scores);
  }
}

void infer_linear_regressor(Inference& c) {
  const LinearRegressor& attrs = c.attrs<LinearRegressor>();
  check_post_transform(c, attrs.post_transform);
  if (attrs.targets < 1) c.fail("targets is less than 1");
  c.set(0, DType::f32);
  c.set(0, DType::f32, Dims{count_rows(c, 0), attrs.targets});
}

void reference_linear_regressor(Call& c) {
  const LinearRegressor& attrs = c.attrs<LinearRegressor>();
  const Rows rows = rows_of(c, 0);
  if (count_planes(c, attrs.coefficients, rows.width) != attrs.targets)
    c.fail("the coefficients are not of " + std::to_string(attrs.targets) + " targets");
  Tensor& y = c.out(0, DType::f32, Shape{rows.count, attrs.targets});
  for (int64_t i = 0; i < rows.count; ++i) {
    auto scores = planes(rows.row(i), attrs.coefficients, attrs.intercepts, attrs.targets);
    transform_scores(*post_transform_of(attrs.post_transform), scores);
    store_elements(y, i * attrs.targets, 1, attrs.targets, scores.data());
  }
}

/// Similarity of a sample and a support vector.
struct Kernel {
  enum class Kind : uint8_t { linear, poly, rbf, sigmoid } kind = Kind::linear;
  double gamma = 0, coef0 = 0, degree = 0;

  double operator()(std::span<const double> x, const float* vector) const {
    if (kind == Kind::rbf) {
      double distance = 0;
      for (size_t i = 0; i < x.size(); ++i) distance += (x[i] - vector[i]) * (x[i] - vector[i]);
      return std::exp(-gamma * distance);
    }
    const double product = dot(x, vector);
    if (kind == Kind::linear) return product;
    const double inner = gamma * product + coef0;
    return kind == Kind::poly ? std::pow(inner, degree) : std::tanh(inner);
  }
};

std::optional<Kernel> kernel_of(const std::string& name, const std::vector<float>& parameters) {
  using Kind = Kernel::Kind;
  const std::pair<std::string_view, Kind> kinds[] = {{"LINEAR", Kind::linear},
                                                     {"POLY", Kind::poly},
                                                     {"RBF", Kind::rbf},
                                                     {"SIGMOID", Kind::sigmoid}};
  for (const auto& [known, kind] : kinds) {
    if (known != name) continue;
    auto parameter = [&](size_t i) { return i < parameters.size() ? double{parameters[i]} : 0.0; };
    return Kernel{kind, parameter(0), parameter(1), parameter(2)};
  }
  return std::nullopt;
}

template <typename Attrs>
void check_svm(Inference& c, const Attrs& attrs) {
  check_post_transform(c, attrs.post_transform);
  if (!kernel_of(attrs.kernel_type, attrs.kernel_params))
    c.fail("kernel_type is '" + attrs.kernel_type + "'", "Use LINEAR, POLY, RBF or SIGMOID");
  if (attrs.coefficients.empty() || attrs.rho.empty()) c.fail("coefficients or rho are missing");
}

void infer_svm_regressor(Inference& c) {
  check_svm(c, c.attrs<SVMRegressor>());
  c.set(0, DType::f32);
  c.set(0, DType::f32, Dims{count_rows(c, 0), 1});
}

void reference_svm_regressor(Call& c) {
  const SVMRegressor& attrs = c.attrs<SVMRegressor>();
  const Kernel kernel = *kernel_of(attrs.kernel_type, attrs.kernel_params);
  const Rows rows = rows_of(c, 0);
  const auto width = static_cast<size_t>(rows.width);
  const auto vectors = static_cast<size_t>(std::max<int64_t>(attrs.n_supports, 0));
  if (vectors > 0)
    c.require(attrs.support_vectors.size() / vectors == width &&
                  attrs.support_vectors.size() % vectors == 0 &&
                  attrs.coefficients.size() == vectors,
              "support vectors, coefficients and features do not fit");
  else
    c.require(attrs.coefficients.size() == width, "coefficients and features differ in number");
  Tensor& y = c.out(0, DType::f32, Shape{rows.count, 1});
  for (int64_t i = 0; i < rows.count; ++i) {
    double score = attrs.rho[0];
    if (vectors == 0) score += kernel(rows.row(i), attrs.coefficients.data());
    for (size_t v = 0; v < vectors; ++v)
      score +=
          attrs.coefficients[v] * kernel(rows.row(i), attrs.support_vectors.data() + v * width);
    if (attrs.one_class) score = score > 0 ? 1 : -1;
    transform_scores(*post_transform_of(attrs.post_transform), std::span(&score, 1));
    store_elements(y, i, 1, 1, &score);
  }
}

/// Scores of a row and, with support vectors, the votes of all pairs of classes.
struct Votes {
  std::vector<double> scores;
  std::vector<int64_t> votes;
};

/// A classifier's lists, checked against each other and the number of features.
class Machine {
 public:
  Machine(Call& c, const SVMClassifier& attrs, int64_t width)
      : attrs_(attrs),
        kernel_(*kernel_of(attrs.kernel_type, attrs.kernel_params)),
        classes_(std::max(labels_of(attrs).size(), size_t{1})),
        width_(static_cast<size_t>(width)) {
    for (const int64_t count : attrs.vectors_per_class) {
      c.require(count >= 0 && count < (int64_t{1} << 40), "vectors_per_class is out of range");
      starts_.push_back(vectors_);
      vectors_ += static_cast<size_t>(count);
    }
    if (vectors_ == 0) {
      kernel_.kind = Kernel::Kind::linear;
      c.require(attrs.coefficients.size() == classes_ * width_,
                "coefficients do not fit classes and features");
      return;
    }
    c.require(attrs.vectors_per_class.size() == classes_, "vectors_per_class does not fit labels");
    c.require(classes_ >= 2, "support vectors need two classes");
    c.require(attrs.support_vectors.size() == vectors_ * width_,
              "support vectors do not fit the features");
    c.require(attrs.coefficients.size() == (classes_ - 1) * vectors_,
              "coefficients do not fit the support vectors");
    c.require(attrs.rho.size() >= pairs(), "rho does not fit the pairs of classes");
    c.require(
        attrs.prob_a.empty() || (attrs.prob_a.size() >= pairs() && attrs.prob_b.size() >= pairs()),
        "prob_a and prob_b do not fit the pairs of classes");
  }

  bool linear() const { return vectors_ == 0; }
  bool probabilities() const { return !linear() && !attrs_.prob_a.empty(); }
  size_t classes() const { return classes_; }
  size_t pairs() const { return classes_ * (classes_ - 1) / 2; }

  Votes vote(std::span<const double> row) const {
    Votes out;
    if (linear()) {
      for (size_t k = 0; k < classes_; ++k)
        out.scores.push_back(attrs_.rho[0] + kernel_(row, attrs_.coefficients.data() + k * width_));
      return out;
    }
    std::vector<double> similar;
    for (size_t v = 0; v < vectors_; ++v)
      similar.push_back(kernel_(row, attrs_.support_vectors.data() + v * width_));
    out.votes.assign(classes_, 0);
    for (size_t i = 0; i < classes_; ++i)
      for (size_t j = i + 1; j < classes_; ++j) {
        const double score =
            attrs_.rho[out.scores.size()] + weighted(similar, j - 1, i) + weighted(similar, i, j);
        out.scores.push_back(score);
        ++out.votes[score > 0 ? i : j];
      }
    return out;
  }

  /// Probabilities of the classes from the pairs' scores: the distribution that agrees best with
  /// the logistic estimate of each pair, found by repeated correction of one class at a time.
  std::vector<double> chances(std::span<const double> scores) const;

 private:
  /// Row `from` of the coefficients over the support vectors of a class.
  double weighted(std::span<const double> similar, size_t from, size_t of_class) const {
    double sum = 0;
    const size_t first = starts_[of_class];
    for (size_t v = first; v < first + static_cast<size_t>(attrs_.vectors_per_class[of_class]); ++v)
      sum += attrs_.coefficients[from * vectors_ + v] * similar[v];
    return sum;
  }

  const SVMClassifier& attrs_;
  Kernel kernel_;
  size_t classes_, width_, vectors_ = 0;
  std::vector<size_t> starts_;
};

std::vector<double> Machine::chances(std::span<const double> scores) const {
  const size_t k = classes_;
  std::vector<double> pair(k * k, 0), q(k * k, 0), p(k, 1.0 / static_cast<double>(k)), qp(k);
  size_t index = 0;
  for (size_t i = 0; i < k; ++i)
    for (size_t j = i + 1; j < k; ++j, ++index) {
      const double margin = scores[index] * attrs_.prob_a[index] + attrs_.prob_b[index];
      const double chance = std::clamp(1 / (1 + std::exp(margin)), 1e-7, 1 - 1e-7);
      pair[i * k + j] = chance;
      pair[j * k + i] = 1 - chance;
    }
  for (size_t t = 0; t < k; ++t)
    for (size_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += pair[j * k + t] * pair[j * k + t];
      q[t * k + j] = -pair[j * k + t] * pair[t * k + j];
    }
  for (size_t round = 0; round < std::max(k, size_t{100}); ++round) {
    double total = 0, error = 0;
    for (size_t t = 0; t < k; ++t) {
      qp[t] = 0;
      for (size_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
      total += p[t] * qp[t];
    }
    for (const double value : qp) error = std::fmax(error, std::fabs(value - total));
    if (error < 0.005 / static_cast<double>(k)) break;
    for (size_t t = 0; t < k; ++t) {
      const double step = (total - qp[t]) / q[t * k + t], shrink = 1 + step;
      p[t] += step;
      total = (total + step * (step * q[t * k + t] + 2 * qp[t])) / (shrink * shrink);
      for (size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + step * q[t * k + j]) / shrink;
        p[j] /= shrink;
      }
    }
  }
  return p;
}

int64_t svm_columns(const SVMClassifier& attrs) {
  const auto classes = static_cast<int64_t>(std::max(labels_of(attrs).size(), size_t{1}));
  int64_t vectors = 0;
  for (const int64_t count : attrs.vectors_per_class) vectors += count != 0;
  const int64_t scores =
      vectors == 0 || !attrs.prob_a.empty() ? classes : classes * (classes - 1) / 2;
  // The only score of two classes is joined by its opposite.
  return scores == 1 && attrs.rho.size() == 1 && classes == 2 ? 2 : scores;
}

void infer_svm_classifier(Inference& c) {
  const SVMClassifier& attrs = c.attrs<SVMClassifier>();
  check_svm(c, attrs);
  const DType dtype = labels_of(attrs).dtype();
  c.set(0, dtype);
  c.set(1, DType::f32);
  const Dim rows = count_rows(c, 0);
  c.set(0, dtype, Dims{rows});
  c.set(1, DType::f32, Dims{rows, svm_columns(attrs)});
}

/// The chosen class of a row, and its scores in their final form.
size_t decide(const Machine& machine, const Votes& vote, PostTransform transform,
              std::vector<double>& scores) {
  scores = machine.probabilities() ? machine.chances(vote.scores) : vote.scores;
  size_t chosen = vote.votes.empty()
                      ? greatest(scores)
                      : static_cast<size_t>(std::max_element(vote.votes.begin(), vote.votes.end()) -
                                            vote.votes.begin());
  if (machine.classes() == 1) chosen = scores[0] > 0 ? 1 : 0;
  if (scores.size() == 1 && machine.classes() == 2) scores = {-scores[0], scores[0]};
  transform_scores(transform, scores);
  return chosen;
}

void reference_svm_classifier(Call& c) {
  const SVMClassifier& attrs = c.attrs<SVMClassifier>();
  const Labels labels = labels_of(attrs);
  const Rows rows = rows_of(c, 0);
  const Machine machine(c, attrs, rows.width);
  Results results(c, labels, rows.count, svm_columns(attrs));
  std::vector<double> scores;
  for (int64_t i = 0; i < rows.count; ++i) {
    const size_t chosen = decide(machine, machine.vote(rows.row(i)),
                                 *post_transform_of(attrs.post_transform), scores);
    DAIS_CHECK(static_cast<int64_t>(scores.size()) == results.columns);
    labels.write(chosen, results.label, static_cast<size_t>(i));
    results.write(i, scores);
  }
}

constexpr std::string_view kDomain = "ai.onnx.ml";

}  // namespace

const Op LinearClassifier::op{
    .name = "linear_classifier",
    .attrs = &AttrsOf<LinearClassifier>::info,
    .infer = infer_linear_classifier,
    .reference = reference_linear_classifier,
    .onnx = {{.type = "LinearClassifier", .domain = kDomain}},
};
const Op LinearRegressor::op{
    .name = "linear_regressor",
    .attrs = &AttrsOf<LinearRegressor>::info,
    .infer = infer_linear_regressor,
    .reference = reference_linear_regressor,
    .onnx = {{.type = "LinearRegressor", .domain = kDomain}},
};
const Op SVMClassifier::op{
    .name = "svm_classifier",
    .attrs = &AttrsOf<SVMClassifier>::info,
    .infer = infer_svm_classifier,
    .reference = reference_svm_classifier,
    .onnx = {{.type = "SVMClassifier", .domain = kDomain}},
};
const Op SVMRegressor::op{
    .name = "svm_regressor",
    .attrs = &AttrsOf<SVMRegressor>::info,
    .infer = infer_svm_regressor,
    .reference = reference_svm_regressor,
    .onnx = {{.type = "SVMRegressor", .domain = kDomain}},
};

void define_linear(OpRegistry& registry) {
  for (const Op* op :
       {&LinearClassifier::op, &LinearRegressor::op, &SVMClassifier::op, &SVMRegressor::op})
    registry.add(*op);
}

}  // namespace dais
