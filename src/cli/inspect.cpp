#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "cli/command.h"
#include "onnx/importer.h"

namespace dais::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string model;
  std::vector<std::string> sizes;
  bool json = false;
};

/// What a model needs at the sizes asked for.
struct Forecast {
  std::string problem;  ///< why there is no forecast; then only counts hold
  double flops = 0;
  size_t unsized = 0;  ///< nodes whose sizes only running tells
  int64_t parameters = 0;
  double parameter_bytes = 0, peak_bytes = 0;
  std::map<std::string, size_t> ops;
};

std::map<std::string, Dim> parse_sizes(const std::vector<std::string>& given) {
  std::map<std::string, Dim> out;
  for (const auto& text : given) {
    const auto equals = text.find('=');
    const Dim value = Dim::parse(equals == std::string::npos ? "" : text.substr(equals + 1));
    if (!value.is_constant() || *value.constant() < 0)
      throw Error(Code::invalid_argument, "'" + text + "' is no size", "--size",
                  "Write it as NAME=NUMBER, for example N=8");
    out[text.substr(0, equals)] = value;
  }
  return out;
}

/// Gives the symbols of the inputs numbers (1 where none is given) and infers all types anew.
std::map<std::string, Dim> fix_sizes(Graph& graph, std::map<std::string, Dim> sizes) {
  std::vector<std::string> symbols;
  for (const Value* input : graph.inputs)
    if (input->type.shape)
      for (const Dim& dim : *input->type.shape) dim.collect_symbols(symbols);
  for (const auto& name : symbols) sizes.emplace(name, 1);
  for (const auto& [name, value] : sizes)
    if (std::find(symbols.begin(), symbols.end(), name) == symbols.end()) {
      const std::string guess = nearest(name, symbols);
      throw Error(Code::invalid_argument, "the model has no symbolic size '" + name + "'", "--size",
                  guess.empty() ? "" : "Did you mean '" + guess + "'?");
    }
  for (Value* input : graph.inputs)
    if (input->type.shape)
      for (Dim& dim : *input->type.shape) dim = dim.substitute(sizes);
  for (const auto& node : graph.nodes()) graph.infer(*node);
  return sizes;
}

double value_bytes(const Value& value) {
  const auto shape = value.type.static_shape();
  if (!shape || value.type.dtype == DType::undefined) return 0;
  return static_cast<double>(shape->elements()) * static_cast<double>(dtype_size(value.type.dtype));
}

bool is_sized(const Node& node) {
  const auto sized = [](const Value* value) { return !value || value->type.static_shape(); };
  return std::all_of(node.in.begin(), node.in.end(), sized) &&
         std::all_of(node.outs.begin(), node.outs.end(), sized);
}

/// The most bytes of inputs and intermediate values that are needed at one time.
double peak_of(const Graph& graph) {
  std::unordered_map<const Value*, size_t> readers;
  for (const auto& node : graph.nodes())
    for (const Value* value : node->in) ++readers[value];
  for (const Value* value : graph.outputs) ++readers[value];
  double live = 0, peak = 0;
  for (const Value* value : graph.inputs) live += value_bytes(*value);
  for (const auto& node : graph.nodes()) {
    for (const Value* value : node->outs) live += node->op->view ? 0 : value_bytes(*value);
    peak = std::max(peak, live);
    for (const Value* value : node->in)
      if (value && !value->constant() && --readers[value] == 0 &&
          !(value->producer() && value->producer()->op->view))
        live -= value_bytes(*value);
  }
  return peak;
}

void count_graph(const Graph& graph, Forecast& out) {
  for (const auto& value : graph.values()) {
    const Tensor* constant = value->constant();
    if (!constant || value->users().empty()) continue;
    out.parameters += constant->elements();
    out.parameter_bytes += static_cast<double>(constant->bytes());
  }
  for (const auto& node : graph.nodes()) {
    ++out.ops[std::string(node->op->name)];
    if (!is_sized(*node))
      ++out.unsized;
    else if (node->op->cost)
      out.flops += node->op->cost(*node).flops;
    for (const auto& region : node->regions) count_graph(*region, out);
  }
}

json values_json(const Values& values, const std::vector<std::string>& names,
                 const std::vector<Type>& types) {
  json out = json::array();
  for (size_t i = 0; i < values.size(); ++i)
    out.push_back(
        {{"name", names.empty() ? values[i]->name : names[i]}, {"type", types[i].text()}});
  return out;
}

