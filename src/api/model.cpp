#include "dais/model.h"

#include <algorithm>

#include "api/compile.h"
#include "api/device.h"
#include "onnx/importer.h"
#include "runtime/session.h"

namespace dais {
namespace {

ValueInfo info_of(const std::string& name, const Type& type) {
  ValueInfo out{name, type.text(), type.dtype, std::nullopt};
  if (!type.shape) return out;
  out.shape.emplace();
  for (const Dim& dim : *type.shape) out.shape->push_back(dim.constant().value_or(-1));
  return out;
}

std::vector<ValueInfo> inputs_of(const onnx::Model& model) {
  std::vector<ValueInfo> out;
  for (const Value* value : model.graph->inputs) out.push_back(info_of(value->name, value->type));
  return out;
}

std::vector<ValueInfo> outputs_of(const onnx::Model& model) {
  std::vector<ValueInfo> out;
  for (size_t i = 0; i < model.outputs.size(); ++i)
    out.push_back(info_of(model.outputs[i], model.graph->outputs[i]->type));
  return out;
}

/// Position of a name, or an error that suggests the nearest one.
size_t index_of(std::string_view name, const std::vector<ValueInfo>& infos, const char* what) {
  std::vector<std::string> names;
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].name == name) return i;
    names.push_back(infos[i].name);
  }
  const std::string guess = nearest(name, names);
  throw Error(Code::invalid_argument,
              "the model has no " + std::string(what) + " '" + std::string(name) + "'", "",
              guess.empty() ? "" : "Did you mean '" + guess + "'?");
}

}  // namespace

struct Model::Body {
  std::filesystem::path path;  ///< empty when read from memory
  std::shared_ptr<const std::vector<uint8_t>> bytes;
  onnx::Model model;
  std::vector<ValueInfo> inputs, outputs;

  onnx::Model import_with(const std::set<std::string>& overrides) const {
    onnx::ImportOptions options;
    options.overrides = overrides;
    return path.empty() ? onnx::import_model(*bytes, bytes, options)
                        : onnx::import_model(path, options);
  }
};

struct Executable::Body {
  std::string device;
  std::shared_ptr<const Plan> plan;
  std::vector<ValueInfo> inputs, outputs;
};

struct InferenceSession::Body {
  std::shared_ptr<const Executable::Body> executable;
  Session session;
  std::vector<Datum> inputs;
  const std::vector<Datum>* results = nullptr;
};

Model::Model(std::shared_ptr<Body> body) : body_(std::move(body)) {}

Model Model::load(const std::filesystem::path& path) {
  auto body = std::make_shared<Body>();
  body->path = path;
  body->model = onnx::import_model(path);
  body->inputs = inputs_of(body->model);
  body->outputs = outputs_of(body->model);
  return Model(std::move(body));
}

Model Model::parse(std::span<const uint8_t> bytes) {
  auto body = std::make_shared<Body>();
  body->bytes = std::make_shared<const std::vector<uint8_t>>(bytes.begin(), bytes.end());
  body->model = onnx::import_model(*body->bytes, body->bytes);
  body->inputs = inputs_of(body->model);
  body->outputs = outputs_of(body->model);
  return Model(std::move(body));
}

const std::vector<ValueInfo>& Model::inputs() const { return body_->inputs; }
const std::vector<ValueInfo>& Model::outputs() const { return body_->outputs; }

Executable Model::compile(const ExecutableOptions& options) const& {
  return compile(*body_, nullptr, options);
}

Executable Model::compile(const ExecutableOptions& options) && {
  const auto body = std::move(body_);
  std::unique_ptr<Graph> graph;
  if (body.use_count() == 1 && options.overrides.empty()) graph = std::move(body->model.graph);
  return compile(*body, std::move(graph), options);
}

