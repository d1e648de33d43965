#include "train/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "api/compile.h"
#include "runtime/session.h"
#include "train/decode.h"
#include "train/step_graph.h"

namespace dais::train {
namespace {

/// What one batch adds to the metrics of a task.
class Metrics {
 public:
  explicit Metrics(const data::Description& description) : description_(description) {}

  /// `results`: the loss, then the network's outputs.
  void add(const data::Batch& batch, const std::vector<Datum>& results) {
    const Tensor& output = results[1].tensor;
    switch (description_.task) {
      case data::Task::transcription: return add_transcripts(batch, output);
      case data::Task::detection: return add_boxes(batch, output, results.at(2).tensor);
      case data::Task::classification: return add_classes(batch, output);
      case data::Task::segmentation: return add_pixels(batch, output);
      case data::Task::regression: return add_values(batch, output);
      default: return;
    }
  }

  void finish(Evaluation& out) const {
    const auto put = [&](const char* name, double value) { out.values.emplace_back(name, value); };
    const auto headline = [&](const char* name, double value, bool higher) {
      out.metric = name;
      out.score = value;
      out.higher_is_better = higher;
    };
    put("loss", out.loss);
    out.score = out.loss;
    if (classes_) {
      headline("accuracy", classes_->accuracy(), true);
      put("accuracy", classes_->accuracy());
      if (classes_->confusion().classes() > classes_->k())
        put(("top" + std::to_string(classes_->k())).c_str(), classes_->top_k());
      out.confusion = classes_->confusion();
    }
    if (pixels_) {
      headline("mean_iou", pixels_->mean_iou(), true);
      put("mean_iou", pixels_->mean_iou());
      put("pixel_accuracy", pixels_->accuracy());
      out.confusion = pixels_;
    }
    if (squares_.weight() > 0) {
      headline("rmse", std::sqrt(squares_.value()), false);
      put("rmse", std::sqrt(squares_.value()));
      put("mae", sizes_.value());
    }
    if (description_.task == data::Task::transcription) {
      headline("character_error_rate", transcripts_.character_error_rate(), false);
      put("character_error_rate", transcripts_.character_error_rate());
      put("word_error_rate", transcripts_.word_error_rate());
    }
    if (description_.task == data::Task::detection) {
      const double score = boxes_.mean_average_precision(0.5);
      headline("map50", score, true);
      put("map50", score);
      Mean strict;
      for (int percent = 50; percent < 100; percent += 5)
        strict.add(boxes_.mean_average_precision(percent / 100.0));
      put("map50_95", strict.value());
    }
    if (description_.task == data::Task::next_token) {
      headline("perplexity", std::exp(out.loss), false);
      put("perplexity", std::exp(out.loss));
    }
  }

 private:
  void add_classes(const data::Batch& batch, const Tensor& output) {
    if (output.rank() != 2 || output.dtype() != DType::f32 || batch.target.dtype() != DType::i64)
      return;
    const int64_t classes = output.shape()[1];
    if (!classes_) classes_.emplace(classes);
    const auto scores = output.data<float>();
    const auto truth = batch.target.data<int64_t>();
    for (size_t i = 0; i < truth.size(); ++i)
      if (truth[i] >= 0 && truth[i] < classes)
        classes_->add(
            scores.subspan(i * static_cast<size_t>(classes), static_cast<size_t>(classes)),
            truth[i]);
  }

  void add_pixels(const data::Batch& batch, const Tensor& output) {
    if (output.rank() != 4 || output.dtype() != DType::f32) return;
    const int64_t classes = output.shape()[1], area = output.shape().elements(2, 4);
    if (!pixels_) pixels_.emplace(classes);
    const auto scores = output.data<float>();
    const auto truth = batch.target.data<int64_t>();
    for (int64_t n = 0; n < output.shape()[0]; ++n)
      for (int64_t i = 0; i < area; ++i) {
        const int64_t wanted = truth[static_cast<size_t>(n * area + i)];
        // Pixels that do not count are below zero.
        if (wanted < 0 || wanted >= classes) continue;
        int64_t best = 0;
        for (int64_t c = 1; c < classes; ++c)
          if (scores[static_cast<size_t>((n * classes + c) * area + i)] >
              scores[static_cast<size_t>((n * classes + best) * area + i)])
            best = c;
        pixels_->add(wanted, best);
      }
  }

  void add_values(const data::Batch& batch, const Tensor& output) {
    if (output.dtype() != DType::f32 || output.elements() != batch.target.elements()) return;
    const auto found = output.data<float>(), wanted = batch.target.data<float>();
    for (size_t i = 0; i < found.size(); ++i) {
      const double difference = static_cast<double>(found[i]) - static_cast<double>(wanted[i]);
      squares_.add(difference * difference);
      sizes_.add(std::fabs(difference));
    }
  }

