// train_runner NET PRECISION THREADS [--device NAME] [--profile]: the training step of one net of
// the comparison on random data. Reads seconds from its input, line by line, runs steps for so long
// and prints their times as one line of JSON; at the end of its input it prints its peak memory.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <random>

#include "api/device.h"
#include "dais/networks.h"
#include "onnx/importer.h"
#include "train/step.h"

namespace {

using namespace dais;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Tensor normal(const Shape& shape, std::mt19937& random) {
  Tensor out(DType::f32, shape);
  std::normal_distribution<float> draw;
  for (float& x : out.data<float>()) x = draw(random);
  return out;
}

Tensor whole(const Shape& shape, int64_t low, int64_t high, std::mt19937& random) {
  Tensor out(DType::i64, shape);
  std::uniform_int_distribution<int64_t> draw(low, high - 1);
  for (int64_t& x : out.data<int64_t>()) x = draw(random);
  return out;
}

Tensor filled(int64_t count, int64_t value) {
  Tensor out(DType::i64, {count});
  std::ranges::fill(out.data<int64_t>(), value);
  return out;
}

/// A net with its batch and optimiser, as torch_peer.py has them.
struct Case {
  nn::Network net;
  data::Batch batch;
  train::StepOptions options;
};

data::Batch images(Shape shape, int64_t classes, std::mt19937& random) {
  data::Batch out;
  out.target = whole({shape[0]}, 0, classes, random);
  out.input = normal(shape, random);
  return out;
}

data::Batch tokens(int64_t batch, int64_t length, std::mt19937& random) {
  data::Batch out;
  out.input = whole({batch, length}, 0, 256, random);
  out.target = whole({batch, length}, 0, 256, random);
  return out;
}

data::Batch speech(int64_t batch, int64_t frames, int64_t labels, std::mt19937& random) {
  data::Batch out;
  out.input = normal({batch, 1, 161, frames}, random);
  out.target = whole({batch, labels}, 1, 29, random);
  out.input_lengths = filled(batch, frames);
  out.target_lengths = filled(batch, labels);
  return out;
}

train::StepOptions sgd(double momentum) {
  train::StepOptions out;
  out.optimiser.momentum = momentum;
  return out;
}

train::StepOptions adam(train::OptimiserKind kind) {
  train::StepOptions out;
  out.optimiser.kind = kind;
  out.optimiser.decay_all = true;
  out.loss.kind = train::LossKind::next_token;
  return out;
}

Case make_case(const std::string& name) {
  std::mt19937 random(1);
  if (name == "mlp") return {nn::Mlp{}.build(), images({128, 1, 28, 28}, 10, random), sgd(0)};
  if (name == "lenet")
    return {nn::LeNet{.filters = {32, 64}, .hidden = {512}, .same = true}.build(),
            images({64, 1, 28, 28}, 10, random), sgd(0.9)};
  if (name == "resnet18_32")
    return {nn::ResNet{.depth = 18, .input = {3, 32, 32}, .classes = 10}.build(),
            images({64, 3, 32, 32}, 10, random), sgd(0.9)};
  if (name == "resnet50_224")
    return {nn::ResNet{.depth = 50}.build(), images({16, 3, 224, 224}, 1000, random), sgd(0.9)};
  if (name == "resnet50_224x128")
    return {nn::ResNet{.depth = 50}.build(), images({128, 3, 224, 224}, 1000, random), sgd(0.9)};
  if (name == "gpt12x768")
    return {nn::Gpt{.vocab = 256, .dropout = 0, .tied = false}.build(), tokens(8, 1024, random),
            adam(train::OptimiserKind::adamw)};
  if (name == "gpt6x384")
    return {nn::recipe("gpt-mini").build({}, 0), tokens(8, 256, random),
            adam(train::OptimiserKind::adamw)};
  if (name == "lstm2x512")
    return {nn::LstmLanguageModel{}.build(), tokens(32, 64, random),
            adam(train::OptimiserKind::adam)};
  if (name == "ds2") {
    Case out{nn::DeepSpeech{}.build(), speech(8, 300, 40, random), sgd(0.9)};
    out.options.loss.kind = train::LossKind::ctc;
    return out;
  }
  throw Error(Code::not_found, "there is no net '" + name + "'");
}

int64_t peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::atoll(line.c_str() + 6);
  return 0;
}

