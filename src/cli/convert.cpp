#include <cstdio>

#include "api/compile.h"
#include "base/error.h"
#include "cli/command.h"
#include "onnx/exporter.h"
#include "train/precision.h"

namespace dais::cli {
namespace {

struct Options {
  std::string from, to, precision = "fp32";
  onnx::ExportOptions format;
  bool fold = false, external = false, json = false;
};

size_t file_bytes(const std::filesystem::path& path) {
  std::error_code absent;
  const auto size = std::filesystem::file_size(path, absent);
  return absent ? 0 : size;
}

void fold(Graph& graph) {
  CompileOptions passes;
  passes.optimize = Optimize::portable;
  optimize(graph, passes);
}

/// Products in 16 bits, with their weights; inputs and outputs stay as they are.
void lower(Graph& graph, train::Precision precision) {
  // What is folded into weights first needs no operator between 16-bit ones.
  fold(graph);
  train::lower_precision(graph, precision, true);
  std::string beyond;
  for (const std::string& name : train::beyond_half(graph))
    beyond += (beyond.empty() ? "" : ", ") + name;
  if (!beyond.empty())
    throw Error(Code::unsupported, "fp16 ends at 65504, and these hold larger numbers: " + beyond,
                "--precision", "Use bf16, which has the range of f32");
  fold(graph);
}

void convert(Options options) {
  onnx::Model model = onnx::import_model(options.from);
  const train::Precision precision = train::precision_from_name(options.precision);
  if (precision != train::Precision::fp32)
    lower(*model.graph, precision);
  else if (options.fold)
    fold(*model.graph);
  const std::filesystem::path to(options.to);
  if (options.external) options.format.external_file = to.filename().string() + ".data";
  onnx::save_model(model, to, options.format);
  const size_t nodes = model.graph->size(), bytes = file_bytes(to);
  if (options.json)
    std::printf("{\"nodes\":%zu,\"bytes\":%zu,\"opset\":%lld}\n", nodes, bytes,
                static_cast<long long>(options.format.opset));
  else
    std::printf("%s: %zu nodes, opset %lld, %zu bytes\n", options.to.c_str(), nodes,
                static_cast<long long>(options.format.opset), bytes);
}

}  // namespace

void add_convert(Program& program) {
  auto* command = program.app.add_subcommand("convert", "Write a model as ONNX again");
  const auto options = std::make_shared<Options>();
  command->add_option("from", options->from, "Model to read")->required();
  command->add_option("to", options->to, "File to write")->required();
  command->add_flag("--fold", options->fold,
                    "Run the rewrites that keep it plain ONNX (constants folded, dead nodes gone)");
  command
      ->add_option("--precision", options->precision,
                   "Element type of products and their weights: fp32, bf16 or fp16 (with --fold)")
      ->capture_default_str();
  command->add_flag("--external-data", options->external, "Put weights into TO.data beside TO");
  command->add_option("--opset", options->format.opset, "Opset of the ai.onnx domain to write")
      ->check(CLI::Range(onnx::kOldestWrittenOpset, onnx::kNewestOpset))
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON line instead of text");
  command->footer("Example: dais convert in.onnx out.onnx --fold --opset 21");
  command->callback([options] { convert(*options); });
}

}  // namespace dais::cli
