#pragma once

// Reduced forms of every family of networks, for tests.

#include <algorithm>
#include <cmath>

#include "dais/model.h"
#include "dais/networks.h"

namespace dais::nn {

using Settings = std::map<std::string, std::string>;
inline constexpr int64_t kBatch = 3;

/// Settings under which a network runs in no time, and the open length of its input.
struct Small {
  const char* name;
  Settings values;
  int64_t length = 0;
};

inline const std::vector<Small>& small_networks() {
  static const std::vector<Small> all{
      {"mlp", {{"hidden", "16"}}},
      {"lenet5", {}},
      {"alexnet", {{"input", "3x63x63"}, {"scale", "0.05"}, {"classes", "5"}}},
      {"vgg11", {{"input", "3x32x32"}, {"width", "4"}, {"classes", "5"}}},
      {"vgg16", {{"input", "3x32x32"}, {"width", "4"}, {"batch-norm", "true"}}},
      {"googlenet", {{"input", "3x32x32"}, {"scale", "0.1"}, {"classes", "5"}}},
      {"resnet18", {{"input", "3x32x32"}, {"width", "8"}, {"classes", "5"}}},
      {"resnet34", {{"input", "1x72x72"}, {"width", "4"}, {"classes", "5"}}},
      {"resnet50", {{"input", "3x32x32"}, {"width", "4"}, {"classes", "5"}}},
      {"mobilenet-v2", {{"input", "3x32x32"}, {"scale", "0.25"}, {"classes", "5"}}},
      {"efficientnet-b0", {{"input", "3x32x32"}, {"scale", "0.25"}, {"classes", "5"}}},
      {"densenet121", {{"input", "3x32x32"}, {"blocks", "2,2"}, {"growth", "4"}}},
      {"vit-tiny", {{"input", "3x32x32"}, {"patch", "8"}, {"width", "24"}, {"layers", "2"}}},
      {"unet", {{"input", "3x32x32"}, {"width", "4"}, {"depth", "2"}}},
      {"ssd", {{"input", "3x64x64"}, {"width", "4"}, {"classes", "3"}}},
      {"lstm", {{"hidden", "8"}, {"layers", "2"}, {"bidirectional", "true"}}, 6},
      {"gru", {{"hidden", "8"}, {"features", "5"}}, 6},
      {"lstm-lm", {{"hidden", "8"}, {"width", "8"}}, 6},
      {"deepspeech2", {{"features", "20"}, {"channels", "2"}, {"hidden", "8"}}, 30},
      {"bert-tiny", {{"vocab", "50"}, {"width", "16"}, {"heads", "2"}, {"pairs", "true"}}, 6},
      {"gpt-tiny", {{"vocab", "50"}, {"width", "16"}, {"heads", "2"}, {"tied", "true"}}, 6},
  };
  return all;
}

/// Any numbers, of the range that an input of that name takes.
inline Tensor input_for(const std::string& name, DType dtype, const std::vector<int64_t>& sizes,
                        const Small& small) {
  Shape shape;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t size = sizes[i];
    shape.push_back(size >= 0 ? size : i == 0 ? kBatch : small.length);
  }
  Tensor out(dtype, shape);
  for (int64_t i = 0; i < out.elements(); ++i) {
    if (dtype == DType::i64)
      out.storage<int64_t>()[i] = (i * 5 + 1) % (name == "segments" ? 2 : 7);
    else
      out.storage<float>()[i] = std::sin(0.37f * static_cast<float>(i));
  }
  return out;
}

/// As GoogleTest allows it.
inline std::string test_name(const Small& small) {
  std::string name = small.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace dais::nn
