#include "cli/test_case.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "ir/call.h"
#include "ir/widen.h"
#include "ops/custom/custom.h"
#include "runtime/session.h"

namespace dais::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using onnx::Model;

using Named = std::vector<std::pair<std::string, Datum>>;

const Datum& output_named(const std::string& name, const std::vector<std::string>& names,
                          const std::vector<Datum>& values) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw Error(Code::invalid_argument, "the model has no output '" + name + "'");
  return values.at(static_cast<size_t>(found - names.begin()));
}

bool comparable(const Datum& a, const Datum& b) {
  return a.kind == Datum::Kind::tensor && b.kind == Datum::Kind::tensor &&
         a.tensor.shape() == b.tensor.shape() && NumericTypes::contains(a.tensor.dtype()) &&
         NumericTypes::contains(b.tensor.dtype());
}

/// Whether a quantised model may give this instead.
bool close_enough(const Datum& got, const Datum& expected, const CaseOptions& options) {
  if (!comparable(got, expected) || got.tensor.dtype() != expected.tensor.dtype()) return false;
  return (options.steps > 0 && agree_within_steps(got.tensor, expected.tensor, options.steps)) ||
         (options.top1 && agree_in_top1(got.tensor, expected.tensor));
}

std::string compare_outputs(const std::vector<std::string>& names, const std::vector<Datum>& got,
                            const Named& expected, const CaseOptions& options) {
  for (const auto& [name, value] : expected) {
    const Datum& ours = output_named(name, names, got);
    const auto difference = first_difference(ours, value, options.tolerance);
    if (!difference.empty() && !close_enough(ours, value, options))
      return "output '" + name + "' " + difference;
  }
  return {};
}

/// Whether any operator rounds to integers of a few bits, or multiplies such.
bool is_quantised(const Graph& graph) {
  constexpr std::string_view marks[] = {"quantize", "q_linear", "q_gemm", "_integer", "n_bits"};
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const auto& node) {
    return std::any_of(std::begin(marks), std::end(marks),
                       [&](std::string_view mark) {
                         return node->op->name.find(mark) != std::string_view::npos;
                       }) ||
           std::any_of(node->regions.begin(), node->regions.end(),
                       [](const auto& region) { return is_quantised(*region); });
  });
}

bool repeatable(const Graph& graph) {
  return std::all_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    return node->op->pure && std::all_of(node->regions.begin(), node->regions.end(),
                                         [](const auto& region) { return repeatable(*region); });
  });
}

std::string written(const Model& model, int64_t opset) {
  onnx::ExportOptions format;
  format.opset = opset;
  try {
    return onnx::export_model(model, format);
  } catch (const Error& error) {
    if (error.code() == Code::unsupported && opset < onnx::kNewestOpset) throw NoForm(error);
    throw;
  }
}

Model written_and_read(const Model& model, int64_t opset) {
  const auto bytes = std::make_shared<const std::string>(written(model, opset));
  onnx::ImportOptions options;
  for (const Value* input : model.graph->inputs) options.overrides.insert(input->name);
  try {
    return onnx::import_model({reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()},
                              bytes, options);
  } catch (const Error& error) {
    throw error.at("the model written and read back");
  }
}

/// Why an op of the plan is not on the device, from the plan's warning of it.
std::string reason_of(const Plan& plan, std::string_view op) {
  const std::string start = std::string(op) + " runs on the CPU (";
  for (const std::string& warning : plan.warnings())
    if (warning.starts_with(start)) return warning.substr(warning.find("): ") + 3);
  return "belongs to a subgraph";
}

void count_places(const Plan& plan, const Plan& outer, Placement& out) {
  for (const Step& step : plan.steps()) {
    for (const auto& region : step.regions) count_places(*region, outer, out);
    const Node& node = *step.node;
    if (step.place == Place::device) ++out.device;
    if (step.place != Place::host || node.op->view || node.outs.empty() || node.outs[0]->known())
      continue;
    ++out.host;
    const Plan& warned = plan.options().backend ? plan : outer;
    ++out.left[std::string(node.op->name) + ": " + reason_of(warned, node.op->name)];
  }
}

