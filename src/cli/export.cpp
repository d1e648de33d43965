#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_choice.h"
#include "onnx/exporter.h"

namespace dais::cli {
namespace {

struct Options {
  ModelChoice choice;
  std::string to;
  onnx::ExportOptions format;
  bool external = false, json = false;
};

void run(Options options) {
  const onnx::Model model = load_choice(options.choice);
  const std::filesystem::path to = options.to;
  if (options.external) options.format.external_file = to.filename().string() + ".data";
  onnx::save_model(model, to, options.format);
  const auto bytes = std::filesystem::file_size(to);
  if (options.json)
    std::printf("%s\n", nlohmann::json{{"model", options.to},
                                       {"bytes", bytes},
                                       {"opset", options.format.opset},
                                       {"nodes", model.graph->size()}}
                            .dump()
                            .c_str());
  else
    std::printf("%s: %zu nodes, opset %lld, %ju bytes\n", options.to.c_str(), model.graph->size(),
                static_cast<long long>(options.format.opset), static_cast<uintmax_t>(bytes));
}

}  // namespace

void add_export(Program& program) {
  auto* command =
      program.app.add_subcommand("export", "Write a trained network as ONNX for inference");
  const auto options = std::make_shared<Options>();
  options->format.opset = 21;
  add_model_choice(*command, options->choice);
  command->add_option("-o,--output", options->to, "File to write")->required();
  command->add_option("--opset", options->format.opset, "Opset of the ai.onnx domain to write")
      ->check(CLI::Range(int64_t{13}, onnx::kNewestOpset))
      ->capture_default_str();
  command->add_flag("--external-data", options->external,
                    "Put weights into OUTPUT.data beside OUTPUT");
  command->add_flag("--json", options->json, "One JSON line instead of text");
  command->footer("Example: dais export run -o clothes.onnx");
  command->callback([options] { run(*options); });
}

}  // namespace dais::cli
