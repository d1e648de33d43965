#include "nn/flags.h"

namespace dais::nn {
namespace {

template <typename Options>
void set_flag(Options& options, const std::string& name, const std::string& text) {
  bool found = false;
  std::vector<std::string> names;
  for_each_flag<Options>([&](const auto& flag) {
    names.emplace_back(flag.name);
    if (flag.name != name) return;
    found = true;
    read_flag(name, text, options.*(flag.member));
  });
  if (found) return;
  const std::string guess = nearest(name, names);
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "--" : ", --") + known;
  throw Error(Code::invalid_argument, "this network has no setting '" + name + "'", "",
              guess.empty() ? "It has " + all : "Did you mean '--" + guess + "'?");
}

template <typename Options>
Recipe row(std::string name, std::string purpose, Options defaults) {
  Recipe out{std::move(name), std::move(purpose), {}, nullptr};
  for_each_flag<Options>([&](const auto& flag) {
    const auto& value = defaults.*(flag.member);
    out.flags.push_back({std::string(flag.name), std::string(flag.help), flag_text(value),
                         std::is_same_v<std::decay_t<decltype(value)>, bool>});
  });
  out.build = [defaults](const std::map<std::string, std::string>& values, uint64_t seed) {
    Options options = defaults;
    for (const auto& [flag, text] : values) set_flag(options, flag, text);
    return options.build(seed);
  };
  return out;
}

std::vector<Recipe> make_recipes() {
  const auto bert = [](int64_t layers, int64_t width) {
    return Bert{.width = width, .layers = layers, .heads = width / 64};
  };
  const auto gpt = [](int64_t layers, int64_t width, int64_t context) {
    return Gpt{.vocab = 256,
               .context = context,
               .width = width,
               .layers = layers,
               .heads = width / 64,
               .dropout = 0,
               .tied = false};
  };
  std::vector<Recipe> out;
  out.push_back(row("mlp", "tables, small images: layers of ReLU", Mlp{}));
  out.push_back(row("lenet5", "small grey images", LeNet{}));
  out.push_back(row("alexnet", "images of 63 pixels and more", AlexNet{}));
  out.push_back(row("vgg11", "images; large, plain", Vgg{.depth = 11}));
  out.push_back(row("vgg16", "images; larger, plain", Vgg{.depth = 16}));
  out.push_back(row("googlenet", "images; few parameters", GoogLeNet{}));
  out.push_back(row("resnet18", "images of any size: the first to try", ResNet{.depth = 18}));
  out.push_back(row("resnet34", "images; more exact than resnet18", ResNet{.depth = 34}));
  out.push_back(row("resnet50", "images; the common yardstick", ResNet{.depth = 50}));
  out.push_back(row("mobilenet-v2", "images; fast where it runs", MobileNet{}));
  out.push_back(row("efficientnet-b0", "images; exact for its size", EfficientNet{}));
  out.push_back(row("densenet121", "images; small file, much memory", DenseNet{}));
  out.push_back(row("vit-tiny", "images; transformer, wants much data", VisionTransformer{}));
  out.push_back(row("unet", "a class for every pixel", UNet{}));
  out.push_back(row("ssd", "boxes around objects", Ssd{}));
  out.push_back(row("lstm", "classes of texts or of series", SequenceClassifier{}));
  out.push_back(row("gru", "the same with GRU cells", SequenceClassifier{.gated = true}));
  out.push_back(row("lstm-lm", "next token of a text", LstmLanguageModel{}));
  out.push_back(row("deepspeech2", "speech to characters (CTC)", DeepSpeech{}));
  out.push_back(row("bert-tiny", "classes of texts; 2 layers of 128", bert(2, 128)));
  out.push_back(row("bert-mini", "classes of texts; 4 layers of 256", bert(4, 256)));
  out.push_back(row("bert-small", "classes of texts; 4 layers of 512", bert(4, 512)));
  out.push_back(row("bert-medium", "classes of texts; 8 layers of 512", bert(8, 512)));
  out.push_back(row("bert-base", "classes of texts; 12 layers of 768", bert(12, 768)));
  out.push_back(row("gpt-tiny", "next token; 4 layers of 128, bytes", gpt(4, 128, 128)));
  out.push_back(row("gpt-mini", "next token; 6 layers of 384, bytes", gpt(6, 384, 256)));
  out.push_back(row("gpt-124m", "next token; 12 layers of 768", Gpt{}));
  return out;
}

}  // namespace

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = make_recipes();
  return all;
}

const Recipe& recipe(std::string_view name) {
  std::vector<std::string> names;
  for (const Recipe& each : recipes()) {
    if (each.name == name) return each;
    names.push_back(each.name);
  }
  const std::string guess = nearest(name, names);
  throw Error(Code::not_found, "there is no network '" + std::string(name) + "'", "",
              guess.empty() ? "See dais new --list" : "Did you mean '" + guess + "'?");
}

}  // namespace dais::nn