/// Runs a model and judges its outputs; "" when they are right.
class Runner {
 public:
  Runner(Model model, const CaseOptions& options) : names_(model.outputs), options_(options) {
    if (!is_quantised(*model.graph)) {
      options_.steps = 0;
      options_.top1 = false;
    }
    note_tolerances(*model.graph);
    if (options.round_trip && repeatable(*model.graph)) {
      Model again = written_and_read(model, options.round_trip_opset);
      if (again.outputs != names_)
        throw Error(Code::internal, "written outputs change their names");
      second_.emplace(compile(std::move(again.graph), options.compile).plan);
    }
    if (options.measure || options.exact > 0) truth_ = widened(*model.graph);
    first_.emplace(compile(std::move(model.graph), options.compile).plan);
  }

  void run(const std::vector<Datum>& inputs) {
    for (int i = 1; i < options_.runs; ++i) first_->run(inputs);
    got_ = first_->run(inputs);
    inputs_ = inputs;
    if (!second_) return;
    Named before;
    for (size_t i = 0; i < names_.size(); ++i) before.emplace_back(names_[i], got_[i]);
    CaseOptions same;
    same.tolerance =
        options_.round_trip_opset == onnx::kNewestOpset ? Tolerance{0, 0} : options_.tolerance;
    const auto difference = compare_outputs(names_, second_->run(inputs), before, same);
    if (!difference.empty()) throw Error(Code::internal, "written and read back: " + difference);
  }
  CaseResult compare(const Named& expected) const {
    CaseResult out;
    if (truth_) out.measured = measure(expected);
    if (options_.compile.backend) count_places(first_->plan(), first_->plan(), out.placement);
    for (const auto& output : expected) {
      CaseOptions options = options_;
      if (const auto own = own_tolerances_.find(output.first); own != own_tolerances_.end())
        options.tolerance = own->second;
      out.difference = compare_outputs(names_, got_, {output}, options);
      if (!out.difference.empty() && !as_exact(output.first, out.measured)) break;
      out.difference.clear();
    }
    return out;
  }

 private:
  /// Outputs that a user's operator makes are held to what its file states.
  void note_tolerances(const Graph& graph) {
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const Node* node = graph.outputs[i]->producer();
      const auto* custom = node ? node->as<Custom>() : nullptr;
      if (const CustomSpec* spec = custom ? custom_spec(custom->name) : nullptr)
        own_tolerances_[names_[i]] = {spec->relative_tolerance, spec->absolute_tolerance};
    }
  }

  bool as_exact(const std::string& output, const std::vector<Measured>& measured) const {
    return std::any_of(measured.begin(), measured.end(), [&](const Measured& entry) {
      return entry.output == output && entry.ours.rms <= options_.exact * entry.theirs.rms;
    });
  }

  std::vector<Measured> measure(const Named& expected) const {
    std::vector<Datum> inputs = inputs_;
    for (Datum& input : inputs)
      if (input.kind == Datum::Kind::tensor) input = widened(input.tensor);
    const std::vector<Datum> truths = evaluate(*truth_, inputs);
    std::vector<Measured> out;
    for (const auto& [name, value] : expected) {
      const Datum& truth = output_named(name, names_, truths);
      const Datum& ours = output_named(name, names_, got_);
      if (comparable(truth, ours) && comparable(truth, value))
        out.push_back({name, distance(ours.tensor, truth.tensor),
                       distance(value.tensor, truth.tensor), distance(ours.tensor, value.tensor)});
    }
    return out;
  }

  std::vector<std::string> names_;
  std::map<std::string, Tolerance> own_tolerances_;
  CaseOptions options_;
  std::optional<Session> first_, second_;
  std::unique_ptr<Graph> truth_;
  std::vector<Datum> inputs_, got_;
};

Datum read_value(const fs::path& path, const Type& type) {
  const auto file = MappedFile::open(path);
  try {
    return onnx::TensorReader(file).read(file->bytes(), type);
  } catch (const Error& error) {
    throw error.at(path.filename().string());
  }
}

fs::path numbered(const fs::path& folder, const char* stem, size_t number) {
  return folder / (stem + std::to_string(number) + ".pb");
}

