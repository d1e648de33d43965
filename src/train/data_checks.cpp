#include <algorithm>
#include <nlohmann/json.hpp>

#include "train/trainer.h"

namespace dais::train {
namespace {

/// Number of class scores that the network gives, 0 when that is open.
int64_t scores_of(const onnx::Model& model, LossKind loss) {
  // A detector's first output are boxes.
  const size_t output = loss == LossKind::detection ? 1 : 0;
  if (model.graph->outputs.size() <= output) return 0;
  const Type& type = model.graph->outputs[output]->type;
  if (!type.ranked() || type.shape->size() < 2) return 0;
  const Dims& dims = *type.shape;
  const bool last = loss != LossKind::cross_entropy;
  return (last ? dims.back() : dims[1]).constant().value_or(0);
}

std::string listed(const std::vector<std::string>& examples, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(most, examples.size()); ++i) out += (i ? ", " : "") + examples[i];
  return out + (examples.size() > most ? ", …" : "");
}

/// Counts by class; labels the network cannot give are an error.
void check_labels(const data::Dataset& dataset, int64_t scores, std::vector<std::string>& out) {
  const data::Description& about = dataset.description();
  std::vector<int64_t> counts(static_cast<size_t>(std::max<int64_t>(scores, 0)));
  int64_t outside = 0;
  std::vector<std::string> examples;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const int64_t label = dataset.label(i);
    if (label >= 0 && label < scores) {
      ++counts[static_cast<size_t>(label)];
      continue;
    }
    ++outside;
    if (examples.size() < 3)
      examples.push_back(dataset.name(i) + " (" + std::to_string(label) + ")");
  }
  if (outside > 0)
    throw Error(Code::invalid_argument,
                std::to_string(outside) + " samples have a class outside 0 to " +
                    std::to_string(scores - 1) +
                    ", the scores that the network gives: " + listed(examples, 3),
                about.format, "Use --replace-head " + std::to_string(about.class_count));
  std::vector<std::string> empty;
  for (size_t c = 0; c < counts.size(); ++c)
    if (counts[c] == 0)
      empty.push_back(c < about.classes.size() ? about.classes[c] : std::to_string(c));
  if (!empty.empty())
    out.push_back(std::to_string(empty.size()) + " of " + std::to_string(scores) +
                  " classes have no sample: " + listed(empty, 5));
}

}  // namespace

std::vector<std::string> check_data(const onnx::Model& model, const data::Dataset& dataset,
                                    LossKind loss) {
  std::vector<std::string> out;
  const data::Description& about = dataset.description();
  for (const data::Finding& finding : about.findings)
    out.push_back(std::to_string(finding.count) + " × " + finding.what +
                  (finding.examples.empty() ? "" : ": " + listed(finding.examples, 3)));
  const int64_t scores = scores_of(model, loss);
  const bool head = loss == LossKind::cross_entropy || loss == LossKind::next_token;
  if ((!head && loss != LossKind::ctc && loss != LossKind::detection) || scores == 0) return out;
  const std::string wanted = std::to_string(about.class_count);
  if (about.class_count > scores)
    throw Error(Code::invalid_argument,
                "the data have " + wanted + " classes" +
                    (loss == LossKind::ctc ? ", the blank among them" : "") +
                    ", the network gives scores for " + std::to_string(scores),
                about.format,
                head ? "Use --replace-head " + wanted
                     : "Make the network by 'dais new' with --classes " + wanted);
  if (about.task == data::Task::classification) check_labels(dataset, scores, out);
  return out;
}

void describe_data(onnx::Model& model, const data::Loader& loader) {
  using nlohmann::json;
  const data::Description& about = loader.dataset().description();
  const data::Normalise& normalise = loader.options().normalise;
  json classes = about.classes;
  model.metadata["dais.task"] = data::task_name(about.task);
  model.metadata["dais.input"] = data::input_kind_name(about.input);
  if (!about.classes.empty()) model.metadata["dais.classes"] = classes.dump();
  model.metadata["dais.normalise"] = json{
      {"scale", normalise.scale},
      {"mean", normalise.mean},
      {"deviation", normalise.deviation}}.dump();
}

}  // namespace dais::train
