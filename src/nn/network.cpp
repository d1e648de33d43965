#include <algorithm>
#include <utility>

#include "nn/body.h"
#include "onnx/exporter.h"

namespace dais::nn {

std::vector<int64_t> Sizes::along(size_t axes) const {
  if (values_.size() == axes) return values_;
  if (values_.size() == 1) return std::vector<int64_t>(axes, values_[0]);
  throw Error(
      Code::invalid_argument,
      std::to_string(values_.size()) + " sizes for " + std::to_string(axes) + " spatial axes", "",
      "Give one for all, or one for each");
}

std::string NetworkBody::layer_name(const std::string& wanted, const char* kind) {
  if (!wanted.empty()) return prefix + wanted;
  const std::string name = prefix + kind;
  return name + std::to_string(++numbers[name]);
}

Value NetworkBody::parameter(std::string name, const std::vector<int64_t>& shape, Init init,
                             Fans fans) {
  dais::Value* value = graph.add_constant(Tensor(DType::f32, Shape(shape)), std::move(name));
  parameters.push_back({value, init, fans});
  return wrap(value);
}

Value NetworkBody::fixed_constant(Tensor tensor, std::string name) {
  const bool real = is_float(tensor.dtype());
  dais::Value* value = graph.add_constant(std::move(tensor), std::move(name));
  if (real) fixed.push_back(value->name);
  return wrap(value);
}

void NetworkBody::fill() {
  for (Parameter& parameter : parameters) {
    if (std::exchange(parameter.filled, true)) continue;
    Tensor elements = *parameter.value->constant();
    draw(elements, parameter.init, parameter.fans, seed, parameter.value->name);
  }
}

size_t Value::rank() const { return value_->type.shape->size(); }

int64_t Value::size(int64_t axis) const {
  const Dims& dims = *value_->type.shape;
  const Dim& dim = dims[normalize_axis(axis, dims.size())];
  if (!dim.is_constant())
    throw Error(Code::invalid_argument,
                "size " + std::to_string(axis) + " of " + value_->type.text() + " is open",
                body_->prefix, "Only sizes that are numbers can be asked for");
  return *dim.constant();
}

std::vector<int64_t> Value::shape() const {
  std::vector<int64_t> out;
  for (const Dim& dim : *value_->type.shape) out.push_back(dim.constant().value_or(-1));
  return out;
}

Network::Network(std::string name, uint64_t seed) : body_(std::make_unique<NetworkBody>()) {
  body_->graph.name = std::move(name);
  body_->seed = seed;
}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

Value Network::input(std::string name, const std::vector<Extent>& shape, DType dtype) {
  Dims dims;
  for (const Extent& extent : shape)
    dims.push_back(extent.symbol.empty() ? Dim(extent.size) : Dim::symbol(extent.symbol));
  return body_->wrap(body_->graph.add_input(Type::tensor(dtype, dims), std::move(name)));
}

Value Network::image(int64_t channels, int64_t height, int64_t width) {
  return input("image", {"batch", channels, height, width});
}

Value Network::tokens() { return input("tokens", {"batch", "length"}, DType::i64); }

Value Network::parameter(const std::string& name, const std::vector<int64_t>& shape, Init init) {
  NetworkBody::Fans fans;
  double window = 1;
  for (size_t i = 2; i < shape.size(); ++i) window *= static_cast<double>(shape[i]);
  if (!shape.empty()) fans.in = fans.out = static_cast<double>(shape[0]) * window;
  if (shape.size() > 1)
    (shape.size() > 2 ? fans.in : fans.out) = static_cast<double>(shape[1]) * window;
  return body_->parameter(body_->layer_name(name, "parameter"), shape, init, fans);
}

Value Network::constant(Tensor tensor, const std::string& name) {
  return body_->fixed_constant(std::move(tensor), body_->layer_name(name, "constant"));
}

void Network::output(std::string name, Value value) {
  dais::Value* inner = NetworkBody::inner(value);
  DAIS_CHECK(&NetworkBody::of(value) == body_.get());
  if (inner->producer()) body_->graph.rename(*inner, name);
  body_->graph.outputs.push_back(inner);
  body_->outputs.push_back(std::move(name));
}

void Network::note(std::string key, std::string text) {
  body_->notes[std::move(key)] = std::move(text);
}

std::vector<ParameterInfo> Network::parameters() const {
  std::vector<ParameterInfo> out;
  for (const NetworkBody::Parameter& parameter : body_->parameters) {
    const Shape& shape = parameter.value->constant()->shape();
    out.push_back({parameter.value->name, shape.vector(), shape.elements()});
  }
  return out;
}

int64_t Network::parameter_count() const {
  int64_t count = 0;
  for (const ParameterInfo& parameter : parameters()) count += parameter.elements;
  return count;
}

size_t Network::node_count() const { return body_->graph.size(); }

Graph& Network::graph() {
  body_->fill();
  return body_->graph;
}

namespace {

onnx::Model model_of(NetworkBody& body) {
  if (body.graph.outputs.empty())
    throw Error(Code::invalid_argument, "network '" + body.graph.name + "' has no output", "",
                "Name its result with output()");
  body.fill();
  onnx::Model model;
  model.graph = body.graph.clone();
  model.outputs = body.outputs;
  model.metadata = body.notes;
  std::string names;
  for (const std::string& name : body.fixed) names += (names.empty() ? "" : " ") + name;
  if (!names.empty()) model.metadata["dais.fixed"] = names;
  return model;
}

}  // namespace

void Network::save(const std::filesystem::path& path, const WriteOptions& options) {
  onnx::ExportOptions format;
  format.opset = options.opset;
  if (options.external_data) format.external_file = path.filename().string() + ".data";
  onnx::save_model(model_of(*body_), path, format);
}

std::vector<uint8_t> Network::onnx(const WriteOptions& options) {
  onnx::ExportOptions format;
  format.opset = options.opset;
  const std::string bytes = onnx::export_model(model_of(*body_), format);
  return {bytes.begin(), bytes.end()};
}

Scope::Scope(const Network& network, std::string_view name)
    : body_(network.body_.get()), length_(body_->prefix.size()) {
  body_->prefix.append(name) += '.';
}

Scope::Scope(Value value, std::string_view name)
    : body_(&NetworkBody::of(value)), length_(body_->prefix.size()) {
  body_->prefix.append(name) += '.';
}

Scope::~Scope() { body_->prefix.resize(length_); }

}  // namespace dais::nn
