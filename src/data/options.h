#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dais::data {

/// How an image of another size becomes height x width.
enum class Resize {
  squash,     ///< both axes scaled on their own
  crop,       ///< scaled until it covers the target, the middle kept
  fill,       ///< scaled until it fits, the rest filled with noise-free background
  half_crop,  ///< half way between crop and fill
};

struct ImageOptions {
  int64_t height = 0, width = 0;  ///< 0: all images must have one size, which is kept
  int channels = 0;  ///< 1 gray, 3 colour; 0: as the files have it (3 where they differ)
  Resize resize = Resize::squash;
  uint8_t background = 255;  ///< gray level behind transparent pixels and around `fill`
  int64_t max_pixels = int64_t{1} << 27;  ///< larger images are refused before memory is taken
};

enum class AudioFeature { spectrogram, mel, mfcc };

/// Frames of sound. The window is a periodic Hann window.
struct AudioOptions {
  AudioFeature feature = AudioFeature::mel;
  int64_t sample_rate = 0;  ///< 0: that of the first file; others are refused unless resampled
  double window_ms = 25, hop_ms = 10;
  int64_t fft = 0;  ///< points; 0: the window's samples
  int64_t mels = 80;
  int64_t coefficients = 40;       ///< of mfcc
  double low_hz = 0, high_hz = 0;  ///< of the mel filters; high 0: half the sample rate
  bool center = true;              ///< frames centred on multiples of the hop, edges reflected
  bool log = true;                 ///< natural logarithm of power (spectrogram and mel)
  bool normalise = true;           ///< each feature of an utterance to mean 0, deviation 1
  double max_seconds = 600;        ///< longer files are refused
};

enum class Tokens { byte, character, sentencepiece };

struct TextOptions {
  Tokens tokens = Tokens::character;
  std::filesystem::path model;          ///< of SentencePiece
  std::vector<std::string> vocabulary;  ///< characters; empty: those that occur, in order
  bool plain_words = true;  ///< transcripts in lower case, punctuation (but ') as blanks
  int64_t window = 256;     ///< tokens of one sample
  int64_t stride = 0;       ///< from one window to the next; 0: the window
  double held_out = 0;      ///< share at the end of a text for the parts other than "train"
};

struct TableOptions {
  std::string
      label;  ///< column name or number (negative: from the end); empty: found by name or last
  char delimiter = 0;                    ///< 0: found
  int header = -1;                       ///< 1 yes, 0 no, -1 found
  std::vector<std::string> categorical;  ///< columns to treat as categories even when numbers
  std::vector<std::string> ignored;      ///< columns left out
  int regression = -1;                   ///< 1 yes, 0 no, -1: a label of fractions or many values
};

struct BoxOptions {
  std::vector<std::string> classes;  ///< the classes to keep, in order; empty: those that occur
  double min_pixels = 0;             ///< boxes with a smaller side are left out
};

/// Everything a reader may need; each format looks at its own part.
struct OpenOptions {
  std::string format;            ///< empty: found. See open_formats()
  std::string part;              ///< "train" or "test", for folders that hold both; empty: train
  std::filesystem::path root;    ///< folder that listed paths are relative to; empty: the list's
  std::filesystem::path labels;  ///< text file with one class name a line
  std::string input_key, target_key;   ///< arrays of an npz, or extensions of a tar
  size_t max_bytes = size_t{4} << 30;  ///< of a file after decompression
  ImageOptions image;
  AudioOptions audio;
  TextOptions text;
  TableOptions table;
  BoxOptions boxes;
};

/// Names of formats for `OpenOptions::format`.
std::vector<std::string> open_formats();

}  // namespace dais::data
