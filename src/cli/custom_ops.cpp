#include "cli/custom_ops.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "ops/custom/custom.h"

namespace dais::cli {
namespace {

/// One operator's file.
class SpecReader {
 public:
  explicit SpecReader(std::filesystem::path file) : file_(std::move(file)) {
    try {
      root_ = YAML::LoadFile(file_.string());
    } catch (const YAML::Exception& error) {
      refuse(std::string("no YAML: ") + error.what());
    }
    if (!root_.IsMap()) refuse("holds no entries");
  }

  CustomSpec read() {
    check_keys(root_, {"name", "inputs", "outputs", "kernel", "source", "launch", "arguments",
                       "attributes", "tolerance", "gradient"});
    CustomSpec out;
    out.name = text(root_, "name");
    out.kernel = text(root_, "kernel");
    const std::filesystem::path source = file_.parent_path() / text(root_, "source");
    out.file = source.filename().string();
    const auto bytes = MappedFile::open(source);
    out.text.assign(reinterpret_cast<const char*>(bytes->bytes().data()), bytes->bytes().size());
    out.inputs = list(root_["inputs"], "inputs");
    read_outputs(out);
    for (const auto& entry : root_["attributes"])
      out.attributes.push_back({entry.first.Scalar(), number<float>(entry.second, "attributes")});
    if (root_["arguments"]) out.arguments = list(root_["arguments"], "arguments");
    if (const YAML::Node launch = root_["launch"]) {
      check_keys(launch, {"threads", "blocks"});
      if (launch["threads"]) out.threads = number<int>(launch["threads"], "threads");
      if (launch["blocks"]) out.blocks = text(launch, "blocks");
    }
    if (const YAML::Node tolerance = root_["tolerance"]) {
      check_keys(tolerance, {"relative", "absolute"});
      if (tolerance["relative"])
        out.relative_tolerance = number<double>(tolerance["relative"], "relative");
      if (tolerance["absolute"])
        out.absolute_tolerance = number<double>(tolerance["absolute"], "absolute");
    }
    if (root_["gradient"]) out.gradient = text(root_, "gradient");
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& problem, const std::string& remedy = {}) const {
    throw Error(Code::invalid_argument, problem, file_.string(), remedy);
  }

  void check_keys(const YAML::Node& node, const std::vector<std::string>& known) const {
    if (!node.IsMap()) refuse("an entry that should have names has none");
    for (const auto& entry : node) {
      const std::string key = entry.first.Scalar();
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string guess = nearest(key, known);
      refuse("'" + key + "' is no entry of an operator",
             guess.empty() ? "" : "Did you mean '" + guess + "'?");
    }
  }

  std::string text(const YAML::Node& node, const char* key) const {
    const YAML::Node found = node[key];
    if (!found || !found.IsScalar()) refuse(std::string("'") + key + "' is missing");
    return found.Scalar();
  }

  std::vector<std::string> list(const YAML::Node& node, const char* what) const {
    if (!node || !node.IsSequence()) refuse(std::string("'") + what + "' is no list");
    std::vector<std::string> out;
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) refuse(std::string("'") + what + "' holds more than names");
      out.push_back(item.Scalar());
    }
    return out;
  }

  template <typename T>
  T number(const YAML::Node& node, const char* what) const {
    T out{};
    if (!node.IsScalar() || !YAML::convert<T>::decode(node, out))
      refuse(std::string("'") + what + "' is no number");
    return out;
  }

  void read_outputs(CustomSpec& out) const {
    const YAML::Node outputs = root_["outputs"];
    if (!outputs || !outputs.IsSequence()) refuse("'outputs' is no list");
    for (const YAML::Node& node : outputs) {
      check_keys(node, {"name", "type", "shape"});
      CustomSpec::Output output{text(node, "name"), text(node, "type"), {}, {}};
      const YAML::Node shape = node["shape"];
      if (!shape) refuse("output '" + output.name + "' has no shape");
      if (shape.IsScalar())
        output.shape_of = shape.Scalar();
      else
        output.shape = list(shape, "shape");
      out.outputs.push_back(std::move(output));
    }
  }

  std::filesystem::path file_;
  YAML::Node root_;
};

}  // namespace

void load_custom_ops(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  if (failed) throw Error(Code::not_found, "cannot read the folder of operators", folder.string());
  if (files.empty())
    throw Error(Code::not_found, "the folder holds no operators", folder.string(),
                "An operator is a .yaml file beside its .cu file");
  std::sort(files.begin(), files.end());
  for (const auto& file : files) add_custom_op(SpecReader(file).read());
}

void add_ops_option(CLI::App& command) {
  command
      .add_option_function<std::vector<std::string>>(
          "--ops",
          [](const std::vector<std::string>& folders) {
            for (const std::string& folder : folders) load_custom_ops(folder);
          },
          "Folder of own operators: a .cu and a .yaml file each (docs/gpu.md)")
      ->type_name("DIR")
      ->trigger_on_parse();
}

}  // namespace dais::cli
