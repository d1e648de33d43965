#include "cli/yaml_flags.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "base/error.h"

namespace dais::cli {
namespace {

std::string name_of(const CLI::Option& option) {
  if (!option.get_lnames().empty()) return option.get_lnames().front();
  return option.get_name(true);
}

CLI::Option* find(CLI::App& command, const std::string& key) {
  for (CLI::Option* option : command.get_options())
    if (name_of(*option) == key && key != "help") return option;
  return nullptr;
}

[[noreturn]] void refuse(const std::string& problem, const std::filesystem::path& file,
                         const std::string& remedy = {}) {
  throw Error(Code::invalid_argument, problem, file.string(), remedy);
}

void set(CLI::Option& option, const YAML::Node& value, const std::filesystem::path& file) {
  const std::string name = name_of(option);
  std::vector<std::string> texts;
  if (value.IsScalar())
    texts.push_back(value.Scalar());
  else if (value.IsSequence())
    for (const YAML::Node& item : value) {
      if (!item.IsScalar()) refuse("'" + name + "' holds a list of lists", file);
      texts.push_back(item.Scalar());
    }
  else
    refuse("'" + name + "' has no value", file, "Write a value or a list of values");
  if (option.count() > 0 || texts.empty()) return;
  try {
    for (const std::string& text : texts) option.add_result(text);
    option.run_callback();
  } catch (const CLI::Error& error) {
    refuse("'" + name + "': " + error.what(), file);
  }
}

}  // namespace

void apply_yaml(CLI::App& command, const std::filesystem::path& file) {
  YAML::Node root;
  try {
    root = YAML::LoadFile(file.string());
  } catch (const YAML::BadFile&) {
    throw Error(Code::not_found, "cannot read the file", file.string());
  } catch (const YAML::Exception& error) {
    refuse(std::string("no YAML: ") + error.what(), file);
  }
  if (root.IsNull()) return;
  if (!root.IsMap()) refuse("the file is no map from flags to values", file);
  for (const auto& entry : root) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (CLI::Option* option = find(command, key)) {
      set(*option, entry.second, file);
      continue;
    }
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) names.push_back(name_of(*option));
    const std::string guess = nearest(key, names);
    refuse("'" + key + "' is no flag of " + command.get_name(), file,
           guess.empty() ? "See --help" : "Did you mean '" + guess + "'?");
  }
}

std::string yaml_of(const CLI::App& command, const std::vector<std::string>& without) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = name_of(*option);
    if (option->count() == 0 || std::find(without.begin(), without.end(), name) != without.end())
      continue;
    out << YAML::Key << name << YAML::Value;
    const auto& values = option->results();
    if (values.size() == 1)
      out << values[0];
    else
      out << YAML::Flow << values;
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace dais::cli
