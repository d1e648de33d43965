#pragma once

#include <functional>
#include <map>
#include <tuple>

#include "dais/nn.h"

/// The networks of `dais new`: one struct of settings each, which can be built from C++ as well:
/// `dais::nn::ResNet{.input = {3, 32, 32}, .classes = 10}.build(seed)`. Settings outside their
/// limits throw `invalid_argument` naming the setting. Outputs are logits, called "logits".
namespace dais::nn {

/// Channels, height and width of an image, or one number of features.
struct InputSize {
  std::vector<int64_t> sizes;
  InputSize(std::initializer_list<int64_t> list) : sizes(list) {}
};

/// A setting by name: what `dais new NETWORK --name VALUE` sets. Limits hold for each number.
template <typename Struct, typename Member>
struct Flag {
  std::string_view name;
  Member Struct::*member;
  std::string_view help;
  double low, high;
};
template <typename Struct, typename Member>
constexpr Flag<Struct, Member> flag(std::string_view name, Member Struct::*member,
                                    std::string_view help, double low = 1, double high = 1 << 20) {
  return {name, member, help, low, high};
}
template <typename Struct>
constexpr auto classes_flag() {
  return flag("classes", &Struct::classes, "number of classes");
}
template <typename Struct>
constexpr auto image_flag() {
  return flag("input", &Struct::input, "CHANNELSxHEIGHTxWIDTH");
}
template <typename Struct>
constexpr auto dropout_flag() {
  return flag("dropout", &Struct::dropout, "share of elements dropped in training", 0, 0.99);
}
template <typename Struct>
constexpr auto scale_flag() {
  return flag("scale", &Struct::scale, "factor on all channels", 0.02, 4);
}

/// Layers of ReLU over the flattened input.
struct Mlp {
  InputSize input = {1, 28, 28};
  std::vector<int64_t> hidden = {512, 512};
  double dropout = 0;
  int64_t classes = 10;
  static constexpr auto flags =
      std::tuple{flag("input", &Mlp::input, "CHANNELSxHEIGHTxWIDTH, or a number of features"),
                 flag("hidden", &Mlp::hidden, "sizes of the hidden layers"), dropout_flag<Mlp>(),
                 classes_flag<Mlp>()};
  Network build(uint64_t seed = 0) const;
};

/// Two convolutions 5x5 with pooling, then linear layers.
struct LeNet {
  InputSize input = {1, 28, 28};
  std::vector<int64_t> filters = {6, 16};
  std::vector<int64_t> hidden = {120, 84};
  bool same = false;  ///< both convolutions keep the size; else only that of images below 32x32
  int64_t classes = 10;
  static constexpr auto flags = std::tuple{
      image_flag<LeNet>(), flag("filters", &LeNet::filters, "channels of the two convolutions"),
      flag("hidden", &LeNet::hidden, "sizes of the hidden layers"),
      flag("same", &LeNet::same, "both convolutions keep the image's size"), classes_flag<LeNet>()};
  Network build(uint64_t seed = 0) const;
};

struct AlexNet {
  InputSize input = {3, 224, 224};
  double scale = 1;
  double dropout = 0.5;
  int64_t classes = 1000;
  static constexpr auto flags = std::tuple{image_flag<AlexNet>(), scale_flag<AlexNet>(),
                                           dropout_flag<AlexNet>(), classes_flag<AlexNet>()};
  Network build(uint64_t seed = 0) const;
};

struct Vgg {
  int64_t depth = 16;  ///< 11 or 16
  InputSize input = {3, 224, 224};
  int64_t width = 64;
  bool batch_norm = false;
  double dropout = 0.5;
  int64_t classes = 1000;
  static constexpr auto flags = std::tuple{
      image_flag<Vgg>(), flag("width", &Vgg::width, "channels of the first stage", 1, 4096),
      flag("batch-norm", &Vgg::batch_norm, "normalise after each convolution"), dropout_flag<Vgg>(),
      classes_flag<Vgg>()};
  Network build(uint64_t seed = 0) const;
};

/// Inception blocks with batch norm, without auxiliary heads.
struct GoogLeNet {
  InputSize input = {3, 224, 224};
  double scale = 1;
  double dropout = 0.2;
  int64_t classes = 1000;
  static constexpr auto flags = std::tuple{image_flag<GoogLeNet>(), scale_flag<GoogLeNet>(),
                                           dropout_flag<GoogLeNet>(), classes_flag<GoogLeNet>()};
  Network build(uint64_t seed = 0) const;
};

/// Residual network. Images up to 64x64 get a stem that keeps their size.
struct ResNet {
  int64_t depth = 18;  ///< 18, 34 or 50
  InputSize input = {3, 224, 224};
  int64_t width = 64;
  bool zero_residual = false;  ///< blocks start as their shortcuts: the last norm's scale is 0
  int64_t classes = 1000;
  static constexpr auto flags = std::tuple{
      image_flag<ResNet>(), flag("width", &ResNet::width, "channels of the first stage", 1, 4096),
      flag("zero-residual", &ResNet::zero_residual, "blocks start as their shortcuts"),
      classes_flag<ResNet>()};
  Network build(uint64_t seed = 0) const;
};

struct MobileNet {
  InputSize input = {3, 224, 224};
  double scale = 1;
  double dropout = 0.2;
  int64_t classes = 1000;
  static constexpr auto flags = std::tuple{image_flag<MobileNet>(), scale_flag<MobileNet>(),
                                           dropout_flag<MobileNet>(), classes_flag<MobileNet>()};
  Network build(uint64_t seed = 0) const;
};

struct EfficientNet {
  InputSize input = {3, 224, 224};
  double scale = 1;
  double dropout = 0.2;
  int64_t classes = 1000;
  static constexpr auto flags =
      std::tuple{image_flag<EfficientNet>(), scale_flag<EfficientNet>(),
                 dropout_flag<EfficientNet>(), classes_flag<EfficientNet>()};
  Network build(uint64_t seed = 0) const;
};

struct DenseNet {
  InputSize input = {3, 224, 224};
  std::vector<int64_t> blocks = {6, 12, 24, 16};
  int64_t growth = 32;
  int64_t classes = 1000;
  static constexpr auto flags =
      std::tuple{image_flag<DenseNet>(),
                 flag("blocks", &DenseNet::blocks, "layers of each dense block", 1, 64),
                 flag("growth", &DenseNet::growth, "channels that each layer adds", 1, 1024),
                 classes_flag<DenseNet>()};
  Network build(uint64_t seed = 0) const;
};

/// A class for every pixel: logits [batch, classes, height, width].
struct UNet {
  InputSize input = {3, 256, 256};
  int64_t width = 64;
  int64_t depth = 4;
  int64_t classes = 2;
  static constexpr auto flags = std::tuple{
      image_flag<UNet>(), flag("width", &UNet::width, "channels at full size", 1, 4096),
      flag("depth", &UNet::depth, "times that the size is halved", 1, 6), classes_flag<UNet>()};
  Network build(uint64_t seed = 0) const;
};

/// Single-shot detector over three or four scales. Outputs: "boxes" [batch, anchors, 4], corners
/// (left, top, right, bottom) as parts of width and height; "scores" [batch, anchors, classes],
/// logits of independent classes (no background class); "anchors" [anchors, 4], the boxes that
/// offsets of zero stand for, which training matches with the true ones.
struct Ssd {
  InputSize input = {3, 128, 128};
  int64_t width = 32;
  int64_t classes = 20;
  static constexpr auto flags = std::tuple{
      image_flag<Ssd>(), flag("width", &Ssd::width, "channels of the first stage", 1, 1024),
      classes_flag<Ssd>()};
  Network build(uint64_t seed = 0) const;
};

/// LSTM or GRU over tokens (token 0 is padding and counts for nothing) or over feature vectors;
/// the mean of its outputs over time goes to a linear layer.
struct SequenceClassifier {
  bool gated = false;  ///< GRU cells instead of LSTM
  int64_t vocab = 256;
  int64_t features = 0;
  int64_t width = 128;
  int64_t hidden = 256;
  int64_t layers = 1;
  bool bidirectional = false;
  double dropout = 0;
  int64_t classes = 2;
  static constexpr auto flags = std::tuple{
      flag("vocab", &SequenceClassifier::vocab, "number of tokens; 0 is padding"),
      flag("features", &SequenceClassifier::features,
           "width of feature vectors, which then replace tokens", 0),
      flag("width", &SequenceClassifier::width, "size of the token vectors", 1, 65536),
      flag("hidden", &SequenceClassifier::hidden, "size of the state", 1, 65536),
      flag("layers", &SequenceClassifier::layers, "recurrent layers", 1, 64),
      flag("bidirectional", &SequenceClassifier::bidirectional, "read in both directions"),
      dropout_flag<SequenceClassifier>(),
      classes_flag<SequenceClassifier>()};
  Network build(uint64_t seed = 0) const;
};

/// LSTM language model: logits [batch, length, vocab] of the next token.
struct LstmLanguageModel {
  int64_t vocab = 256;
  int64_t width = 256;
  int64_t hidden = 512;
  int64_t layers = 2;
  double dropout = 0;
  static constexpr auto flags =
      std::tuple{flag("vocab", &LstmLanguageModel::vocab, "number of tokens"),
                 flag("width", &LstmLanguageModel::width, "size of the token vectors", 1, 65536),
                 flag("hidden", &LstmLanguageModel::hidden, "size of the state", 1, 65536),
                 flag("layers", &LstmLanguageModel::layers, "recurrent layers", 1, 64),
                 dropout_flag<LstmLanguageModel>()};
  Network build(uint64_t seed = 0) const;
};

/// Two convolutions and bidirectional GRUs over "features" [batch, 1, features, time] (a
/// spectrogram): logits [batch, half the time, classes] for CTC, class 0 being the blank.
struct DeepSpeech {
  int64_t features = 161;
  int64_t channels = 32;
  int64_t hidden = 512;
  int64_t layers = 3;
  double dropout = 0;
  int64_t classes = 29;
  static constexpr auto flags = std::tuple{
      flag("features", &DeepSpeech::features, "frequencies or mel bands of the input", 4, 65536),
      flag("channels", &DeepSpeech::channels, "of the convolutions", 1, 4096),
      flag("hidden", &DeepSpeech::hidden, "size of the state of each direction", 1, 65536),
      flag("layers", &DeepSpeech::layers, "recurrent layers", 1, 64),
      dropout_flag<DeepSpeech>(),
      flag("classes", &DeepSpeech::classes, "characters and the blank, which is class 0", 2)};
  Network build(uint64_t seed = 0) const;
};

/// Text classifier; token 0 is padding and is not attended to.
struct Bert {
  int64_t vocab = 30522;
  int64_t context = 512;
  int64_t width = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  double dropout = 0.1;
  bool pairs = false;  ///< a second input "segments" tells the first text (0) from the second (1)
  int64_t classes = 2;
  static constexpr auto flags =
      std::tuple{flag("vocab", &Bert::vocab, "number of tokens; 0 is padding"),
                 flag("context", &Bert::context, "longest text in tokens"),
                 flag("width", &Bert::width, "size of the token vectors", 1, 65536),
                 flag("layers", &Bert::layers, "transformer blocks", 1, 256),
                 flag("heads", &Bert::heads, "attention heads; they divide the width", 1, 1024),
                 dropout_flag<Bert>(),
                 flag("pairs", &Bert::pairs, "input 'segments' (0, 1) beside the tokens"),
                 classes_flag<Bert>()};
  Network build(uint64_t seed = 0) const;
};

/// Causal language model: logits [batch, length, vocab] of the next token.
struct Gpt {
  int64_t vocab = 50257;
  int64_t context = 1024;
  int64_t width = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  double dropout = 0.1;
  bool tied = true;  ///< the output layer is the transposed table of token vectors
  static constexpr auto flags =
      std::tuple{flag("vocab", &Gpt::vocab, "number of tokens"),
                 flag("context", &Gpt::context, "longest text in tokens"),
                 flag("width", &Gpt::width, "size of the token vectors", 1, 65536),
                 flag("layers", &Gpt::layers, "transformer blocks", 1, 256),
                 flag("heads", &Gpt::heads, "attention heads; they divide the width", 1, 1024),
                 dropout_flag<Gpt>(),
                 flag("tied", &Gpt::tied, "the output layer shares the table of token vectors")};
  Network build(uint64_t seed = 0) const;
};

/// Transformer over square patches of an image, with a class token.
struct VisionTransformer {
  InputSize input = {3, 224, 224};
  int64_t patch = 16;
  int64_t width = 192;
  int64_t layers = 12;
  int64_t heads = 3;
  double dropout = 0;
  int64_t classes = 1000;
  static constexpr auto flags = std::tuple{
      image_flag<VisionTransformer>(),
      flag("patch", &VisionTransformer::patch, "side of a patch; it divides the image", 1, 1024),
      flag("width", &VisionTransformer::width, "size of the patch vectors", 1, 65536),
      flag("layers", &VisionTransformer::layers, "transformer blocks", 1, 256),
      flag("heads", &VisionTransformer::heads, "attention heads; they divide the width", 1, 1024),
      dropout_flag<VisionTransformer>(),
      classes_flag<VisionTransformer>()};
  Network build(uint64_t seed = 0) const;
};

/// A setting as text, for listings.
struct FlagInfo {
  std::string name, help, value;  ///< value: the default
  bool is_switch = false;         ///< takes "true" or "false", or no value
};

/// A network that can be made by name.
struct Recipe {
  std::string name, purpose;
  std::vector<FlagInfo> flags;
  /// Values by flag name; those left out have their defaults. Throws `invalid_argument` for an
  /// unknown flag (with the nearest) and for a value that does not fit.
  std::function<Network(const std::map<std::string, std::string>& values, uint64_t seed)> build;
};

/// All of them, in the order of listings. Made once; may be called from any thread.
const std::vector<Recipe>& recipes();
/// Throws `not_found` with the nearest name.
const Recipe& recipe(std::string_view name);

}  // namespace dais::nn
