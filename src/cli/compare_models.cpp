#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/run_options.h"
#include "ops/custom/custom.h"
#include "runtime/session.h"

namespace dais::cli {
namespace {

using nlohmann::json;

struct Options : RunOptions {
  std::string other, against;
  double limit = 1e-3;
};

/// A tensor that a run makes, by its name in the file.
struct Traced {
  std::string name;
  Tensor tensor;
  const CustomSpec* maker = nullptr;  ///< the user's operator that makes it
};
using Trace = std::vector<Traced>;

const CustomSpec* maker_of(const Value& value) {
  const Node* node = value.producer();
  const auto* custom = node ? node->as<Custom>() : nullptr;
  return custom ? custom_spec(custom->name) : nullptr;
}

/// Makes every tensor of the graph an output, so that its value is kept to the end of the run.
void expose_values(Graph& graph) {
  for (const auto& node : graph.nodes())
    for (Value* value : node->outs)
      if (value->type.is_tensor() && !graph.is_output(value)) graph.outputs.push_back(value);
}

Trace trace_of(std::unique_ptr<Graph> graph, const std::vector<Datum>& inputs,
               const CompileOptions& options) {
  optimize(*graph, options);
  expose_values(*graph);
  Trace trace;
  for (const Value* value : graph->outputs) trace.push_back({value->name, {}, maker_of(*value)});
  Session session(plan(std::move(graph), options));
  const auto& results = session.run(inputs);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].kind == Datum::Kind::tensor) trace[i].tensor = results[i].tensor.clone();
  std::erase_if(trace, [](const Traced& entry) { return !entry.tensor; });
  return trace;
}

struct Difference {
  std::string name, type;
  std::string note;     ///< why there are no numbers
  double largest = 0;   ///< absolute
  double relative = 0;  ///< largest / largest absolute value of the first run
  bool above = false;
};

/// What a user's operator makes is held to the tolerance that its file states, element by element;
/// all else to `limit`.
Difference difference(const Traced& first, const Tensor& b, double limit) {
  const Tensor& a = first.tensor;
  Difference out{first.name, a.describe(), {}, 0, 0};
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) {
    out.note = "other layout or type: " + b.describe();
    return out;
  }
  if (!NumericTypes::contains(a.dtype()) && a.dtype() != DType::boolean) {
    out.above = !a.identical(b);
    if (out.above) out.note = "different";
    return out;
  }
  double scale = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.to_double(i), y = b.to_double(i);
    if (std::isfinite(x)) scale = std::max(scale, std::fabs(x));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double apart = std::isfinite(x - y) ? std::fabs(x - y) : INFINITY;
    out.largest = std::max(out.largest, apart);
    if (first.maker &&
        apart > first.maker->absolute_tolerance + first.maker->relative_tolerance * std::fabs(x))
      out.above = true;
  }
  out.relative = out.largest > 0 ? out.largest / std::max(scale, 1e-30) : 0;
  if (!first.maker) out.above = out.relative > limit;
  return out;
}

std::vector<Difference> differences(const Trace& first, const Trace& second, double limit) {
  std::vector<Difference> out;
  for (const Traced& entry : second) {
    const auto twin = std::find_if(first.begin(), first.end(),
                                   [&](const Traced& other) { return other.name == entry.name; });
    if (twin != first.end()) out.push_back(difference(*twin, entry.tensor, limit));
  }
  return out;
}

void print(const std::vector<Difference>& rows, size_t made) {
  std::printf("%-12s %-12s %-24s %s\n", "largest", "relative", "type", "value");
  for (const Difference& row : rows) {
    if (!row.note.empty())
      std::printf("%-25s %-24s %s\n", row.note.c_str(), row.type.c_str(), row.name.c_str());
    else
      std::printf("%-12.3g %-12.3g %-24s %s%s\n", row.largest, row.relative, row.type.c_str(),
                  row.name.c_str(), row.above ? "  <- above the limit" : "");
  }
  std::printf("%zu of the second run's %zu values are found in both, in execution order\n",
              rows.size(), made);
}

void compare(Program& program, const Options& options) {
  if (options.other.empty() == options.against.empty())
    throw Error(Code::invalid_argument, "compare needs a second model or --against", "",
                "dais compare a.onnx b.onnx, or dais compare a.onnx --against plain");
  onnx::Model model = onnx::import_model(options.model, import_options(options.inputs));
  const auto inputs = make_inputs(model, options.inputs);
  const CompileOptions tuned = options.compile();
  CompileOptions plain = tuned;
  plain.backend = nullptr;
  if (options.against != "cpu") plain.optimize = Optimize::off;
  Trace first, second;
  if (options.other.empty()) {
    first = trace_of(model.graph->clone(), inputs, plain);
    second = trace_of(std::move(model.graph), inputs, tuned);
  } else {
    onnx::Model other = onnx::import_model(options.other, import_options(options.inputs));
    const auto other_inputs = make_inputs(other, options.inputs);
    first = trace_of(std::move(model.graph), inputs, tuned);
    second = trace_of(std::move(other.graph), other_inputs, tuned);
  }
  const auto rows = differences(first, second, options.limit);
  if (options.json) {
    json out = json::array();
    for (const Difference& row : rows)
      out.push_back({{"value", row.name},
                     {"type", row.type},
                     {"note", row.note},
                     {"largest", row.largest},
                     {"relative", row.relative},
                     {"above", row.above}});
    std::printf("%s\n",
                json{{"values", out}}.dump(2, ' ', false, json::error_handler_t::replace).c_str());
  } else {
    print(rows, second.size());
  }
  const bool above =
      std::any_of(rows.begin(), rows.end(), [&](const Difference& row) { return row.above; });
  program.status = above ? 1 : 0;
}

}  // namespace

void add_compare(Program& program) {
  auto* command = program.app.add_subcommand(
      "compare", "Layer-by-layer differences of two models, or of a model against plain loops");
  const auto options = std::make_shared<Options>();
  add_run_options(*command, *options);
  command->add_option("other", options->other, "Second ONNX file; values are matched by name");
  command
      ->add_option("--against", options->against,
                   "plain: the same model on reference loops; cpu: the same model on the CPU")
      ->check(CLI::IsMember({"plain", "cpu"}));
  command
      ->add_option("--limit", options->limit,
                   "Largest difference allowed, relative to the value's largest element")
      ->capture_default_str();
  command->footer("Example: dais compare model.onnx --against plain");
  command->callback([&program, options] { compare(program, *options); });
}

}  // namespace dais::cli
