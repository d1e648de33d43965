#include "cli/model_choice.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "train/checkpoint.h"
#include "train/train_record.h"

namespace dais::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Metadata that a file holds as JSON; null when absent or broken.
json stored(const onnx::Model& model, const char* key) {
  const auto found = model.metadata.find(key);
  if (found == model.metadata.end()) return nullptr;
  json out = json::parse(found->second, nullptr, false);
  return out.is_discarded() ? json(nullptr) : out;
}

int64_t chosen_update(const train::CheckpointFolder& folder, const std::string& weights) {
  const auto updates = folder.updates();
  if (updates.empty())
    throw Error(Code::not_found, "the training has no checkpoint yet", folder.path().string());
  if (weights == "last") return updates.back();
  if (weights == "best") {
    const auto best = folder.best();
    return best ? best->first : updates.back();
  }
  int64_t update = 0;
  const auto parsed = std::from_chars(weights.data(), weights.data() + weights.size(), update);
  if (parsed.ec == std::errc() &&
      std::find(updates.begin(), updates.end(), update) != updates.end())
    return update;
  std::string all;
  for (const int64_t each : updates) all += (all.empty() ? "" : ", ") + std::to_string(each);
  throw Error(Code::not_found, "there is no checkpoint '" + weights + "'", folder.path().string(),
              "Use best, last or one of " + all);
}

/// Numbers of a JSON list, empty when it is none.
std::vector<float> numbers(const json& list) {
  std::vector<float> out;
  if (!list.is_array()) return out;
  for (const json& item : list)
    if (item.is_number()) out.push_back(item.get<float>());
  return out;
}

}  // namespace

void add_model_choice(CLI::App& command, ModelChoice& choice) {
  command.add_option("model", choice.path, "ONNX file, or the folder of a training")->required();
  command
      .add_option("--weights", choice.weights,
                  "Of a folder: best, last, or the update number of a checkpoint")
      ->capture_default_str();
}

onnx::Model load_choice(const ModelChoice& choice) {
  const fs::path path = choice.path;
  if (!fs::is_directory(path)) return onnx::import_model(path);
  if (!fs::exists(path / "model.onnx") || !fs::exists(path / "checkpoints"))
    throw Error(Code::not_found, "the folder holds no training", path.string(),
                "Give an ONNX file, or the folder that train --out named");
  onnx::Model model = onnx::import_model(path / "model.onnx");
  const train::CheckpointFolder folder(path / "checkpoints", train::CheckpointFolder::kReadOnly);
  const auto checkpoint = folder.read(chosen_update(folder, choice.weights));
  train::set_constants(*model.graph, train::weights_of(checkpoint.tensors));
  return model;
}

data::OpenOptions data_options(const onnx::Model& model, const DataFlags& flags) {
  data::OpenOptions out = flags.source.options();
  if (model.graph->inputs.empty()) return out;
  // Tokens are those of the training; the first of a transcript's is the blank.
  out.text.vocabulary = stored_classes(model);
  const auto task = model.metadata.find("dais.task");
  if (task != model.metadata.end() && task->second == "transcription" &&
      !out.text.vocabulary.empty())
    out.text.vocabulary.erase(out.text.vocabulary.begin());
  const Type& input = model.graph->inputs[0]->type;
  const bool image = input.ranked() && input.shape->size() == 4;
  if (!image) return out;
  const Dims& dims = *input.shape;
  if (out.image.channels == 0)
    if (const auto channels = dims[1].constant(); channels && (*channels == 1 || *channels == 3))
      out.image.channels = static_cast<int>(*channels);
  if (out.image.height == 0 && dims[2].is_constant() && dims[3].is_constant()) {
    out.image.height = *dims[2].constant();
    out.image.width = *dims[3].constant();
  }
  return out;
}

data::Normalise stored_normalise(const onnx::Model& model, const data::Normalise& otherwise) {
  data::Normalise out = otherwise;
  const json held = stored(model, "dais.normalise");
  if (!held.is_object()) return out;
  if (held.contains("scale") && held["scale"].is_number()) out.scale = held["scale"].get<double>();
  if (out.mean.empty() && held.contains("mean")) out.mean = numbers(held["mean"]);
  if (out.deviation.empty() && held.contains("deviation"))
    out.deviation = numbers(held["deviation"]);
  return out;
}

std::vector<std::string> stored_classes(const onnx::Model& model) {
  std::vector<std::string> out;
  const json held = stored(model, "dais.classes");
  if (!held.is_array()) return out;
  for (const json& name : held) out.push_back(name.is_string() ? name.get<std::string>() : "");
  return out;
}

}  // namespace dais::cli