  void add_transcripts(const data::Batch& batch, const Tensor& output) {
    if (output.rank() != 3 || output.dtype() != DType::f32) return;
    const auto lengths = batch.input_lengths.to_ints(), words = batch.target_lengths.to_ints();
    const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    const int64_t width = batch.target.shape()[1];
    for (int64_t n = 0; n < batch.size(); ++n) {
      const auto at = static_cast<size_t>(n);
      const int64_t frames = (lengths[at] * output.shape()[1] + longest - 1) / longest;
      const auto tokens = batch.target.data<int64_t>().subspan(at * static_cast<size_t>(width),
                                                               static_cast<size_t>(words[at]));
      transcripts_.add(transcript_text(tokens, description_.classes),
                       decode_transcript(output, n, frames, description_.classes));
    }
  }

  void add_boxes(const data::Batch& batch, const Tensor& corners, const Tensor& scores) {
    constexpr double kLeastScore = 0.05, kOverlap = 0.5;
    const int64_t most = batch.classes.shape()[1];
    const auto height = static_cast<float>(batch.input.shape()[2]);
    const auto width = static_cast<float>(batch.input.shape()[3]);
    for (int64_t n = 0; n < batch.size(); ++n) {
      std::vector<BoxTruth> truth;
      for (int64_t m = 0; m < most; ++m) {
        const auto at = static_cast<size_t>(n * most + m);
        const int64_t label = batch.classes.data<int64_t>()[at];
        if (label < 0) continue;
        const float* box = batch.target.data<float>().data() + at * 4;
        truth.push_back(
            {{box[0] / width, box[1] / height, box[2] / width, box[3] / height}, label, false});
      }
      boxes_.add_image(decode_boxes(corners, scores, n, kLeastScore, kOverlap), std::move(truth));
    }
  }

  const data::Description& description_;
  TranscriptScores transcripts_;
  DetectionScores boxes_;
  std::optional<ClassScores> classes_;
  std::optional<Confusion> pixels_;
  Mean squares_, sizes_;
};

}  // namespace

class Evaluator::Body {
 public:
  Body(const onnx::Model& model, LossOptions loss, const std::map<std::string, Tensor>& weights,
       int threads, std::shared_ptr<Backend> backend)
      : network_(model.graph->clone()),
        loss_(std::move(loss)),
        threads_(threads),
        backend_(std::move(backend)) {
    loss_.label_smoothing = 0;
    set_constants(*network_, weights);
    if (loss_.kind == LossKind::detection) learn_anchors(*network_, loss_);
  }

  /// Batches of one shape of targets share a plan.
  void prepare(const data::Batch& batch) {
    auto graph = network_->clone();
    LossInputs in;
    in.outputs = graph->outputs;
    in.input = graph->inputs.at(0);
    const Value& input = *graph->inputs.at(0);
    const Dim batch_size = input.type.ranked() ? input.type.shape->at(0) : Dim::symbol("batch");
    for (const auto& [name, tensor] : target_tensors(loss_, batch)) {
      Dims dims{batch_size};
      for (size_t axis = 1; axis < tensor.rank(); ++axis)
        dims.push_back(batch.input_lengths ? Dim::symbol(name + "_" + std::to_string(axis))
                                           : Dim(tensor.shape()[axis]));
      Value* target = graph->add_input(Type::tensor(tensor.dtype(), dims), name);
      in.by_name(name) = target;
    }
    Value* loss = add_loss(*graph, loss_, in);
    graph->outputs.insert(graph->outputs.begin(), loss);
    CompileOptions options;
    options.threads = threads_;
    options.verify_passes = false;
    options.backend = backend_;
    session_ = std::make_unique<Session>(compile(std::move(graph), options).plan);
  }

  Evaluation run(data::Loader& loader) {
    const auto start = std::chrono::steady_clock::now();
    loader.seek_epoch(0);
    Metrics metrics(loader.dataset().description());
    Mean loss;
    Evaluation out;
    for (bool last = false; !last;) {
      const data::Batch batch = loader.next();
      last = batch.last_of_epoch;
      if (!session_) prepare(batch);
      std::vector<Datum> inputs{batch.input};
      for (const auto& [name, tensor] : target_tensors(loss_, batch)) inputs.emplace_back(tensor);
      const auto& results = session_->run(inputs);
      loss.add(results[0].tensor.to_double(), static_cast<double>(batch.size()));
      metrics.add(batch, results);
      out.samples += batch.size();
      loader.top_up();
    }
    out.loss = loss.value();
    metrics.finish(out);
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return out;
  }

 private:
  std::unique_ptr<Graph> network_;
  LossOptions loss_;
  int threads_;
  std::shared_ptr<Backend> backend_;
  std::unique_ptr<Session> session_;
};

Evaluator::Evaluator(const onnx::Model& model, const LossOptions& loss,
                     const std::map<std::string, Tensor>& weights, int threads,
                     std::shared_ptr<Backend> backend)
    : body_(std::make_unique<Body>(model, loss, weights, threads, std::move(backend))) {}
Evaluator::~Evaluator() = default;
Evaluation Evaluator::run(data::Loader& loader) { return body_->run(loader); }

LossKind usual_loss(data::Task task) {
  switch (task) {
    case data::Task::regression: return LossKind::mse;
    case data::Task::detection: return LossKind::detection;
    case data::Task::transcription: return LossKind::ctc;
    case data::Task::next_token: return LossKind::next_token;
    default: return LossKind::cross_entropy;
  }
}

}  // namespace dais::train
