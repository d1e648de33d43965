// Ops between labels, categories and maps.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/cast/cast.h"
#include "ops/elementwise/elements.h"
#include "ops/ml/ml.h"
#include "ops/ml/ml_parts.h"
#include "ops/ml/scores.h"

namespace dais {
namespace {

/// Where keys stand in their list; the first of equal ones counts.
template <typename Key>
class Places {
 public:
  explicit Places(std::span<const Key> keys) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] != keys[i])
        nan_ = nan_.value_or(i);
      else
        places_.emplace(keys[i], i);
    }
  }
  std::optional<size_t> find(const Key& key) const {
    if (key != key) return nan_;
    const auto found = places_.find(key);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::unordered_map<Key, size_t> places_;
  std::optional<size_t> nan_;
};

/// Calls body(element number, its place among the keys or nothing) for every element of x.
template <typename Body>
void look_up(const Tensor& x, const Tensor& keys, Body&& body) {
  auto visit = [&](const auto& elements, const auto& places) {
    for (size_t i = 0; i < elements.size(); ++i) body(i, places.find(elements[i]));
  };
  if (x.dtype() == DType::string)
    return visit(x.data<std::string>(), Places<std::string>(keys.data<std::string>()));
  visit_compute(wide_of(x.dtype()), [&]<typename C>() {
    const auto known = widen<C>(keys);
    visit(widen<C>(x), Places<C>(known));
  });
}

void infer_label_encoder(Inference& c) {
  const LabelEncoder& attrs = c.attrs<LabelEncoder>();
  if (!attrs.keys || !attrs.values || attrs.keys.elements() != attrs.values.elements())
    c.fail("keys and values differ in number");
  if (!attrs.fallback || attrs.fallback.elements() != 1 ||
      attrs.fallback.dtype() != attrs.values.dtype())
    c.fail("the default is not one element of the values' type");
  if ((c.dtype(0) == DType::string) != (attrs.keys.dtype() == DType::string))
    c.fail("x is " + std::string(dtype_name(c.dtype(0))) + " but the keys are " +
           std::string(dtype_name(attrs.keys.dtype())));
  c.set(0, attrs.values.dtype());
  c.set(0, attrs.values.dtype(), c.shape(0));
}

void reference_label_encoder(Call& c) {
  const LabelEncoder& attrs = c.attrs<LabelEncoder>();
  const Tensor& x = c.in(0);
  Tensor& y = c.out(0, attrs.values.dtype(), x.shape());
  visit_storage(y.dtype(), [&]<typename U>() {
    look_up(x, attrs.keys, [&](size_t i, std::optional<size_t> place) {
      y.storage<U>()[i] = place ? attrs.values.storage<U>()[*place] : *attrs.fallback.storage<U>();
    });
  });
}

template <typename T>
Tensor list(const std::vector<T>& values) {
  return Tensor::of<T>(Shape{static_cast<int64_t>(values.size())}, std::span<const T>(values));
}

std::vector<std::string> strings(const OnnxImport& i, std::string_view name) {
  const AttrValue* value = i.attribute(name);
  const auto* held = value ? std::get_if<std::vector<std::string>>(value) : nullptr;
  return held ? *held : std::vector<std::string>{};
}

/// The list attribute `prefix`_int64s, _floats, _strings or _tensor, whichever is there.
Tensor list_attribute(const OnnxImport& i, const std::string& prefix) {
  if (const AttrValue* value = i.attribute(prefix + "_tensor"))
    if (const auto* tensor = std::get_if<Tensor>(value)) return *tensor;
  if (i.attribute(prefix + "_strings")) return list(strings(i, prefix + "_strings"));
  if (i.attribute(prefix + "_int64s")) return list(i.integers(prefix + "_int64s"));
  if (i.attribute(prefix + "_floats")) return list(i.numbers(prefix + "_floats"));
  i.fail("there are no " + prefix);
}

Tensor fallback_for(const OnnxImport& i, DType dtype) {
  if (const AttrValue* value = i.attribute("default_tensor"))
    if (const auto* tensor = std::get_if<Tensor>(value); tensor && tensor->dtype() == dtype)
      return *tensor;
  if (dtype == DType::string) return Tensor::scalar(i.text("default_string", "_Unused"));
  Tensor out(dtype, Shape{});
  const double number = is_float(dtype) ? i.number("default_float", -0.0f) : 0;
  const int64_t whole = i.integer("default_int64", -1);
  if (is_float(dtype))
    store_elements(out, 0, 1, 1, &number);
  else
    store_elements(out, 0, 1, 1, &whole);
  return out;
}

Values import_label_encoder(OnnxImport& i) {
  LabelEncoder attrs;
  attrs.keys = list_attribute(i, "keys");
  attrs.values = list_attribute(i, "values");
  attrs.fallback = fallback_for(i, attrs.values.dtype());
  return i.emit(std::move(attrs), i.in);
}