json describe(const onnx::Model& model, const Options& options) {
  Graph& graph = *model.graph;
  std::vector<Type> inputs, outputs;
  for (const Value* value : graph.inputs) inputs.push_back(value->type);
  for (const Value* value : graph.outputs) outputs.push_back(value->type);
  Forecast forecast;
  auto sizes = parse_sizes(options.sizes);
  const auto sized = graph.clone();
  try {
    sizes = fix_sizes(*sized, sizes);
    count_graph(*sized, forecast);
    forecast.peak_bytes = peak_of(*sized);
  } catch (const Error& error) {
    // Sizes that the caller asked for are his to mend; the assumed ones may simply not fit.
    if (!options.sizes.empty()) throw;
    forecast = {};
    forecast.problem = std::string("sizes of 1 do not fit this model: ") + error.what();
    count_graph(graph, forecast);
  }
  json fixed = json::object();
  for (const auto& [name, value] : sizes) fixed[name] = value.constant().value_or(0);
  json opsets = json::object();
  for (const auto& [domain, version] : model.opsets)
    opsets[domain.empty() ? "ai.onnx" : domain] = version;
  return {{"ir_version", model.ir_version},
          {"producer", model.producer},
          {"opsets", opsets},
          {"inputs", values_json(graph.inputs, {}, inputs)},
          {"outputs", values_json(graph.outputs, model.outputs, outputs)},
          {"default_inputs", model.defaults.size()},
          {"functions", model.functions},
          {"nodes", graph.size()},
          {"ops", forecast.ops},
          {"parameters", forecast.parameters},
          {"parameter_bytes", forecast.parameter_bytes},
          {"sizes", fixed},
          {"flops", forecast.flops},
          {"activation_peak_bytes", forecast.peak_bytes},
          {"peak_bytes", forecast.peak_bytes + forecast.parameter_bytes},
          {"unsized_nodes", forecast.unsized},
          {"problem", forecast.problem}};
}

std::string scaled(double value, double base, const std::vector<const char*>& units) {
  size_t unit = 0;
  while (value >= base && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
  return text;
}

std::string bytes_text(const json& value) {
  return scaled(value.get<double>(), 1024, {"bytes", "KiB", "MiB", "GiB", "TiB"});
}

void print(const json& facts) {
  const auto line = [](const char* name, const std::string& text) {
    std::printf("%-12s %s\n", name, text.c_str());
  };
  std::string opsets;
  for (const auto& [domain, version] : facts["opsets"].items())
    opsets += (opsets.empty() ? "" : ", ") + domain + " " + version.dump();
  line("producer", facts["producer"].get<std::string>());
  line("opsets", opsets + " (IR " + facts["ir_version"].dump() + ")");
  for (const char* side : {"inputs", "outputs"})
    for (const auto& value : facts[side])
      line(side, value["name"].get<std::string>() + "  " + value["type"].get<std::string>());
  line("nodes", facts["nodes"].dump());
  line("parameters", scaled(facts["parameters"].get<double>(), 1000, {"", "k", "M", "G"}) + ", " +
                         bytes_text(facts["parameter_bytes"]));
  std::string at;
  for (const auto& [name, value] : facts["sizes"].items())
    at += (at.empty() ? " at " : ", ") + name + "=" + value.dump();
  line("work",
       scaled(facts["flops"].get<double>(), 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"}) +
           at);
  line("peak memory", bytes_text(facts["peak_bytes"]) + ", " +
                          bytes_text(facts["activation_peak_bytes"]) + " of it activations" + at);
  if (const auto problem = facts["problem"].get<std::string>(); !problem.empty())
    line("no forecast", problem + "; give real ones with --size NAME=NUMBER");
  else if (facts["unsized_nodes"] != 0)
    line("unknown", facts["unsized_nodes"].dump() + " nodes have sizes that only running tells");
  std::vector<std::pair<size_t, std::string>> ops;
  for (const auto& [name, count] : facts["ops"].items()) ops.emplace_back(count, name);
  std::sort(ops.rbegin(), ops.rend());
  std::printf("\n%8s  op\n", "count");
  for (const auto& [count, name] : ops) std::printf("%8zu  %s\n", count, name.c_str());
}

void inspect(const Options& options) {
  const json facts = describe(onnx::import_model(options.model), options);
  if (options.json)
    std::printf("%s\n", facts.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  else
    print(facts);
}

}  // namespace

void add_inspect(Program& program) {
  auto* command = program.app.add_subcommand(
      "inspect", "Show inputs, outputs, operators, parameters, work and memory of a model");
  const auto options = std::make_shared<Options>();
  command->add_option("model", options->model, "ONNX file")->required();
  command->add_option("--size", options->sizes,
                      "Number for a symbolic size, NAME=NUMBER; 1 where none is given");
  command->add_flag("--json", options->json, "One JSON object instead of a table");
  command->footer("Example: dais inspect model.onnx --size batch=8");
  command->callback([options] { inspect(*options); });
}

}  // namespace dais::cli
