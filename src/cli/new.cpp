#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "dais/networks.h"
#include "onnx/importer.h"

namespace dais::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string output;
  uint64_t seed = 0;
  nn::WriteOptions format;
  bool json = false;
  std::map<std::string, std::string> values;  ///< settings by flag name
};

json recipe_json(const nn::Recipe& recipe) {
  json flags = json::array();
  for (const nn::FlagInfo& flag : recipe.flags)
    flags.push_back({{"name", flag.name}, {"default", flag.value}, {"help", flag.help}});
  return {{"name", recipe.name}, {"purpose", recipe.purpose}, {"flags", flags}};
}

std::string flags_text(const nn::Recipe& recipe) {
  std::string out;
  for (const nn::FlagInfo& flag : recipe.flags) {
    const std::string text =
        "--" + flag.name + (flag.is_switch && flag.value == "false" ? "" : " " + flag.value);
    const size_t line = out.size() - (out.rfind('\n') == std::string::npos ? 0 : out.rfind('\n'));
    if (!out.empty()) out += line + text.size() > 76 ? "\n      " : "  ";
    out += text;
  }
  return out;
}

void list(bool as_json) {
  if (as_json) {
    json rows = json::array();
    for (const nn::Recipe& recipe : nn::recipes()) rows.push_back(recipe_json(recipe));
    std::printf("%s\n", json{{"networks", rows}}.dump(2).c_str());
    return;
  }
  for (const nn::Recipe& recipe : nn::recipes())
    std::printf("%-16s %s\n      %s\n", recipe.name.c_str(), recipe.purpose.c_str(),
                flags_text(recipe).c_str());
}

/// A name or flag that is not there, with the nearest that is.
void refuse_rest(const CLI::App& command, const nn::Recipe* recipe) {
  for (const std::string& word : command.remaining()) {
    if (!recipe) {
      nn::recipe(word);
      continue;
    }
    std::vector<std::string> names{"--output", "--seed", "--opset", "--json", "--external-data"};
    for (const nn::FlagInfo& flag : recipe->flags) names.push_back("--" + flag.name);
    const std::string guess = nearest(word.substr(0, word.find('=')), names);
    throw Error(Code::invalid_argument, recipe->name + " has no setting '" + word + "'", "",
                guess.empty() ? "See dais new " + recipe->name + " --help"
                              : "Did you mean '" + guess + "'?");
  }
}

void make(const nn::Recipe& recipe, const Options& options) {
  nn::Network net = recipe.build(options.values, options.seed);
  net.note("dais.network", recipe.name);
  net.note("dais.seed", std::to_string(options.seed));
  net.save(options.output, options.format);
  if (options.json)
    std::printf("%s\n", json{{"network", recipe.name},
                             {"file", options.output},
                             {"parameters", net.parameter_count()},
                             {"nodes", net.node_count()}}
                            .dump()
                            .c_str());
  else
    std::printf("%s: %s, %lld parameters, %zu nodes\n", options.output.c_str(), recipe.name.c_str(),
                static_cast<long long>(net.parameter_count()), net.node_count());
}

void add_flag(CLI::App& command, Options& options, const nn::FlagInfo& flag) {
  const auto store = [&options, name = flag.name](const std::string& text) {
    options.values[name] = text;
  };
  auto* option = command.add_option_function<std::string>("--" + flag.name, store, flag.help)
                     ->default_str(flag.value)
                     ->type_name(flag.is_switch ? "true|false" : "VALUE");
  if (flag.is_switch) option->expected(0, 1)->default_str("true");
}

void add_network(CLI::App& parent, const nn::Recipe& recipe) {
  auto* command = parent.add_subcommand(recipe.name, recipe.purpose);
  const auto options = std::make_shared<Options>();
  command->allow_extras();
  for (const nn::FlagInfo& flag : recipe.flags) add_flag(*command, *options, flag);
  command->add_option("-o,--output", options->output, "ONNX file to write");
  command->add_option("--seed", options->seed, "Of the initial weights")->capture_default_str();
  command->add_option("--opset", options->format.opset, "Opset of the ai.onnx domain to write")
      ->check(CLI::Range(int64_t{17}, onnx::kNewestOpset))
      ->capture_default_str();
  command->add_flag("--external-data", options->format.external_data,
                    "Put weights into a second file, OUTPUT.data");
  command->add_flag("--json", options->json, "One JSON line instead of text");
  command->callback([command, &recipe, options] {
    refuse_rest(*command, &recipe);
    if (options->output.empty())
      throw Error(Code::invalid_argument, "there is no file to write to", "dais new",
                  "Name it with -o model.onnx");
    make(recipe, *options);
  });
}

}  // namespace

void add_new(Program& program) {
  auto* command =
      program.app.add_subcommand("new", "Make a network with initial weights, ready for training");
  const auto listing = std::make_shared<bool>(false), as_json = std::make_shared<bool>(false);
  command->add_flag("--list", *listing, "Show all networks with their settings");
  command->add_flag("--json", *as_json, "The list as JSON");
  command->allow_extras();
  command->require_subcommand(0, 1);
  for (const nn::Recipe& recipe : nn::recipes()) add_network(*command, recipe);
  command->footer("Example: dais new resnet18 --input 3x32x32 --classes 10 -o model.onnx");
  command->callback([command, listing, as_json] {
    if (!command->get_subcommands().empty()) return;
    if (*listing) return list(*as_json);
    refuse_rest(*command, nullptr);
    throw Error(Code::invalid_argument, "no network is named", "dais new", "See dais new --list");
  });
}

}  // namespace dais::cli
