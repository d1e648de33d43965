#include "train/train_record.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "onnx/exporter.h"
#include "train/plot.h"

namespace dais::train {
namespace {

using nlohmann::json;

const std::vector<std::string> kColumns{"step",          "epoch",           "loss",
                                        "learning_rate", "gradient_norm",   "samples_per_second",
                                        "wait_share",    "validation_loss", "validation_score"};

json mean_json(const Mean& mean) { return {mean.value() * mean.weight(), mean.weight()}; }

}  // namespace

std::string MachineFacts::difference(const MachineFacts& other) const {
  std::string out;
  const auto note = [&](const std::string& what, const std::string& a, const std::string& b) {
    if (a != b) out += (out.empty() ? "" : "; ") + what + " " + a + " before, " + b + " now";
  };
  note("threads:", std::to_string(threads), std::to_string(other.threads));
  note("ranks:", std::to_string(ranks), std::to_string(other.ranks));
  note("instructions:", isa, other.isa);
  note("program:", build, other.build);
  note("device:", device, other.device);
  return out;
}

std::string TrainRecord::text() const {
  json out{{"threads", machine.threads},
           {"ranks", machine.ranks},
           {"isa", machine.isa},
           {"build", machine.build},
           {"device", machine.device},
           {"loader", loader},
           {"epoch", epoch},
           {"stale", stale},
           {"interval", mean_json(interval)}};
  if (best) {
    out["best"] = *best;
    out["best_update"] = best_update;
  }
  return out.dump();
}

TrainRecord TrainRecord::parse(const std::string& text) {
  TrainRecord out;
  try {
    const json in = json::parse(text);
    out.machine = {in.at("threads").get<int>(), in.value("ranks", 1),
                   in.at("isa").get<std::string>(), in.at("build").get<std::string>(),
                   in.value("device", "CPU")};
    out.loader = in.at("loader").get<std::string>();
    out.epoch = in.at("epoch").get<double>();
    out.stale = in.at("stale").get<int64_t>();
    if (in.contains("best")) {
      out.best = in.at("best").get<double>();
      out.best_update = in.at("best_update").get<int64_t>();
    }
    const json& interval = in.at("interval");
    if (const double weight = interval.at(1).get<double>(); weight > 0)
      out.interval.add(interval.at(0).get<double>() / weight, weight);
  } catch (const json::exception& error) {
    throw Error(Code::invalid_model, "a checkpoint's facts are incomplete", error.what());
  }
  return out;
}

TrainLog::TrainLog(const std::filesystem::path& folder, int64_t resumed_at)
    : csv_(folder / "metrics.csv", kColumns, resumed_at), events_(folder, resumed_at) {}

void TrainLog::write(int64_t update, const Scalars& values) {
  csv_.write(update, values);
  Scalars tagged;
  for (const auto& [name, value] : values) tagged.emplace_back("train/" + name, value);
  events_.write(update, tagged);
}

void TrainLog::write_validation(int64_t update, double epoch, const Evaluation& evaluation) {
  csv_.write(update, {{"epoch", epoch},
                      {"validation_loss", evaluation.loss},
                      {"validation_score", evaluation.score}});
  Scalars tagged;
  for (const auto& [name, value] : evaluation.values)
    tagged.emplace_back("validation/" + name, value);
  events_.write(update, tagged);
}

void write_curves(const std::filesystem::path& folder, const std::string& metric) {
  std::map<std::string, Curve> curves;
  std::ifstream file(folder / "metrics.csv");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::string cell;
    double step = 0;
    for (size_t i = 0; i < kColumns.size() && std::getline(cells, cell, ','); ++i) {
      if (cell.empty()) continue;
      const double value = std::strtod(cell.c_str(), nullptr);
      if (i == 0) step = value;
      curves[kColumns[i]].x.push_back(step);
      curves[kColumns[i]].y.push_back(value);
    }
  }
  const auto named = [&](const std::string& name, const char* column) {
    Curve curve = curves[column];
    curve.name = name;
    return curve;
  };
  std::vector<Chart> charts{
      {"loss", "update", {named("training", "loss"), named("validation", "validation_loss")}}};
  if (!metric.empty() && metric != "loss")
    charts.push_back({metric, "update", {named("validation", "validation_score")}});
  charts.push_back({"learning rate", "update", {named("", "learning_rate")}});
  write_charts(folder / "curves.png", charts);
}

std::map<std::string, Tensor> weights_of(const std::vector<NamedTensor>& tensors) {
  std::map<std::string, Tensor> all(tensors.begin(), tensors.end());
  std::map<std::string, Tensor> out = all;
  for (auto& [name, tensor] : out)
    if (const auto mean = all.find(name + ".ema"); mean != all.end()) tensor = mean->second;
  return out;
}

void export_weights(const onnx::Model& model, const std::map<std::string, Tensor>& weights,
                    const std::filesystem::path& path) {
  onnx::Model copy;
  copy.graph = model.graph->clone();
  copy.inputs = model.inputs;
  copy.outputs = model.outputs;
  copy.output_types = model.output_types;
  copy.opsets = model.opsets;
  copy.producer = model.producer;
  copy.metadata = model.metadata;
  copy.ir_version = model.ir_version;
  set_constants(*copy.graph, weights);
  onnx::save_model(copy, path);
}

size_t resident_bytes() {
  long long pages = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file) return 0;
  if (std::fscanf(file, "%lld %lld", &pages, &resident) != 2) resident = 0;
  std::fclose(file);
  return static_cast<size_t>(resident) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace dais::train