OnnxNode export_label_encoder(const Node& node, int64_t) {
  const LabelEncoder& attrs = *node.as<LabelEncoder>();
  OnnxNode out{.type = "LabelEncoder", .in = node.in};
  out.attributes = {{"keys_tensor", attrs.keys},
                    {"values_tensor", attrs.values},
                    {"default_tensor", attrs.fallback.reshaped(Shape{1})}};
  return out;
}

/// Strings to numbers or back, as the input's type asks: version 1 of LabelEncoder, whose numbers
/// are places in the list, and CategoryMapper.
Values import_two_way(OnnxImport& i, const std::vector<std::string>& names,
                      const std::vector<int64_t>& numbers) {
  if (names.size() != numbers.size()) i.fail("strings and integers differ in number");
  const bool text = i.has(0) && i.in[0]->type.dtype == DType::string;
  LabelEncoder attrs;
  attrs.keys = text ? list(names) : list(numbers);
  attrs.values = text ? list(numbers) : list(names);
  attrs.fallback = fallback_for(i, attrs.values.dtype());
  return i.emit(std::move(attrs), i.in);
}

Values import_label_encoder_1(OnnxImport& i) {
  const auto names = strings(i, "classes_strings");
  std::vector<int64_t> places;
  for (size_t k = 0; k < names.size(); ++k) places.push_back(static_cast<int64_t>(k));
  return import_two_way(i, names, places);
}

Values import_category_mapper(OnnxImport& i) {
  return import_two_way(i, strings(i, "cats_strings"), i.integers("cats_int64s"));
}

void infer_one_hot(Inference& c) {
  const OneHotEncoder& attrs = c.attrs<OneHotEncoder>();
  if (attrs.cats_int64s.empty() == attrs.cats_strings.empty())
    c.fail("one list of categories must be given");
  if ((c.dtype(0) == DType::string) == attrs.cats_strings.empty())
    c.fail("the categories are of another type than x");
  c.set(0, DType::f32);
  Dims shape = c.shape(0);
  shape.push_back(
      static_cast<int64_t>(std::max(attrs.cats_int64s.size(), attrs.cats_strings.size())));
  c.set(0, DType::f32, std::move(shape));
}

void reference_one_hot(Call& c) {
  const OneHotEncoder& attrs = c.attrs<OneHotEncoder>();
  const Tensor& x = c.in(0);
  const Tensor keys =
      attrs.cats_strings.empty() ? list(attrs.cats_int64s) : list(attrs.cats_strings);
  Shape shape = x.shape();
  shape.push_back(keys.elements());
  auto y = c.out(0, DType::f32, shape).data<float>();
  std::fill(y.begin(), y.end(), 0.0f);
  look_up(x, keys, [&](size_t i, std::optional<size_t> place) {
    if (place) y[i * static_cast<size_t>(keys.elements()) + *place] = 1;
    if (!place && !attrs.zeros) c.fail("element " + std::to_string(i) + " is of no category");
  });
}

Labels labels_of(const ZipMap& attrs) {
  return {attrs.classlabels_int64s, attrs.classlabels_strings};
}

void infer_zip_map(Inference& c) {
  const Labels labels = labels_of(c.attrs<ZipMap>());
  c.dtype(0);
  c.set(0, Type::sequence(Type::map(labels.dtype(), Type::tensor(DType::f32))));
}

void reference_zip_map(Call& c) {
  const Labels labels = labels_of(c.attrs<ZipMap>());
  const Rows rows = rows_of(c, 0);
  if (rows.width != static_cast<int64_t>(labels.size()))
    c.fail("there are " + std::to_string(labels.size()) + " labels for " +
           std::to_string(rows.width) + " scores");
  std::vector<Datum> maps;
  for (int64_t i = 0; i < rows.count; ++i) {
    Tensor keys(labels.dtype(), Shape{rows.width}), values(DType::f32, Shape{rows.width});
    for (size_t k = 0; k < labels.size(); ++k) labels.write(k, keys, k);
    store_elements(values, 0, 1, rows.width, rows.row(i).data());
    maps.push_back(Datum::map(std::move(keys), std::move(values)));
  }
  c.set(0, Datum::sequence(std::move(maps)));
}

/// Element type of a map input's values.
DType map_value_dtype(Inference& c) {
  const Type& type = c.type(0);
  if (type.kind != Type::Kind::map) c.fail("the input is " + type.text() + ", not a map");
  return type.element ? type.element->dtype : DType::f32;
}

const Tensor& map_keys(Call& c) {
  c.require(c.has(0) && c.datum(0).kind == Datum::Kind::map, "the input is not a map");
  return c.datum(0).tensor;
}
const Tensor& map_values(Call& c) { return c.datum(0).items->at(0).tensor; }

void infer_dict_vectorizer(Inference& c) {
  const DictVectorizer& attrs = c.attrs<DictVectorizer>();
  const auto size = std::max(attrs.int64_vocabulary.size(), attrs.string_vocabulary.size());
  c.set(0, map_value_dtype(c), Dims{1, static_cast<int64_t>(size)});
}

