#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/model_choice.h"
#include "cli/run_options.h"
#include "data/audio.h"
#include "data/image.h"
#include "data/tokens.h"
#include "runtime/session.h"
#include "train/decode.h"

namespace dais::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Options {
  ModelChoice choice;
  DataFlags data;
  std::vector<std::string> inputs;
  std::string text;
  int64_t top = 3;
  int threads = 0;
  DeviceFlags place;
  double threshold = 0.5;
  bool json = false;
};

/// A network with what turns files into its input and its output into words.
class Predictor {
 public:
  explicit Predictor(const Options& options)
      : options_(options), model_(load_choice(options.choice)) {
    if (model_.graph->inputs.size() != 1)
      throw Error(Code::unsupported, "the network has several inputs", options.choice.path,
                  "Use dais run");
    open_ = data_options(model_, options.data);
    normalise_ = stored_normalise(model_, {});
    classes_ = stored_classes(model_);
    const auto task = model_.metadata.find("dais.task");
    task_ = task == model_.metadata.end() ? "classification" : task->second;
    CompileOptions compile_options;
    compile_options.threads = options.threads;
    compile_options.backend = options.place.open();
    session_ = std::make_unique<Session>(compile(model_.graph->clone(), compile_options).plan);
    warn_about(session_->plan());
  }

  json of_file(const fs::path& path) {
    const auto file = MappedFile::open(path);
    const Type& type = model_.graph->inputs[0]->type;
    json row{{"input", path.string()}};
    if (data::is_image(file->bytes()))
      answer(image_input(file->bytes()), row);
    else if (const auto header = data::read_sound_header(file->bytes()))
      answer(sound_input(file->bytes(), type), row);
    else
      answer(
          text_input({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}),
          row);
    return row;
  }

  json of_text(const std::string& text) {
    json row{{"input", text}};
    answer(text_input(text), row);
    return row;
  }

 private:
  Tensor image_input(Bytes file) {
    const Tensor image = data::load_image(file, open_.image);
    Tensor out(DType::f32, {1, image.shape()[2], image.shape()[0], image.shape()[1]});
    data::ImageWriter(normalise_, image.shape()).write(image, out.data<float>().data());
    return out;
  }

  Tensor sound_input(Bytes file, const Type& type) {
    const data::Sound sound = data::decode_sound(file, open_.audio.max_seconds);
    const int64_t rate = open_.audio.sample_rate > 0 ? open_.audio.sample_rate : sound.rate;
    const data::FeatureExtractor extractor(open_.audio, rate);
    const Tensor frames =
        extractor.extract(sound.rate == rate ? sound : data::resample(sound, rate));
    const int64_t length = frames.shape()[0], width = frames.shape()[1];
    if (!type.ranked() || type.shape->size() != 4) return frames.reshaped({1, length, width});
    Tensor out(DType::f32, {1, 1, width, length});
    for (int64_t t = 0; t < length; ++t)
      for (int64_t f = 0; f < width; ++f)
        out.data<float>()[static_cast<size_t>(f * length + t)] =
            frames.data<float>()[static_cast<size_t>(t * width + f)];
    return out;
  }

  Tensor text_input(std::string_view text) {
    data::TextOptions options = open_.text;
    if (options.tokens == data::Tokens::character && task_ == "next_token")
      options.vocabulary = classes_;
    const auto tokenizer = data::make_tokenizer(options, text);
    std::vector<int32_t> tokens;
    tokenizer->encode(text, tokens);
    if (tokens.empty()) throw Error(Code::invalid_argument, "the text is empty", "predict");
    Tensor out(DType::i64, {1, std::ssize(tokens)});
    std::copy(tokens.begin(), tokens.end(), out.data<int64_t>().begin());
    return out;
  }

  void answer(const Tensor& input, json& row) {
    const auto& results = session_->run(std::vector<Datum>{input});
    const Tensor& first = results[0].tensor;
    if (task_ == "detection" && results.size() > 1) return boxes(first, results[1].tensor, row);
    if (task_ == "transcription") return transcript(first, row);
    if (task_ == "regression") return values(first, row);
    if (task_ == "segmentation") return areas(first, row);
    classes(first, row);
  }

  std::string name_of(int64_t label) const {
    const auto at = static_cast<size_t>(label);
    return at < classes_.size() ? classes_[at] : std::to_string(label);
  }

