#include "cli/source_flags.h"

#include <charconv>

#include "base/error.h"

namespace dais::cli {
namespace {

/// The enumerator whose name was given; names in the order of the enumeration.
template <typename Enum>
Enum named(const std::string& text, const std::vector<std::string>& names, const char* flag) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ", ") + name;
  const std::string guess = nearest(text, names);
  throw Error(Code::invalid_argument, "there is no '" + text + "'", flag,
              guess.empty() ? "Use one of " + all : "Did you mean '" + guess + "'?");
}

}  // namespace

std::pair<int64_t, int64_t> parse_size(const std::string& text, const char* flag) {
  constexpr int64_t kLargest = 1 << 16;
  int64_t height = 0, width = 0;
  const char* end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, height);
  if (parsed.ec == std::errc() && parsed.ptr == end) {
    width = height;
  } else if (parsed.ec == std::errc() && *parsed.ptr == 'x') {
    parsed = std::from_chars(parsed.ptr + 1, end, width);
  }
  if (parsed.ec != std::errc() || parsed.ptr != end || height < 1 || width < 1 ||
      height > kLargest || width > kLargest)
    throw Error(Code::invalid_argument, "'" + text + "' is no size", flag,
                "Write HEIGHTxWIDTH, such as 32x32");
  return {height, width};
}

void SourceFlags::add(CLI::App& command) {
  const auto images = "Images", sound = "Sound", text = "Text", tables = "Tables";
  command.add_option("--format", open.format, "Kind of data; found by looking where none is given");
  command.add_option("--part", open.part, "Part of data that is divided: train, val or test");
  command.add_option("--root", open.root, "Folder that listed files are relative to");
  command.add_option("--labels", open.labels, "Text file with one class name a line");
  command.add_option("--input-key", open.input_key, "Array of an npz that is the input");
  command.add_option("--target-key", open.target_key, "Array of an npz that is the target");
  command.add_option("--image-size,--size", size, "HEIGHTxWIDTH that images become")->group(images);
  command.add_option("--channels", open.image.channels, "1 gray, 3 colour; 0: as the files")
      ->check(CLI::IsMember({0, 1, 3}))
      ->group(images);
  command.add_option("--resize", resize, "squash, crop, fill or half-crop")->group(images);
  command
      .add_option("--background", open.image.background,
                  "Gray level behind transparent pixels and beside 'fill'")
      ->group(images);
  command
      .add_option("--box-classes", open.boxes.classes, "Classes of boxes to keep, in this order")
      ->delimiter(',')
      ->group(images);
  command.add_option("--min-box", open.boxes.min_pixels, "Boxes with a smaller side are left out")
      ->group(images);
  command.add_option("--feature", feature, "spectrogram, mel or mfcc")->group(sound);
  command.add_option("--sample-rate", open.audio.sample_rate, "Sounds are resampled to this rate")
      ->group(sound);
  command.add_option("--window-ms", open.audio.window_ms, "Length of a frame")->group(sound);
  command.add_option("--hop-ms", open.audio.hop_ms, "From one frame to the next")->group(sound);
  command.add_option("--mels", open.audio.mels, "Mel filters")->group(sound);
  command.add_option("--coefficients", open.audio.coefficients, "MFCC coefficients")->group(sound);
  command.add_option("--fft", open.audio.fft, "Points of the transform")->group(sound);
  command.add_option("--tokens", tokens, "byte, character or sentencepiece")->group(text);
  command.add_option("--tokens-model", open.text.model, "SentencePiece model")->group(text);
  command.add_option("--window", open.text.window, "Tokens of a sample")->group(text);
  command.add_option("--window-stride", open.text.stride, "Tokens from one sample to the next")
      ->group(text);
  command
      .add_option("--held-out", open.text.held_out,
                  "Share at the end of a text that is not for training")
      ->group(text);
  command
      .add_option("--label-column", open.table.label,
                  "Name or number of the column to predict, or 'none'")
      ->group(tables);
  command
      .add_option("--categorical", open.table.categorical, "Columns of numbers that are categories")
      ->delimiter(',')
      ->group(tables);
  command.add_option("--ignore", open.table.ignored, "Columns to leave out")
      ->delimiter(',')
      ->group(tables);
  command.add_option("--header", open.table.header, "1: the first row is a header, 0: it is none")
      ->check(CLI::IsMember({0, 1}))
      ->group(tables);
  command.add_flag("--regression", open.table.regression, "Predict a number, no class")
      ->group(tables);
}

data::OpenOptions SourceFlags::options() const {
  data::OpenOptions out = open;
  if (!size.empty()) std::tie(out.image.height, out.image.width) = parse_size(size, "--size");
  out.image.resize =
      named<data::Resize>(resize, {"squash", "crop", "fill", "half-crop"}, "--resize");
  out.audio.feature =
      named<data::AudioFeature>(feature, {"spectrogram", "mel", "mfcc"}, "--feature");
  out.text.tokens = named<data::Tokens>(tokens, {"byte", "character", "sentencepiece"}, "--tokens");
  return out;
}

}  // namespace dais::cli