/// The model of a data set. Its input files follow the order of the model's inputs: the initialised
/// ones too when there are more files than other inputs.
Model import_for(const fs::path& path, const fs::path& data) {
  Model model = onnx::import_model(path);
  size_t files = 0;
  while (fs::exists(numbered(data, "input_", files))) ++files;
  if (files <= model.graph->inputs.size()) return model;
  if (files > model.inputs.size())
    throw Error(Code::invalid_argument, "there are more input files than inputs", data);
  onnx::ImportOptions options;
  options.overrides.insert(model.inputs.begin(),
                           model.inputs.begin() + static_cast<std::ptrdiff_t>(files));
  return onnx::import_model(path, options);
}

CaseResult run_data_set(const fs::path& path, const fs::path& data, const CaseOptions& options) {
  Model model = import_for(path, data);
  const auto& graph = *model.graph;
  std::vector<Datum> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    inputs.push_back(read_value(numbered(data, "input_", i), graph.inputs[i]->type));
  Named expected;
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    const auto file = numbered(data, "output_", i);
    if (fs::exists(file))
      expected.emplace_back(model.outputs[i], read_value(file, model.output_types[i]));
  }
  if (expected.empty()) throw Error(Code::not_found, "no output_0.pb to compare with", data);
  Runner runner(std::move(model), options);
  runner.run(inputs);
  return runner.compare(expected);
}

CaseResult run_folder(const TestCase& test, const CaseOptions& options) {
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(test.model.parent_path()))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      sets.push_back(entry.path());
  std::sort(sets.begin(), sets.end());
  CaseResult out;
  for (const auto& set : sets) {
    CaseResult found = run_data_set(test.model, set, options);
    out.measured.insert(out.measured.end(), found.measured.begin(), found.measured.end());
    out.placement.add(found.placement);
    if (found.difference.empty()) continue;
    out.difference = set.filename().string() + ": " + found.difference;
    break;
  }
  return out;
}

Tensor ramp(const Type& type) {
  const auto shape = type.static_shape();
  if (!shape || type.dtype != DType::f32)
    throw Error(Code::unsupported, "a light model takes f32 inputs of fixed sizes");
  Tensor out(DType::f32, *shape);
  const auto values = out.data<float>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i) / static_cast<float>(values.size());
  return out;
}

CaseResult run_light(const TestCase& test, const CaseOptions& options) {
  Model model = onnx::import_model(test.model);
  std::vector<Datum> inputs;
  for (const Value* input : model.graph->inputs) inputs.emplace_back(ramp(input->type));
  const auto stem = test.model.parent_path() / (test.model.stem().string() + "_output_");
  Named expected;
  for (size_t i = 0; i < model.outputs.size(); ++i)
    expected.emplace_back(model.outputs[i], read_value(stem.string() + std::to_string(i) + ".pb",
                                                       model.graph->outputs[i]->type));
  Runner runner(std::move(model), options);
  runner.run(inputs);
  return runner.compare(expected);
}

double number_of(const json& value) {
  if (!value.is_string()) return value.get<double>();
  const auto text = value.get<std::string>();
  if (text == "NaN") return NAN;
  if (text == "Inf") return INFINITY;
  if (text == "-Inf") return -INFINITY;
  throw Error(Code::invalid_argument, "'" + text + "' is no number");
}

DType dtype_of_name(const std::string& name) {
  static const std::map<std::string, DType> names = {
      {"float32", DType::f32},   {"float64", DType::f64}, {"float16", DType::f16},
      {"bfloat16", DType::bf16}, {"int64", DType::i64},   {"int32", DType::i32},
      {"int16", DType::i16},     {"int8", DType::i8},     {"uint64", DType::u64},
      {"uint32", DType::u32},    {"uint16", DType::u16},  {"uint8", DType::u8},
      {"bool", DType::boolean}};
  const auto found = names.find(name);
  if (found == names.end()) throw Error(Code::unsupported, "element type '" + name + "'");
  return found->second;
}