  /// The best classes of the last row of scores, by softmax.
  void classes(const Tensor& scores, json& row) const {
    const int64_t count = scores.rank() > 0 ? scores.shape().back() : 1;
    const int64_t first = scores.elements() - count;
    std::vector<double> shares;
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; ++i) largest = std::max(largest, scores.to_double(first + i));
    for (int64_t i = 0; i < count; ++i) {
      shares.push_back(std::exp(scores.to_double(first + i) - largest));
      sum += shares.back();
    }
    std::vector<int64_t> order(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = i;
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return shares[static_cast<size_t>(a)] > shares[static_cast<size_t>(b)];
    });
    order.resize(static_cast<size_t>(std::min(count, options_.top)));
    for (const int64_t label : order)
      row["classes"].push_back({{"class", name_of(label)},
                                {"label", label},
                                {"probability", shares[static_cast<size_t>(label)] / sum}});
  }

  void values(const Tensor& output, json& row) const {
    for (int64_t i = 0; i < output.elements(); ++i) row["values"].push_back(output.to_double(i));
  }

  /// Share of the image that each class takes.
  void areas(const Tensor& scores, json& row) const {
    const int64_t count = scores.shape()[1], area = scores.shape().elements(2, scores.rank());
    std::vector<int64_t> pixels(static_cast<size_t>(count));
    for (int64_t i = 0; i < area; ++i) {
      int64_t best = 0;
      for (int64_t c = 1; c < count; ++c)
        if (scores.to_double(c * area + i) > scores.to_double(best * area + i)) best = c;
      ++pixels[static_cast<size_t>(best)];
    }
    for (int64_t c = 0; c < count; ++c)
      if (pixels[static_cast<size_t>(c)] > 0)
        row["areas"].push_back({{"class", name_of(c)},
                                {"share", static_cast<double>(pixels[static_cast<size_t>(c)]) /
                                              static_cast<double>(area)}});
  }

  void boxes(const Tensor& corners, const Tensor& scores, json& row) const {
    row["boxes"] = json::array();
    for (const train::Detection& found :
         train::decode_boxes(corners, scores, 0, options_.threshold, 0.5))
      row["boxes"].push_back(
          {{"class", name_of(found.label)}, {"score", found.score}, {"box", found.box}});
  }

  void transcript(const Tensor& scores, json& row) const {
    row["text"] = train::decode_transcript(scores, 0, scores.shape()[1], classes_);
  }

  const Options& options_;
  onnx::Model model_;
  data::OpenOptions open_;
  data::Normalise normalise_;
  std::vector<std::string> classes_;
  std::string task_;
  std::unique_ptr<Session> session_;
};

/// Files named, and those in folders, in order of their names.
std::vector<fs::path> files_of(const std::vector<std::string>& inputs) {
  std::vector<fs::path> out;
  for (const auto& input : inputs) {
    if (!fs::is_directory(input)) {
      out.emplace_back(input);
      continue;
    }
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(input))
      if (entry.is_regular_file()) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

void print(const json& row, bool as_json) {
  if (as_json) {
    std::printf("%s\n", row.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%s:", row["input"].get<std::string>().c_str());
  if (row.contains("classes"))
    for (const json& one : row["classes"])
      std::printf("  %s %.1f %%", one["class"].get<std::string>().c_str(),
                  100 * one["probability"].get<double>());
  else if (row.contains("text"))
    std::printf(" %s", row["text"].get<std::string>().c_str());
  else
    for (const auto& [key, value] : row.items())
      if (key != "input") std::printf(" %s", value.dump().c_str());
  std::printf("\n");
}

void run(const Options& options) {
  Predictor predictor(options);
  if (!options.text.empty()) print(predictor.of_text(options.text), options.json);
  const auto files = files_of(options.inputs);
  if (files.empty() && options.text.empty())
    throw Error(Code::invalid_argument, "there is nothing to predict", "",
                "Give files, folders, or --text");
  for (const auto& file : files) {
    try {
      print(predictor.of_file(file), options.json);
    } catch (const Error& error) {
      if (files.size() == 1) throw error.at(file.string());
      std::fprintf(stderr, "%s: %s\n", file.c_str(), error.what());
    }
  }
}

}  // namespace

void add_predict(Program& program) {
  auto* command =
      program.app.add_subcommand("predict", "Apply a network to images, sounds, texts or folders");
  const auto options = std::make_shared<Options>();
  add_model_choice(*command, options->choice);
  command->add_option("inputs", options->inputs, "Files and folders");
  command->add_option("--text", options->text, "A text instead of a file");
  command->add_option("--top", options->top, "Classes to name")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--threshold", options->threshold, "Least score of a box")
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Threads to use; 0: all usable cores")
      ->check(CLI::NonNegativeNumber);
  add_device_flags(*command, options->place);
  command->add_flag("--json", options->json, "One JSON object a line");
  add_data_flags(*command, options->data);
  command->footer("Example: dais predict run shirt.png --top 5");
  command->callback([options] { run(*options); });
}

}  // namespace dais::cli