/// `graph`: the body's own, when it may be used up.
Executable Model::compile(const Body& body, std::unique_ptr<Graph> graph,
                          const ExecutableOptions& options) {
  CompileOptions inner;
  inner.optimize = options.optimize;
  inner.threads = options.threads;
  DeviceChoice choice = choose_device(options.device, options.matmul_precision);
  inner.backend = std::move(choice.backend);
  auto out = std::make_shared<Executable::Body>();
  out->device = std::move(choice.text);
  out->outputs = body.outputs;
  onnx::Model again;
  if (!options.overrides.empty()) again = body.import_with(options.overrides);
  out->inputs = again.graph ? inputs_of(again) : body.inputs;
  for (const auto& [input, output] : options.states)
    inner.states.push_back(
        {index_of(input, out->inputs, "input"), index_of(output, out->outputs, "output")});
  if (again.graph)
    graph = std::move(again.graph);
  else if (!graph)
    graph = body.model.graph->clone();
  out->plan = dais::compile(std::move(graph), inner).plan;
  return Executable(std::move(out));
}

Executable::Executable(std::shared_ptr<const Body> body) : body_(std::move(body)) {}
const std::vector<ValueInfo>& Executable::inputs() const { return body_->inputs; }
const std::vector<ValueInfo>& Executable::outputs() const { return body_->outputs; }
const std::string& Executable::device() const { return body_->device; }
const std::vector<std::string>& Executable::warnings() const { return body_->plan->warnings(); }

InferenceSession Executable::session() const {
  auto body = std::make_unique<InferenceSession::Body>(
      InferenceSession::Body{body_, Session(body_->plan), {}, nullptr});
  body->inputs.resize(body_->inputs.size());
  return InferenceSession(std::move(body));
}

InferenceSession::InferenceSession(std::unique_ptr<Body> body) : body_(std::move(body)) {}
InferenceSession::~InferenceSession() = default;
InferenceSession::InferenceSession(InferenceSession&&) noexcept = default;
InferenceSession& InferenceSession::operator=(InferenceSession&&) noexcept = default;

void InferenceSession::set(std::string_view name, Datum value) {
  body_->inputs[index_of(name, body_->executable->inputs, "input")] = std::move(value);
}

void InferenceSession::prefetch(const std::map<std::string, Tensor>& next) {
  std::vector<Datum> inputs;
  for (const auto& [name, tensor] : next) {
    index_of(name, body_->executable->inputs, "input");
    inputs.emplace_back(tensor);
  }
  body_->session.prefetch(inputs);
}

void InferenceSession::bind_state(std::string_view input, Tensor memory) {
  body_->session.bind_state(index_of(input, body_->executable->inputs, "input"), std::move(memory));
}

void InferenceSession::reserve_state(std::string_view input, int64_t entries) {
  body_->session.reserve_state(index_of(input, body_->executable->inputs, "input"), entries);
}

Tensor InferenceSession::state(std::string_view input) const {
  Tensor held = body_->session.state(index_of(input, body_->executable->inputs, "input"));
  if (!held)
    throw Error(Code::invalid_argument, "state '" + std::string(input) + "' has no value yet");
  return held;
}

void InferenceSession::run() {
  body_->results = &body_->session.run(body_->inputs);
  for (const StatePair& state : body_->executable->plan->options().states)
    body_->inputs[state.input] = {};
}

const Datum& InferenceSession::value(std::string_view name) const {
  const size_t index = index_of(name, body_->executable->outputs, "output");
  if (!body_->results)
    throw Error(Code::invalid_argument, "there are no outputs yet", "", "Call run() first");
  return (*body_->results)[index];
}

const Tensor& InferenceSession::get(std::string_view name) const {
  const Datum& held = value(name);
  if (held.kind != Datum::Kind::tensor)
    throw Error(Code::invalid_argument, "output '" + std::string(name) + "' is no tensor", "",
                "Use value() for sequences, maps and optionals, state() for a cache that grows");
  return held.tensor;
}

}  // namespace dais
