#pragma once

#include <algorithm>
#include <span>

#include "ir/call.h"
#include "ir/inference.h"

namespace dais {

/// What classifiers and regressors do to a row of raw scores.
enum class PostTransform : uint8_t { none, softmax, logistic, softmax_zero, probit };
std::optional<PostTransform> post_transform_of(std::string_view name);
void transform_scores(PostTransform transform, std::span<double> scores);

/// The class labels of a model: integers or strings.
struct Labels {
  const std::vector<int64_t>& ints;
  const std::vector<std::string>& strings;

  size_t size() const { return std::max(ints.size(), strings.size()); }
  DType dtype() const { return strings.empty() ? DType::i64 : DType::string; }
  /// Writes label `index`; without labels the index itself.
  void write(size_t index, Tensor& to, size_t at) const;
};

/// Samples as a matrix: [N, F], or [F] as one row.
struct Rows {
  int64_t count = 1, width = 1;
  std::vector<double> values;

  std::span<const double> row(int64_t i) const {
    return std::span(values).subspan(static_cast<size_t>(i * width), static_cast<size_t>(width));
  }
};
Rows rows_of(Call& c, size_t input);
/// The number of samples that rows_of will find.
Dim count_rows(Inference& c, size_t input);

void check_post_transform(Inference& c, const std::string& name);

}  // namespace dais
