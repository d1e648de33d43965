#include "ops/custom/custom.h"

#include <algorithm>
#include <deque>
#include <map>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"

namespace dais {
namespace {

constexpr std::string_view kDomain = "dais.custom";

/// Rules keep views of their names.
std::deque<CustomSpec>& known() {
  static std::deque<CustomSpec> all;
  return all;
}

[[noreturn]] void refuse(const CustomSpec& spec, const std::string& problem,
                         const std::string& remedy = {}) {
  throw Error(Code::invalid_argument, "custom operator '" + spec.name + "': " + problem, spec.file,
              remedy);
}

std::map<std::string, Dim> symbols(const CustomSpec& spec, const std::vector<Dims>& inputs) {
  std::map<std::string, Dim> out;
  for (size_t i = 0; i < inputs.size() && i < spec.inputs.size(); ++i) {
    const Dims& dims = inputs[i];
    out[spec.inputs[i] + "_size"] = product(dims, 0, dims.size());
    for (size_t axis = 0; axis < dims.size(); ++axis)
      out[spec.inputs[i] + "_" + std::to_string(axis)] = dims[axis];
  }
  return out;
}

const CustomSpec& spec_of(const Inference& c) {
  const CustomSpec* spec = custom_spec(c.attrs<Custom>().name);
  if (!spec)
    c.fail("no operator '" + c.attrs<Custom>().name + "' is known", "Give its folder by --ops");
  return *spec;
}

void infer(Inference& c) {
  const CustomSpec& spec = spec_of(c);
  if (c.inputs() != spec.inputs.size())
    c.fail("it takes " + std::to_string(spec.inputs.size()) + " inputs");
  std::vector<Dims> inputs;
  bool ranked = true;
  for (size_t i = 0; i < c.inputs(); ++i) ranked = ranked && c.ranked(i);
  for (size_t i = 0; ranked && i < c.inputs(); ++i) inputs.push_back(c.shape(i));
  const auto index_of = [&](const std::string& name) {
    return static_cast<size_t>(std::find(spec.inputs.begin(), spec.inputs.end(), name) -
                               spec.inputs.begin());
  };
  for (size_t i = 0; i < c.outputs() && i < spec.outputs.size(); ++i) {
    const CustomSpec::Output& output = spec.outputs[i];
    const size_t like = index_of(output.type);
    const DType dtype = like < spec.inputs.size() ? c.dtype(like) : *dtype_from_name(output.type);
    c.set(i, dtype);
    if (!ranked) continue;
    Dims dims;
    if (!output.shape_of.empty()) dims = inputs[index_of(output.shape_of)];
    for (const std::string& size : output.shape) dims.push_back(custom_size(spec, size, inputs));
    c.set(i, dtype, dims);
  }
}

Values gradient(Graph& graph, const Node& node, std::span<Value* const> dy) {
  const Custom& attrs = *node.as<Custom>();
  const CustomSpec* spec = custom_spec(attrs.name);
  const CustomSpec* back = spec ? custom_spec(spec->gradient) : nullptr;
  if (!back)
    throw Error(Code::unsupported, "custom operator '" + attrs.name + "' has no gradient",
                node.where(), "Name another custom operator as its gradient");
  Values inputs = node.in;
  inputs.insert(inputs.end(), dy.begin(), dy.end());
  std::vector<float> values;
  for (const auto& wanted : back->attributes) {
    const auto found = std::find_if(spec->attributes.begin(), spec->attributes.end(),
                                    [&](const auto& own) { return own.name == wanted.name; });
    values.push_back(found == spec->attributes.end()
                         ? wanted.value
                         : attrs.values[static_cast<size_t>(found - spec->attributes.begin())]);
  }
  return graph.add_node(Custom{back->name, values}, inputs, node.in.size()).outs;
}

Values import_custom(OnnxImport& c) {
  const CustomSpec* spec = custom_spec(c.type);
  if (!spec) c.fail("no such operator is known", "Give its folder by --ops");
  Custom out{std::string(c.type), {}};
  for (const auto& attribute : spec->attributes)
    out.values.push_back(c.number(attribute.name, attribute.value));
  return c.emit(std::move(out), c.in);
}

OnnxNode export_custom(const Node& node, int64_t) {
  const Custom& attrs = *node.as<Custom>();
  OnnxNode out{.type = attrs.name, .domain = std::string(kDomain), .in = node.in};
  const CustomSpec* spec = custom_spec(attrs.name);
  for (size_t i = 0; spec && i < attrs.values.size(); ++i)
    out.attributes.emplace_back(spec->attributes[i].name, attrs.values[i]);
  return out;
}

}  // namespace

Dim custom_size(const CustomSpec& spec, const std::string& expression,
                const std::vector<Dims>& inputs) {
  return Dim::parse(expression).substitute(symbols(spec, inputs));
}

void CustomSpec::check() const {
  if (name.empty()) refuse(*this, "it has no name");
  if (text.empty() || kernel.empty()) refuse(*this, "it has no kernel");
  if (outputs.empty()) refuse(*this, "it has no outputs");
  if (threads < 1 || threads > 1024) refuse(*this, "a block has 1 to 1024 threads");
  const auto is_input = [&](const std::string& word) {
    return std::find(inputs.begin(), inputs.end(), word) != inputs.end();
  };
  for (const Output& output : outputs) {
    if (!is_input(output.type) && !dtype_from_name(output.type))
      refuse(*this, "the type of output '" + output.name + "' is neither an input nor a type",
             "Name an input, or a type like f32");
    if (!output.shape_of.empty() && !is_input(output.shape_of))
      refuse(*this, "the shape of output '" + output.name + "' is that of no input");
  }
}

void add_custom_op(CustomSpec spec) {
  spec.check();
  if (custom_spec(spec.name)) refuse(spec, "the name is taken by another one");
  known().push_back(std::move(spec));
}

const CustomSpec* custom_spec(std::string_view name) {
  for (const CustomSpec& spec : known())
    if (spec.name == name) return &spec;
  return nullptr;
}

const Op Custom::op{
    .name = "custom",
    .attrs = &AttrsOf<Custom>::info,
    .infer = infer,
    // Only the user's kernel says what it computes.
    .reference =
        [](Call& c) {
          c.fail("an operator of your own runs by its kernel, which is left out here",
                 "Run it optimised (--optimize full)");
        },
    .gradient = gradient,
    .onnx = {{.type = "Custom",
              .domain = kDomain,
              .import = import_custom,
              .export_as = export_custom}},
    .pure = false,
};

namespace ops {
void define_custom(OpRegistry& registry) {
  registry.add(Custom::op);
  for (const CustomSpec& spec : known())
    registry.add_rule({.type = spec.name, .domain = kDomain, .import = import_custom});
}
}  // namespace ops
}  // namespace dais
