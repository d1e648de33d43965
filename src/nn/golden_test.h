#pragma once

// The batches of tests/golden/make_curves.py, which says what they are; for tests.

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/philox.h"
#include "dais/networks.h"

namespace dais::golden {

inline constexpr uint64_t kKey = 2024, kTemplate = uint64_t{1} << 32;

struct Batch {
  Tensor input, target;
};

/// Streams of numbers that Python draws as well.
class Draws {
 public:
  explicit Draws(uint64_t stream) : random_(kKey, stream) {}
  int64_t whole(uint64_t i) const { return random_.block(i)[0]; }
  /// Within half of zero, exact in f32.
  float centred(uint64_t i) const {
    return static_cast<float>(random_.block(i)[0] >> 8) * 0x1p-24f - 0.5f;
  }

 private:
  Philox random_;
};

inline nlohmann::json load(const std::string& name) {
  std::ifstream in("tests/golden/curves/" + name + ".json");
  return nlohmann::json::parse(in);
}

inline nn::Network network(const nlohmann::json& golden) {
  std::map<std::string, std::string> settings = golden["settings"];
  return nn::recipe(golden["network"].get<std::string>())
      .build(settings, golden["seed"].get<uint64_t>());
}

inline Batch image_batch(const nlohmann::json& golden, uint64_t step) {
  const int64_t batch = golden["batch"], classes = golden["classes"];
  const std::vector<int64_t> size = golden["input"];
  Batch out{Tensor(DType::f32, {batch, size[0], size[1], size[2]}), Tensor(DType::i64, {batch})};
  const float share = golden.value("noise", 1.0f);
  const Draws draws(2 * step), noise(2 * step + 1);
  const int64_t pixels = size[0] * size[1] * size[2];
  for (int64_t b = 0; b < batch; ++b) {
    const auto at = static_cast<uint64_t>(b);
    const int64_t shown = draws.whole(2 * at) % classes, second = draws.whole(2 * at + 1);
    const int64_t wrong = 1 + second / 10 % (classes - 1);
    out.target.data<int64_t>()[at] = second % 10 == 0 ? (shown + wrong) % classes : shown;
    const Draws pattern(kTemplate + static_cast<uint64_t>(shown));
    for (int64_t i = 0; i < pixels; ++i)
      out.input.storage<float>()[b * pixels + i] =
          2 * (pattern.centred(static_cast<uint64_t>(i)) +
               share * noise.centred(static_cast<uint64_t>(b * pixels + i)));
  }
  return out;
}

inline Batch token_batch(const nlohmann::json& golden, uint64_t step) {
  const int64_t batch = golden["batch"], length = golden["length"], vocab = golden["classes"];
  Batch out{Tensor(DType::i64, {batch, length}), Tensor(DType::i64, {batch, length})};
  const Draws draws(2 * step);
  for (int64_t b = 0; b < batch; ++b) {
    const auto at = static_cast<uint64_t>(b);
    const int64_t start = draws.whole(2 * at) % vocab, stride = 1 + draws.whole(2 * at + 1) % 3;
    for (int64_t t = 0; t < length; ++t) {
      out.input.storage<int64_t>()[b * length + t] = (start + stride * t) % vocab;
      out.target.storage<int64_t>()[b * length + t] = (start + stride * (t + 1)) % vocab;
    }
  }
  return out;
}

inline Batch speech_batch(const nlohmann::json& golden, uint64_t step) {
  const int64_t batch = golden["batch"], labels = golden["labels"], frames = golden["frames"];
  const int64_t bands = golden["bands"], classes = golden["classes"], time = labels * frames;
  Batch out{Tensor(DType::f32, {batch, 1, bands, time}), Tensor(DType::i64, {batch, labels})};
  const Draws draws(2 * step), noise(2 * step + 1);
  for (int64_t b = 0; b < batch; ++b) {
    int64_t label = 0;
    for (int64_t l = 0; l < labels; ++l) {
      const int64_t drawn = draws.whole(static_cast<uint64_t>(b * labels + l));
      label = l == 0 ? 1 + drawn % (classes - 1)
                     : 1 + (label - 1 + 1 + drawn % (classes - 2)) % (classes - 1);
      out.target.storage<int64_t>()[b * labels + l] = label;
      const Draws pattern(kTemplate + static_cast<uint64_t>(label));
      for (int64_t band = 0; band < bands; ++band)
        for (int64_t t = l * frames; t < (l + 1) * frames; ++t) {
          const int64_t place = (b * bands + band) * time + t;
          out.input.storage<float>()[place] = pattern.centred(static_cast<uint64_t>(band)) +
                                              noise.centred(static_cast<uint64_t>(place));
        }
    }
  }
  return out;
}

inline Batch batch(const nlohmann::json& golden, int64_t step) {
  const std::string data = golden["data"];
  const auto at = static_cast<uint64_t>(step);
  if (data == "images") return image_batch(golden, at);
  return data == "tokens" ? token_batch(golden, at) : speech_batch(golden, at);
}

}  // namespace dais::golden
