#include <algorithm>
#include <cmath>

#include "nn/parts.h"

namespace dais::nn {
namespace {

constexpr double kAspects[] = {0.5, 1, 2};             // width over height
constexpr double kScales[] = {1, 1.4142135623730951};  // of a level's anchors
constexpr int64_t kShapes = std::size(kAspects) * std::size(kScales);
constexpr double kAnchorStrides = 3;  // side of the smallest anchor in cells of its level
constexpr int64_t kSmallestMap = 4;   // cells a side of the coarsest level
constexpr double kCentreUnit = 0.1, kSizeUnit = 0.2;  // anchors' sizes per unit of an offset
constexpr double kPrior = 0.01;  // initial probability of a class, so that background costs little

Value unit(Value x, int64_t channels, int64_t stride, const std::string& name) {
  return relu(conv_norm(x, channels,
                        {.conv = {.stride = stride, .padding = 1, .name = name + ".conv"},
                         .norm = {.name = name + ".norm"}}));
}

/// Centres (x, y) and sizes (width, height) of anchors as parts of the image.
struct Anchors {
  std::vector<float> centres, sizes;

  void add_level(int64_t height, int64_t width) {
    for (int64_t row = 0; row < height; ++row)
      for (int64_t column = 0; column < width; ++column) add_cell(row, column, height, width);
  }

  void add_cell(int64_t row, int64_t column, int64_t height, int64_t width) {
    for (const double aspect : kAspects)
      for (const double scale : kScales) {
        const double side = kAnchorStrides * scale, root = std::sqrt(aspect);
        const auto place = [](int64_t i, int64_t count) {
          return static_cast<float>((static_cast<double>(i) + 0.5) / static_cast<double>(count));
        };
        centres.insert(centres.end(), {place(column, width), place(row, height)});
        sizes.insert(sizes.end(), {static_cast<float>(side * root / static_cast<double>(width)),
                                   static_cast<float>(side / root / static_cast<double>(height))});
      }
  }

  Tensor tensor(const std::vector<float>& pairs) const {
    return Tensor::of<float>({static_cast<int64_t>(pairs.size() / 2), 2},
                             std::span<const float>(pairs));
  }
};

/// [batch, shapes * values, height, width] as [batch, anchors, values].
Value by_anchor(Value x, int64_t values) {
  return reshape(transpose(x, {0, 2, 3, 1}), {0, -1, values});
}

/// Corners of the box around a centre.
Value corners(Value centre, Value size) {
  const Value half = size * 0.5;
  return concat({centre - half, centre + half}, -1);
}

}  // namespace

Network Ssd::build(uint64_t seed) const {
  check_flags(*this);
  require_image(input, 64);
  Network net("ssd", seed);
  Value x = image_input(net, input);
  x = unit(x, width, 2, "stem");
  x = unit(unit(x, 2 * width, 2, "stage1.0"), 2 * width, 1, "stage1.1");
  Anchors anchors;
  std::vector<Value> offsets, scores;
  int64_t channels = 2 * width;
  for (int level = 0; level == 0 || (level < 4 && std::min(x.size(2), x.size(3)) > kSmallestMap);
       ++level) {
    const Scope scope(net, "level" + std::to_string(level));
    channels = std::min(2 * channels, 8 * width);
    x = unit(unit(x, channels, 2, "0"), channels, 1, "1");
    const Value y = unit(x, channels, 1, "head");
    offsets.push_back(by_anchor(conv(y, 4 * kShapes,
                                     {.padding = 1,
                                      .init = Init::normal(0.01),
                                      .bias_init = Init::constant(0),
                                      .name = "boxes"}),
                                4));
    scores.push_back(by_anchor(conv(y, classes * kShapes,
                                    {.padding = 1,
                                     .init = Init::normal(0.01),
                                     .bias_init = Init::constant(-std::log((1 - kPrior) / kPrior)),
                                     .name = "scores"}),
                               classes));
    anchors.add_level(x.size(2), x.size(3));
  }
  const Value centres = net.constant(anchors.tensor(anchors.centres), "anchors.centres");
  const Value sizes = net.constant(anchors.tensor(anchors.sizes), "anchors.sizes");
  const std::vector<Value> parts = split(concat(offsets, 1), -1, {2, 2});
  const Value centre = centres + sizes * (parts[0] * kCentreUnit);
  net.note("dais.task", "detection");
  net.output("boxes", corners(centre, sizes * exp(parts[1] * kSizeUnit)));
  net.output("scores", concat(scores, 1));
  net.output("anchors", corners(centres, sizes));
  return net;
}

}  // namespace dais::nn
