// Ops on columns of numbers.
#include <cmath>

#include "ops/elementwise/elements.h"
#include "ops/ml/ml.h"
#include "ops/ml/ml_parts.h"
#include "ops/ml/scores.h"

namespace dais {
namespace {

void check_number(Inference& c) {
  if (c.dtype(0) == DType::string || is_complex(c.dtype(0)))
    c.fail("x is " + std::string(dtype_name(c.dtype(0))) + ", not a number type");
}

void infer_extractor(Inference& c) {
  c.set(0, c.dtype(0));
  Dims shape = c.shape(0);
  if (shape.empty()) c.fail("x is a scalar");
  const Dims& indices = c.shape(1);
  shape.back() = product(indices, 0, indices.size());
  if (shape.size() == 1) shape.insert(shape.begin(), 1);
  c.set(0, c.dtype(0), std::move(shape));
}

void reference_extractor(Call& c) {
  const Tensor& x = c.in(0);
  c.require(x.rank() > 0, "x is a scalar");
  const auto chosen = c.in(1).to_ints();
  const int64_t width = x.shape().back(), rows = x.shape().elements(0, x.rank() - 1);
  for (const int64_t index : chosen)
    if (index < 0 || index >= width)
      c.fail("index " + std::to_string(index) + " is not a column of x " + x.describe());
  Shape shape = x.rank() == 1 ? Shape{1, 0} : x.shape();
  shape[shape.rank() - 1] = static_cast<int64_t>(chosen.size());
  Tensor& y = c.out(0, x.dtype(), shape);
  visit_storage(x.dtype(), [&]<typename U>() {
    U* to = y.storage<U>();
    for (int64_t row = 0; row < rows; ++row)
      for (const int64_t index : chosen) *to++ = x.storage<U>()[row * width + index];
  });
}

void infer_same(Inference& c) {
  check_number(c);
  c.set(0, c.dtype(0));
  c.set(0, c.dtype(0), c.shape(0));
}
void infer_f32(Inference& c) {
  check_number(c);
  c.set(0, DType::f32);
  c.set(0, DType::f32, c.shape(0));
}

/// Writes map(value, column) of every element.
template <typename Map>
void map_elements(const Tensor& x, Tensor& y, Map map) {
  auto values = widen<double>(x);
  const size_t width = x.rank() == 0 ? 1 : static_cast<size_t>(x.shape().back());
  for (size_t i = 0; i < values.size(); ++i) values[i] = map(values[i], i % width);
  store_elements(y, 0, 1, y.elements(), values.data());
}

void reference_binarizer(Call& c) {
  const double threshold = c.attrs<Binarizer>().threshold;
  map_elements(c.in(0), c.out(0, c.in(0).shape()),
               [&](double x, size_t) { return x > threshold ? 1.0 : 0.0; });
}

/// One number for all columns, or each column's own.
template <typename T>
void check_columns(Call& c, const std::vector<T>& numbers, const char* name) {
  const Tensor& x = c.in(0);
  const int64_t width = x.rank() == 0 ? 1 : x.shape().back();
  if (numbers.size() != 1 && static_cast<int64_t>(numbers.size()) != width)
    c.fail(std::string(name) + " has " + std::to_string(numbers.size()) + " entries for " +
           std::to_string(width) + " columns");
}

void reference_scaler(Call& c) {
  const Scaler& attrs = c.attrs<Scaler>();
  check_columns(c, attrs.offset, "offset");
  check_columns(c, attrs.scale, "scale");
  auto of = [](const std::vector<float>& list, size_t column) {
    return double{list[list.size() == 1 ? 0 : column]};
  };
  map_elements(c.in(0), c.out(0, c.in(0).shape()), [&](double x, size_t column) {
    return (x - of(attrs.offset, column)) * of(attrs.scale, column);
  });
}

double norm_of(std::span<const double> row, const std::string& kind) {
  double out = kind == "MAX" ? -HUGE_VAL : 0;
  for (const double x : row)
    out = kind == "MAX" ? std::fmax(out, x) : kind == "L1" ? out + std::fabs(x) : out + x * x;
  return kind == "L2" ? std::sqrt(out) : out;
}

void infer_normalizer(Inference& c) {
  const std::string& norm = c.attrs<Normalizer>().norm;
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    c.fail("norm is '" + norm + "'", "Use MAX, L1 or L2");
  infer_f32(c);
}

void reference_normalizer(Call& c) {
  const std::string& kind = c.attrs<Normalizer>().norm;
  Rows rows = rows_of(c, 0);
  for (int64_t i = 0; i < rows.count; ++i) {
    const auto row =
        std::span(rows.values)
            .subspan(static_cast<size_t>(i * rows.width), static_cast<size_t>(rows.width));
    const double norm = norm_of(row, kind);
    if (norm != 0)
      for (double& x : row) x /= norm;
  }
  Tensor& y = c.out(0, c.in(0).shape());
  store_elements(y, 0, 1, y.elements(), rows.values.data());
}

template <typename C, typename T>
void impute(Call& c, const std::vector<T>& imputed, T replaced) {
  check_columns(c, imputed, "the list of imputed values");
  const Tensor& x = c.in(0);
  auto values = widen<C>(x);
  const size_t width = x.rank() == 0 ? 1 : static_cast<size_t>(x.shape().back());
  for (size_t i = 0; i < values.size(); ++i) {
    const bool missing =
        replaced != replaced ? values[i] != values[i] : values[i] == static_cast<C>(replaced);
    if (missing) values[i] = static_cast<C>(imputed[imputed.size() == 1 ? 0 : i % width]);
  }
  Tensor& y = c.out(0, x.shape());
  store_elements(y, 0, 1, y.elements(), values.data());
}

void reference_imputer(Call& c) {
  const Imputer& attrs = c.attrs<Imputer>();
  if (is_float(c.in(0).dtype()))
    impute<double>(c, attrs.imputed_value_floats, attrs.replaced_value_float);
  else
    impute<int64_t>(c, attrs.imputed_value_int64s, attrs.replaced_value_int64);
}

void infer_vectorizer(Inference& c) {
  const auto& widths = c.attrs<FeatureVectorizer>().inputdimensions;
  if (widths.size() != c.inputs()) c.fail("inputdimensions and inputs differ in number");
  int64_t total = 0;
  for (const int64_t width : widths) {
    if (width < 0 || width > (int64_t{1} << 40)) c.fail("an input dimension is out of range");
    total += width;
  }
  c.set(0, DType::f32);
  c.set(0, DType::f32, Dims{count_rows(c, 0), total});
}

void reference_vectorizer(Call& c) {
  const auto& widths = c.attrs<FeatureVectorizer>().inputdimensions;
  int64_t total = 0, column = 0;
  for (const int64_t width : widths) total += width;
  const int64_t count = rows_of(c, 0).count;
  Tensor& y = c.out(0, DType::f32, Shape{count, total});
  for (size_t i = 0; i < c.inputs(); ++i) {
    const Rows rows = rows_of(c, i);
    if (rows.count != count || rows.width != widths[i])
      c.fail("input " + std::to_string(i) + " is " + c.in(i).describe() + ", not [" +
             std::to_string(count) + "," + std::to_string(widths[i]) + "]");
    for (int64_t row = 0; row < count; ++row)
      store_elements(y, row * total + column, 1, rows.width, rows.row(row).data());
    column += rows.width;
  }
}

constexpr std::string_view kDomain = "ai.onnx.ml";

}  // namespace

const Op ArrayFeatureExtractor::op{
    .name = "array_feature_extractor",
    .attrs = &AttrsOf<ArrayFeatureExtractor>::info,
    .infer = infer_extractor,
    .reference = reference_extractor,
    .onnx = {{.type = "ArrayFeatureExtractor", .domain = kDomain}},
};
const Op Binarizer::op{
    .name = "binarizer",
    .attrs = &AttrsOf<Binarizer>::info,
    .infer = infer_same,
    .reference = reference_binarizer,
    .onnx = {{.type = "Binarizer", .domain = kDomain}},
};
const Op Scaler::op{
    .name = "scaler",
    .attrs = &AttrsOf<Scaler>::info,
    .infer = infer_f32,
    .reference = reference_scaler,
    .onnx = {{.type = "Scaler", .domain = kDomain}},
};
const Op Normalizer::op{
    .name = "normalizer",
    .attrs = &AttrsOf<Normalizer>::info,
    .infer = infer_normalizer,
    .reference = reference_normalizer,
    .onnx = {{.type = "Normalizer", .domain = kDomain}},
};
const Op Imputer::op{
    .name = "imputer",
    .attrs = &AttrsOf<Imputer>::info,
    .infer = infer_same,
    .reference = reference_imputer,
    .onnx = {{.type = "Imputer", .domain = kDomain}},
};
const Op FeatureVectorizer::op{
    .name = "feature_vectorizer",
    .attrs = &AttrsOf<FeatureVectorizer>::info,
    .infer = infer_vectorizer,
    .reference = reference_vectorizer,
    .onnx = {{.type = "FeatureVectorizer", .domain = kDomain}},
};

void define_features(OpRegistry& registry) {
  for (const Op* op : {&ArrayFeatureExtractor::op, &Binarizer::op, &Scaler::op, &Normalizer::op,
                       &Imputer::op, &FeatureVectorizer::op})
    registry.add(*op);
}

}  // namespace dais
