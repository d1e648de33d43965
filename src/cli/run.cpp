#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/run_options.h"
#include "ir/npy.h"
#include "runtime/session.h"

namespace dais::cli {
namespace {

using nlohmann::json;

struct Summary {
  double low = 0, high = 0, mean = 0;
  int64_t not_finite = 0;
  bool numeric = false;
};

Summary summarize(const Tensor& tensor) {
  Summary out;
  if (!NumericTypes::contains(tensor.dtype()) && tensor.dtype() != DType::boolean) return out;
  out.numeric = true;
  int64_t counted = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = tensor.to_double(i);
    if (!std::isfinite(value)) {
      ++out.not_finite;
      continue;
    }
    out.low = counted ? std::min(out.low, value) : value;
    out.high = counted ? std::max(out.high, value) : value;
    out.mean += value;
    ++counted;
  }
  if (counted) out.mean /= static_cast<double>(counted);
  return out;
}

/// File names must not be steered by a model's names.
std::string file_stem(const std::string& name) {
  std::string out;
  for (char c : name)
    out +=
        std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ? c : '_';
  while (!out.empty() && out.front() == '.') out.erase(0, 1);
  return out.empty() ? "output" : out;
}

std::string store(const std::filesystem::path& folder, const Value& output, const Datum& datum,
                  std::map<std::string, int>& used) {
  const bool npy = datum.kind == Datum::Kind::tensor && npy_has(datum.tensor.dtype());
  std::string stem = file_stem(output.name);
  if (const int count = used[stem]++; count > 0) stem += "_" + std::to_string(count);
  const auto path = folder / (stem + (npy ? ".npy" : ".pb"));
  if (npy)
    write_npy(path, datum.tensor);
  else
    write_file(path, onnx::datum_bytes(datum, output.type, output.name));
  return path.string();
}

json describe(const Value& output, const Datum& datum, const std::string& path) {
  json row{{"name", output.name}};
  if (!path.empty()) row["file"] = path;
  if (datum.kind != Datum::Kind::tensor) {
    row["type"] = datum.kind == Datum::Kind::sequence ? "sequence" : "none";
    if (datum.items) row["length"] = datum.items->size();
    return row;
  }
  const Summary summary = summarize(datum.tensor);
  row["type"] = dtype_name(datum.tensor.dtype());
  row["shape"] = datum.tensor.shape().vector();
  if (summary.numeric) {
    row["min"] = summary.low;
    row["max"] = summary.high;
    row["mean"] = summary.mean;
    row["not_finite"] = summary.not_finite;
  }
  return row;
}

void print(const Value& output, const Datum& datum, const std::string& path) {
  if (datum.kind != Datum::Kind::tensor) {
    std::printf("%-24s %s\n", output.name.c_str(), output.type.text().c_str());
    return;
  }
  const Summary s = summarize(datum.tensor);
  std::printf("%-24s %-20s", output.name.c_str(), datum.tensor.describe().c_str());
  if (s.numeric) std::printf(" min %-12.6g max %-12.6g mean %-12.6g", s.low, s.high, s.mean);
  if (s.not_finite) std::printf(" not finite: %lld", static_cast<long long>(s.not_finite));
  std::printf("%s%s\n", path.empty() ? "" : " -> ", path.c_str());
}

void run(const RunOptions& options, const std::string& folder) {
  onnx::Model model = onnx::import_model(options.model, import_options(options.inputs));
  const std::vector<Datum> inputs = make_inputs(model, options.inputs);
  // Passes may rename; the outputs keep the file's names and types.
  const auto original = model.graph->clone();
  Session session(compile(std::move(model.graph), options.compile()).plan);
  warn_about(session.plan());
  const auto& results = session.run(inputs);
  note_sizes(session);
  if (!folder.empty()) std::filesystem::create_directories(folder);
  std::map<std::string, int> used;
  json rows = json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    const Value& output = *original->outputs[i];
    const std::string path = folder.empty() ? "" : store(folder, output, results[i], used);
    if (options.json)
      rows.push_back(describe(output, results[i], path));
    else
      print(output, results[i], path);
  }
  if (options.json)
    std::printf(
        "%s\n",
        json{{"outputs", rows}}.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

}  // namespace

void add_run(Program& program) {
  auto* command = program.app.add_subcommand("run", "Run a model once and summarise its outputs");
  const auto options = std::make_shared<RunOptions>();
  const auto folder = std::make_shared<std::string>();
  add_run_options(*command, *options);
  command->add_option("--output", *folder,
                      "Folder to write each output to, as .npy (.pb for "
                      "types that NumPy lacks)");
  command->footer("Example: dais run model.onnx --input x=uniform:1x3x224x224:-1:1 --output out");
  command->callback([options, folder] { run(*options, *folder); });
}

}  // namespace dais::cli