/// Where the time of a step goes: by operator and kernel, and the slowest steps.
void print_profile(train::TrainingStep& step, const data::Batch& batch) {
  struct Share {
    std::string name;
    double seconds = 0;
    int count = 0;
  };
  std::map<std::string, Share> kinds, nodes;
  double total = 0;
  constexpr int kRuns = 3;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<StepTime> profile;
    step.run(batch, 1e-6, run, true, &profile);
    for (const StepTime& time : profile) {
      const Step& at = time.plan->steps()[time.step];
      const std::string kernel = at.row ? std::string(at.row->name) : "reference";
      std::string kind = std::string(at.node->op->name) + "  " + kernel;
      std::string node = kind + "  " + at.node->name;
      for (const Value* in : at.node->in) node += in ? " " + in->type.text() : " -";
      for (Share* share : {&kinds[kind], &nodes[node]}) {
        share->seconds += time.seconds / kRuns;
        ++share->count;
      }
      total += time.seconds / kRuns;
    }
  }
  std::printf("%.3f ms in all\n", total * 1e3);
  for (auto* shares : {&kinds, &nodes}) {
    std::vector<Share> sorted;
    for (auto& [name, share] : *shares) sorted.push_back({name, share.seconds, share.count});
    std::ranges::sort(sorted, std::greater(), &Share::seconds);
    sorted.resize(std::min<size_t>(sorted.size(), 40));
    for (const Share& share : sorted)
      std::printf("%9.3f ms %5.1f%% %5d  %s\n", share.seconds * 1e3, 100 * share.seconds / total,
                  share.count / kRuns, share.name.c_str());
    std::printf("\n");
  }
}

void serve(const Case& each, train::TrainingStep& step) {
  int64_t update = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const double seconds = std::atof(line.c_str());
    std::vector<double> times;
    double loss = 0;
    const auto start = Clock::now();
    while (times.size() < 2 || seconds_since(start) < seconds) {
      const auto begin = Clock::now();
      step.prefetch(each.batch);
      loss = step.run(each.batch, 0.001, update++).loss;
      times.push_back(seconds_since(begin) * 1e3);
    }
    std::ranges::sort(times);
    std::printf("{\"steps\": %zu, \"median_ms\": %.4f, \"best_ms\": %.4f, \"loss\": %.5f}\n",
                times.size(), times[times.size() / 2], times[0], loss);
    std::fflush(stdout);
  }
  std::printf("{\"peak_mib\": %.1f, \"parameters\": %zu}\n", static_cast<double>(peak_kib()) / 1024,
              step.parameters());
}

}  // namespace

int main(int count, char** words) try {
  if (count < 4) {
    std::fprintf(stderr,
                 "usage: train_runner NET fp32|bf16|fp16 THREADS [--device NAME] [--profile]\n");
    return 2;
  }
  Case each = make_case(words[1]);
  each.options.precision = train::precision_from_name(words[2]);
  each.options.threads = std::atoi(words[3]);
  bool profile = false;
  for (int i = 4; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--profile") profile = true;
    if (word == "--device" && i + 1 < count)
      each.options.backend = choose_device(words[++i]).backend;
  }
  auto bytes = each.net.onnx();
  onnx::Model model = onnx::import_model(Bytes(bytes));
  bytes = {};
  train::TrainingStep step(model, each.options, each.batch);
  step.run(each.batch, 0.001, 0);
  if (profile)
    print_profile(step, each.batch);
  else
    serve(each, step);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "train_runner: %s\n", error.what());
  return 1;
}
