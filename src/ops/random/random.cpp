#include "ops/random/random.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/philox.h"
#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/elementwise/elements.h"
#include "ops/elementwise/elementwise.h"
#include "ops/generate/generate.h"
#include "ops/gradient.h"
#include "ops/shape/shape.h"

namespace dais {

namespace {

/// Text to a key, the same in every process.
uint64_t key_of(std::string_view text) {
  uint64_t key = 0xcbf29ce484222325;
  for (const char letter : text) key = (key ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  return key;
}

template <typename Seed>
Philox generator(const Call& c, const std::optional<Seed>& seed) {
  if (seed) return Philox(std::bit_cast<uint64_t>(static_cast<double>(*seed)));
  static std::atomic<uint64_t> runs{0};
  return Philox(key_of(c.node.name), ++runs);
}

void check_float(Inference& c, DType dtype) {
  if (!is_float(dtype))
    c.fail("random numbers of element type " + std::string(dtype_name(dtype)) + " are not defined");
}

/// Every node and every step has a stream of its own.
Philox dropout_generator(const Call& c) {
  const auto& attrs = c.attrs<Dropout>();
  if (!attrs.seed || !c.has(3)) return generator(c, attrs.seed);
  c.require(c.in(3).elements() == 1, "the step is not one number");
  const auto step = static_cast<uint64_t>(c.in(3).to_ints()[0]);
  return Philox(static_cast<uint64_t>(*attrs.seed),
                (static_cast<uint64_t>(attrs.stream) << 40) ^ step);
}

template <typename Draw>
void fill(Tensor& y, Draw draw) {
  std::vector<double> values(static_cast<size_t>(y.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = draw(i);
  store_elements(y, 0, 1, y.elements(), values.data());
}

template <typename Struct>
void draw_into(Call& c, Tensor& y, const Struct& attrs) {
  const Philox random = generator(c, attrs.seed);
  if constexpr (requires { attrs.mean; })
    fill(y, [&](uint64_t i) { return attrs.mean + attrs.scale * random.normal(i); });
  else
    fill(y, [&](uint64_t i) {
      return attrs.low + (double{attrs.high} - attrs.low) * random.uniform(i);
    });
}

template <typename Struct>
void infer_shaped(Inference& c) {
  const Struct& attrs = c.attrs<Struct>();
  check_float(c, attrs.dtype);
  for (const int64_t size : attrs.shape)
    if (size < 0) c.fail("size " + std::to_string(size) + " is negative");
  c.set(0, attrs.dtype, Dims(attrs.shape.begin(), attrs.shape.end()));
}
template <typename Struct>
void reference_shaped(Call& c) {
  const Struct& attrs = c.attrs<Struct>();
  draw_into(c, c.out(0, attrs.dtype, Shape(attrs.shape)), attrs);
}

template <typename Struct>
DType dtype_like(const Struct& attrs, DType like) {
  return attrs.dtype == DType::undefined ? like : attrs.dtype;
}
template <typename Struct>
void infer_like(Inference& c) {
  const DType dtype = dtype_like(c.attrs<Struct>(), c.dtype(0));
  if (!std::is_same_v<Struct, Bernoulli>) check_float(c, dtype);
  c.set(0, dtype);
  c.set(0, dtype, c.shape(0));
}
template <typename Struct>
void reference_like(Call& c) {
  const Struct& attrs = c.attrs<Struct>();
  draw_into(c, c.out(0, dtype_like(attrs, c.in(0).dtype()), c.in(0).shape()), attrs);
}

void reference_bernoulli(Call& c) {
  const Bernoulli& attrs = c.attrs<Bernoulli>();
  const Philox random = generator(c, attrs.seed);
  const auto chances = widen<double>(c.in(0));
  fill(c.out(0, dtype_like(attrs, c.in(0).dtype()), c.in(0).shape()),
       [&](uint64_t i) { return random.uniform(i) < chances[i] ? 1.0 : 0.0; });
}

void infer_multinomial(Inference& c) {
  const Multinomial& attrs = c.attrs<Multinomial>();
  if (attrs.dtype != DType::i32 && attrs.dtype != DType::i64) c.fail("dtype is not i32 or i64");
  if (attrs.sample_size < 0) c.fail("sample_size is negative");
  c.set(0, attrs.dtype);
  c.require(c.rank(0) == 2, "the input is not [batch, classes]");
  c.set(0, attrs.dtype, Dims{c.shape(0)[0], attrs.sample_size});
}

/// Running sums of the probabilities that a row of logarithms stands for, up to a common factor.
std::vector<double> running_chances(std::span<const double> logs) {
  double top = -INFINITY, total = 0;
  for (const double value : logs) top = std::fmax(top, value);
  std::vector<double> out;
  for (const double value : logs) out.push_back(total += std::exp(value - top));
  return out;
}

void reference_multinomial(Call& c) {
  const Multinomial& attrs = c.attrs<Multinomial>();
  const Tensor& x = c.in(0);
  c.require(x.rank() == 2, "the input is not [batch, classes]");
  const int64_t batch = x.shape()[0], classes = x.shape()[1];
  Tensor& y = c.out(0, attrs.dtype, Shape{batch, attrs.sample_size});
  if (y.elements() == 0) return;
  c.require(classes > 0, "there is no class to choose");
  const Philox random = generator(c, attrs.seed);
  const auto logs = widen<double>(x);
  std::vector<int64_t> chosen;
  for (int64_t row = 0; row < batch; ++row) {
    const auto sums = running_chances(
        std::span(logs).subspan(static_cast<size_t>(row * classes), static_cast<size_t>(classes)));
    for (int64_t i = 0; i < attrs.sample_size; ++i) {
      const double point = random.uniform(chosen.size()) * sums.back();
      const auto found = std::upper_bound(sums.begin(), sums.end(), point);
      chosen.push_back(std::min<int64_t>(found - sums.begin(), classes - 1));
    }
  }
  store_elements(y, 0, 1, y.elements(), chosen.data());
}

void infer_dropout(Inference& c) {
  check_float(c, c.dtype(0));
  c.set(0, c.dtype(0));
  c.set(1, DType::boolean);
  c.set(0, c.dtype(0), c.shape(0));
  c.set(1, DType::boolean, c.shape(0));
}

void reference_dropout(Call& c) {
  const Tensor& x = c.in(0);
  const bool training = c.has(2) && c.in(2).elements() > 0 && c.in(2).to_double() != 0;
  const double ratio = !training ? 0 : c.has(1) ? c.in(1).to_double() : 0.5;
  c.require(ratio >= 0 && ratio <= 1, "the ratio is not between 0 and 1");
  const Philox random = dropout_generator(c);
  auto keep = [&](size_t i) { return ratio == 0 || random.uniform(i) >= ratio; };
  auto values = widen<double>(x);
  const double scale = ratio < 1 ? 1 / (1 - ratio) : 0;
  if (ratio != 0)
    for (size_t i = 0; i < values.size(); ++i) values[i] = keep(i) ? values[i] * scale : 0;
  Tensor& y = c.out(0, x.shape());
  store_elements(y, 0, 1, y.elements(), values.data());
  if (c.outputs() < 2) return;
  auto mask = c.out(1, x.shape()).data<bool>();
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = keep(i);
}

/// With a seed the same node drops the same elements of dy; else the mask has to be kept.
Values gradient_dropout(Graph& g, const Node& n, std::span<Value* const> given) {
  Values in = n.in;
  in[0] = given[0];
  Values out(n.in.size(), nullptr);
  if (n.as<Dropout>()->seed) {
    out[0] = g.add(*n.as<Dropout>(), in);
    return out;
  }
  need_outputs(g, n, 2);
  const Term dy(g, given[0]), mask(g, n.outs[1]);
  if (n.has(1) && !n.in[1]->constant())
    no_gradient(n, "its ratio is not a constant", "Give the node a seed");
  const double ratio = n.has(1) ? n.in[1]->constant()->to_double() : 0.5;
  Term kept = where(mask, dy / (1 - ratio), 0);
  // Outside training nothing is scaled.
  if (!n.has(2))
    kept = dy;
  else
    kept = where(Term(g, n.in[2]), kept, dy);
  out[0] = kept;
  return out;
}

/// Before opset 10 the mask was of the data's type; outside training it is all true.
Values old_masked(OnnxImport& i) {
  Values out{i.graph.add(Identity{}, {i.input(0)}, std::string(i.name))};
  const Tensor one = i.scalar_like(1, i.input(0))->constant()->reshaped({1});
  Value* sizes = i.graph.add(ShapeOf{}, {i.input(0)});
  out.push_back(i.graph.add(ConstantOfShape{.value = one}, {sizes}));
  return out;
}

/// Before opset 12 the ratio was an attribute, and there was no training form that models are
/// exported with. The node stays, so that training can turn it on; a pass drops it otherwise.
Values import_dropout(OnnxImport& i) {
  if (!i.has(0)) i.fail("the input is missing");
  if (i.opset < 10 && i.outputs > 1) return old_masked(i);
  auto attrs = i.attrs<Dropout>();
  if (i.opset >= 12) return i.emit(attrs, i.in);
  attrs.seed = {};
  Value* ratio = i.constant(Tensor::scalar(i.number("ratio", 0.5f)));
  return i.emit(attrs, {i.input(0), ratio, i.constant(Tensor::scalar(false))});
}

}  // namespace

const Op RandomNormal::op{
    .name = "random_normal",
    .attrs = &AttrsOf<RandomNormal>::info,
    .infer = infer_shaped<RandomNormal>,
    .reference = reference_shaped<RandomNormal>,
    .onnx = {{"RandomNormal", 1}},
    .pure = false,
};
const Op RandomUniform::op{
    .name = "random_uniform",
    .attrs = &AttrsOf<RandomUniform>::info,
    .infer = infer_shaped<RandomUniform>,
    .reference = reference_shaped<RandomUniform>,
    .onnx = {{"RandomUniform", 1}},
    .pure = false,
};
const Op RandomNormalLike::op{
    .name = "random_normal_like",
    .attrs = &AttrsOf<RandomNormalLike>::info,
    .infer = infer_like<RandomNormalLike>,
    .reference = reference_like<RandomNormalLike>,
    .onnx = {{"RandomNormalLike", 1}},
    .pure = false,
};
const Op RandomUniformLike::op{
    .name = "random_uniform_like",
    .attrs = &AttrsOf<RandomUniformLike>::info,
    .infer = infer_like<RandomUniformLike>,
    .reference = reference_like<RandomUniformLike>,
    .onnx = {{"RandomUniformLike", 1}},
    .pure = false,
};
const Op Bernoulli::op{
    .name = "bernoulli",
    .attrs = &AttrsOf<Bernoulli>::info,
    .infer = infer_like<Bernoulli>,
    .reference = reference_bernoulli,
    .onnx = {{"Bernoulli", 15}},
    .pure = false,
};
const Op Multinomial::op{
    .name = "multinomial",
    .attrs = &AttrsOf<Multinomial>::info,
    .infer = infer_multinomial,
    .reference = reference_multinomial,
    .onnx = {{"Multinomial", 7}},
    .pure = false,
};
const Op Dropout::op{
    .name = "dropout",
    .attrs = &AttrsOf<Dropout>::info,
    .infer = infer_dropout,
    .reference = reference_dropout,
    .gradient = gradient_dropout,
    .onnx = {{.type = "Dropout", .import = import_dropout, .export_as = export_plainly}},
    .pure = false,
};

namespace ops {
void define_random(OpRegistry& registry) {
  for (const Op* op :
       {&RandomNormal::op, &RandomUniform::op, &RandomNormalLike::op, &RandomUniformLike::op,
        &Bernoulli::op, &Multinomial::op, &Dropout::op, &SteppedDropout::op})
    registry.add(*op);
}
}  // namespace ops
}  // namespace dais
