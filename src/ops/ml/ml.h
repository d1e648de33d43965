#pragma once

#include "ir/op.h"

namespace dais {

// Operators of the domain ai.onnx.ml. Rows are samples; a 1-D input is one row. Numbers come in any
// type, and results are f32 unless said otherwise.

/// (x: [..., F], indices) → the chosen columns of x, of its type; 1-D x gives one row.
struct ArrayFeatureExtractor {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// 1 where x lies above the threshold, else 0, of x's type.
struct Binarizer {
  float threshold = 0;
  static constexpr auto fields = std::tuple{field("threshold", &Binarizer::threshold)};
  static const Op op;
};

/// (x - offset) * scale, with one offset and scale or one per column.
struct Scaler {
  std::vector<float> offset, scale;
  static constexpr auto fields =
      std::tuple{field("offset", &Scaler::offset), field("scale", &Scaler::scale)};
  static const Op op;
};

/// Divides each row by its MAX, L1 or L2 norm; a row of norm zero stays.
struct Normalizer {
  std::string norm = "MAX";
  static constexpr auto fields = std::tuple{field("norm", &Normalizer::norm)};
  static const Op op;
};

/// Replaces one value (which may be NaN) by a number for all or for each column; of x's type.
struct Imputer {
  std::vector<float> imputed_value_floats = {};
  std::vector<int64_t> imputed_value_int64s = {};
  float replaced_value_float = 0;
  int64_t replaced_value_int64 = 0;
  static constexpr auto fields =
      std::tuple{field("imputed_value_floats", &Imputer::imputed_value_floats),
                 field("imputed_value_int64s", &Imputer::imputed_value_int64s),
                 field("replaced_value_float", &Imputer::replaced_value_float),
                 field("replaced_value_int64", &Imputer::replaced_value_int64)};
  static const Op op;
};

/// Joins the inputs' columns; each input gives as many as inputdimensions says.
struct FeatureVectorizer {
  std::vector<int64_t> inputdimensions = {};
  static constexpr auto fields =
      std::tuple{field("inputdimensions", &FeatureVectorizer::inputdimensions)};
  static const Op op;
};

/// x.shape + [categories]: one at the category's place. An unknown one gives zeros, or is an error
/// unless `zeros`.
struct OneHotEncoder {
  std::vector<int64_t> cats_int64s = {};
  std::vector<std::string> cats_strings = {};
  bool zeros = true;
  static constexpr auto fields = std::tuple{field("cats_int64s", &OneHotEncoder::cats_int64s),
                                            field("cats_strings", &OneHotEncoder::cats_strings),
                                            field("zeros", &OneHotEncoder::zeros)};
  static const Op op;
};

/// Looks each element up among the keys and gives the value at that place, of the values' type.
/// A NaN key matches NaN.
struct LabelEncoder {
  Tensor keys, values;
  Tensor fallback = {};  ///< one element, for what is not among the keys
  static constexpr auto fields =
      std::tuple{field("keys", &LabelEncoder::keys), field("values", &LabelEncoder::values),
                 field("fallback", &LabelEncoder::fallback)};
  static const Op op;
};

/// (scores: [N,C]) → a sequence of N maps from label to score.
struct ZipMap {
  std::vector<int64_t> classlabels_int64s = {};
  std::vector<std::string> classlabels_strings = {};
  static constexpr auto fields =
      std::tuple{field("classlabels_int64s", &ZipMap::classlabels_int64s),
                 field("classlabels_strings", &ZipMap::classlabels_strings)};
  static const Op op;
};

/// (map) → [1, vocabulary]: the map's values in the order of the vocabulary, zero where absent.
struct DictVectorizer {
  std::vector<int64_t> int64_vocabulary = {};
  std::vector<std::string> string_vocabulary = {};
  static constexpr auto fields =
      std::tuple{field("int64_vocabulary", &DictVectorizer::int64_vocabulary),
                 field("string_vocabulary", &DictVectorizer::string_vocabulary)};
  static const Op op;
};

/// (map from i64) → [1, n]: the values in order of keys (DENSE), or each at the column of its key
/// (SPARSE, max_map columns).
struct CastMap {
  std::string cast_to = "TO_FLOAT";  ///< or TO_STRING, TO_INT64
  std::string map_form = "DENSE";
  int64_t max_map = 1;
  static constexpr auto fields =
      std::tuple{field("cast_to", &CastMap::cast_to), field("map_form", &CastMap::map_form),
                 field("max_map", &CastMap::max_map)};
  static const Op op;
};

/// x · coefficientsᵀ + intercepts → labels (i64 or string) and scores.
struct LinearClassifier {
  std::vector<int64_t> classlabels_ints = {};
  std::vector<std::string> classlabels_strings = {};
  std::vector<float> coefficients, intercepts;
  int64_t multi_class = 0;
  std::string post_transform = "NONE";
  static constexpr auto fields =
      std::tuple{field("classlabels_ints", &LinearClassifier::classlabels_ints),
                 field("classlabels_strings", &LinearClassifier::classlabels_strings),
                 field("coefficients", &LinearClassifier::coefficients),
                 field("intercepts", &LinearClassifier::intercepts),
                 field("multi_class", &LinearClassifier::multi_class),
                 field("post_transform", &LinearClassifier::post_transform)};
  static const Op op;
};

struct LinearRegressor {
  std::vector<float> coefficients, intercepts;
  std::string post_transform = "NONE";
  int64_t targets = 1;
  static constexpr auto fields =
      std::tuple{field("coefficients", &LinearRegressor::coefficients),
                 field("intercepts", &LinearRegressor::intercepts),
                 field("post_transform", &LinearRegressor::post_transform),
                 field("targets", &LinearRegressor::targets)};
  static const Op op;
};

/// Support vectors with one vote for each pair of classes, or one plane per class when there are
/// none. kernel_params: gamma, coef0, degree.
struct SVMClassifier {
  std::vector<int64_t> classlabels_ints = {};
  std::vector<std::string> classlabels_strings = {};
  std::vector<float> coefficients, kernel_params;
  std::string kernel_type = "LINEAR", post_transform = "NONE";
  std::vector<float> prob_a, prob_b, rho, support_vectors;
  std::vector<int64_t> vectors_per_class = {};
  static constexpr auto fields =
      std::tuple{field("classlabels_ints", &SVMClassifier::classlabels_ints),
                 field("classlabels_strings", &SVMClassifier::classlabels_strings),
                 field("coefficients", &SVMClassifier::coefficients),
                 field("kernel_params", &SVMClassifier::kernel_params),
                 field("kernel_type", &SVMClassifier::kernel_type),
                 field("post_transform", &SVMClassifier::post_transform),
                 field("prob_a", &SVMClassifier::prob_a),
                 field("prob_b", &SVMClassifier::prob_b),
                 field("rho", &SVMClassifier::rho),
                 field("support_vectors", &SVMClassifier::support_vectors),
                 field("vectors_per_class", &SVMClassifier::vectors_per_class)};
  static const Op op;
};

struct SVMRegressor {
  std::vector<float> coefficients, kernel_params;
  std::string kernel_type = "LINEAR", post_transform = "NONE";
  int64_t n_supports = 0;
  bool one_class = false;
  std::vector<float> rho, support_vectors;
  static constexpr auto fields =
      std::tuple{field("coefficients", &SVMRegressor::coefficients),
                 field("kernel_params", &SVMRegressor::kernel_params),
                 field("kernel_type", &SVMRegressor::kernel_type),
                 field("post_transform", &SVMRegressor::post_transform),
                 field("n_supports", &SVMRegressor::n_supports),
                 field("one_class", &SVMRegressor::one_class),
                 field("rho", &SVMRegressor::rho),
                 field("support_vectors", &SVMRegressor::support_vectors)};
  static const Op op;
};

}  // namespace dais