void reference_dict_vectorizer(Call& c) {
  const DictVectorizer& attrs = c.attrs<DictVectorizer>();
  const Tensor words = attrs.string_vocabulary.empty() ? list(attrs.int64_vocabulary)
                                                       : list(attrs.string_vocabulary);
  const Tensor &keys = map_keys(c), &values = map_values(c);
  c.require(keys.dtype() == words.dtype(), "the vocabulary is of another type than the keys");
  Tensor& y = c.out(0, values.dtype(), Shape{1, words.elements()});
  visit_storage(y.dtype(), [&]<typename U>() {
    look_up(words, keys, [&](size_t i, std::optional<size_t> place) {
      y.storage<U>()[i] = place ? values.storage<U>()[*place] : U{};
    });
  });
}

DType cast_map_dtype(const CastMap& attrs) {
  if (attrs.cast_to == "TO_STRING") return DType::string;
  return attrs.cast_to == "TO_INT64" ? DType::i64 : DType::f32;
}

void infer_cast_map(Inference& c) {
  const CastMap& attrs = c.attrs<CastMap>();
  map_value_dtype(c);
  const bool sparse = attrs.map_form == "SPARSE";
  if (!sparse && attrs.map_form != "DENSE") c.fail("map_form is '" + attrs.map_form + "'");
  if (attrs.max_map < 0) c.fail("max_map is negative");
  c.set(0, cast_map_dtype(attrs), Dims{1, sparse ? Dim(attrs.max_map) : c.fresh()});
}

/// Another element type, by the rules of Cast.
Tensor converted(const Tensor& values, DType dtype) {
  Graph graph;
  graph.outputs = {graph.add(Cast{.to = dtype}, {graph.add_constant(values)})};
  return evaluate(graph, {})[0].tensor;
}

void reference_cast_map(Call& c) {
  const CastMap& attrs = c.attrs<CastMap>();
  const auto keys = map_keys(c).to_ints();
  const Tensor values = converted(map_values(c), cast_map_dtype(attrs));
  const bool sparse = attrs.map_form == "SPARSE";
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  const int64_t width = sparse ? attrs.max_map : static_cast<int64_t>(keys.size());
  Tensor& y = c.out(0, values.dtype(), Shape{1, width});
  visit_storage(y.dtype(), [&]<typename U>() {
    std::fill_n(y.storage<U>(), width, U{});
    for (size_t i = 0; i < order.size(); ++i) {
      const int64_t column = sparse ? keys[order[i]] : static_cast<int64_t>(i);
      if (column < 0 || column >= width)
        c.fail("key " + std::to_string(column) + " lies beyond max_map");
      y.storage<U>()[column] = values.storage<U>()[order[i]];
    }
  });
}

constexpr std::string_view kDomain = "ai.onnx.ml";

}  // namespace

const Op LabelEncoder::op{
    .name = "label_encoder",
    .attrs = &AttrsOf<LabelEncoder>::info,
    .infer = infer_label_encoder,
    .reference = reference_label_encoder,
    .onnx =
        {{.type = "LabelEncoder", .until = 1, .domain = kDomain, .import = import_label_encoder_1},
         {.type = "LabelEncoder",
          .since = 2,
          .domain = kDomain,
          .import = import_label_encoder,
          .export_as = export_label_encoder},
         {.type = "CategoryMapper", .domain = kDomain, .import = import_category_mapper}},
};
const Op OneHotEncoder::op{
    .name = "one_hot_encoder",
    .attrs = &AttrsOf<OneHotEncoder>::info,
    .infer = infer_one_hot,
    .reference = reference_one_hot,
    .onnx = {{.type = "OneHotEncoder", .domain = kDomain}},
};
const Op ZipMap::op{
    .name = "zip_map",
    .attrs = &AttrsOf<ZipMap>::info,
    .infer = infer_zip_map,
    .reference = reference_zip_map,
    .onnx = {{.type = "ZipMap", .domain = kDomain}},
};
const Op DictVectorizer::op{
    .name = "dict_vectorizer",
    .attrs = &AttrsOf<DictVectorizer>::info,
    .infer = infer_dict_vectorizer,
    .reference = reference_dict_vectorizer,
    .onnx = {{.type = "DictVectorizer", .domain = kDomain}},
};
const Op CastMap::op{
    .name = "cast_map",
    .attrs = &AttrsOf<CastMap>::info,
    .infer = infer_cast_map,
    .reference = reference_cast_map,
    .onnx = {{.type = "CastMap", .domain = kDomain}},
};

void define_labels(OpRegistry& registry) {
  for (const Op* op :
       {&LabelEncoder::op, &OneHotEncoder::op, &ZipMap::op, &DictVectorizer::op, &CastMap::op})
    registry.add(*op);
}

}  // namespace dais