Tensor tensor_of(const json& value) {
  const DType dtype = dtype_of_name(value.at("type"));
  Tensor out(dtype, Shape(value.at("dims").get<std::vector<int64_t>>()));
  const json& data = value.at("data");
  if (data.size() != static_cast<size_t>(out.elements()))
    throw Error(Code::invalid_argument, "a tensor has the wrong number of elements");
  if (dtype == DType::boolean) {
    for (size_t i = 0; i < data.size(); ++i) out.data<bool>()[i] = data[i].get<bool>();
    return out;
  }
  visit_dtype<NumericTypes>(dtype, [&]<typename T>() {
    for (size_t i = 0; i < data.size(); ++i) {
      if constexpr (std::is_integral_v<T>)
        out.data<T>()[i] = data[i].get<T>();
      else
        out.data<T>()[i] = number_cast<T>(number_of(data[i]));
    }
  });
  return out;
}

Named values_of(const json& values) {
  Named out;
  for (const auto& [name, value] : values.items()) out.emplace_back(name, tensor_of(value));
  return out;
}

CaseResult compare_entry(const TestCase& test, CaseOptions options) {
  const auto given = values_of(test.entry.at("inputs"));
  onnx::ImportOptions import;
  for (const auto& [name, value] : given) import.overrides.insert(name);
  Model model = onnx::import_model(test.model, import);
  std::vector<Datum> inputs;
  for (const Value* input : model.graph->inputs) {
    const auto found = std::find_if(given.begin(), given.end(),
                                    [&](const auto& pair) { return pair.first == input->name; });
    if (found == given.end()) return {"the case gives no input '" + input->name + "'"};
    inputs.push_back(found->second);
  }
  const double allowed = test.entry.at("tol").get<double>();
  options.tolerance = {allowed, allowed};
  Runner runner(std::move(model), options);
  runner.run(inputs);
  if (!test.entry.at("expect").is_null()) return runner.compare(values_of(test.entry["expect"]));
  if (test.entry.at("any_of").is_null()) return {"ran, but an error was expected"};
  std::string difference;
  for (const auto& accepted : test.entry["any_of"]) {
    CaseResult found = runner.compare(values_of(accepted));
    if (found.difference.empty()) return found;
    difference = std::move(found.difference);
  }
  return {"agrees with none of the accepted answers; with the last: " + difference};
}

CaseResult run_entry(const TestCase& test, const CaseOptions& options) {
  try {
    return compare_entry(test, options);
  } catch (const Error& error) {
    // Our own bug is not a clear refusal.
    if (error.code() == Code::internal || !test.entry.at("expect").is_null()) throw;
    return {};
  }
}

void find_folder_cases(const fs::path& root, std::vector<TestCase>& out) {
  if (!fs::is_directory(root)) throw Error(Code::not_found, "not a folder", root);
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".onnx") continue;
    const fs::path folder = entry.path().parent_path();
    if (entry.path().filename() == "model.onnx" && fs::exists(folder / "test_data_set_0"))
      out.push_back({folder.filename(), TestCase::Layout::folder, entry.path(), {}});
    else if (fs::exists(folder / (entry.path().stem().string() + "_output_0.pb")))
      out.push_back({entry.path().stem(), TestCase::Layout::light, entry.path(), {}});
  }
}

}  // namespace

void Placement::add(const Placement& other) {
  device += other.device;
  host += other.host;
  for (const auto& [text, count] : other.left) left[text] += count;
}

std::vector<TestCase> find_cases(const std::vector<std::string>& folders,
                                 const std::string& cases) {
  std::vector<TestCase> out;
  for (const auto& folder : folders) find_folder_cases(folder, out);
  if (!cases.empty()) {
    std::ifstream file(cases);
    if (!file) throw Error(Code::not_found, "cannot read the cases", cases);
    for (const auto& entry : json::parse(file)) {
      const auto name = entry.at("name").get<std::string>();
      out.push_back(
          {name, TestCase::Layout::entry, fs::path(cases).parent_path() / (name + ".onnx"), entry});
    }
  }
  std::sort(out.begin(), out.end(),
            [](const TestCase& a, const TestCase& b) { return a.name < b.name; });
  return out;
}

CaseResult run_case(const TestCase& test, const CaseOptions& options) {
  switch (test.layout) {
    case TestCase::Layout::folder: return run_folder(test, options);
    case TestCase::Layout::light: return run_light(test, options);
    case TestCase::Layout::entry: return run_entry(test, options);
  }
  return {};
}

}  // namespace dais::cli
