#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/image.h"

namespace dais::data {
namespace {

constexpr int kFractionBits = 22;
constexpr int32_t kHalf = 1 << (kFractionBits - 1);

/// Which source positions make one target position, and their weights in fixed point.
struct Taps {
  struct Range {
    int64_t first, count;
  };
  std::vector<Range> ranges;
  std::vector<int32_t> weights;  ///< `widest` for each target position
  int64_t widest = 0;
};

/// A triangle as wide as one source pixel, or as one target pixel where that is wider.
Taps triangle_taps(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double radius = std::max(scale, 1.0);
  Taps taps;
  taps.widest = static_cast<int64_t>(std::ceil(radius)) * 2 + 1;
  taps.weights.assign(static_cast<size_t>(taps.widest * to), 0);
  std::vector<double> exact(static_cast<size_t>(taps.widest));
  for (int64_t x = 0; x < to; ++x) {
    const double middle = (static_cast<double>(x) + 0.5) * scale;
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(middle - radius + 0.5));
    const auto last = std::min(from, static_cast<int64_t>(middle + radius + 0.5));
    double sum = 0;
    for (int64_t i = first; i < last; ++i) {
      const double away = std::abs((static_cast<double>(i) - middle + 0.5) * (1.0 / radius));
      exact[static_cast<size_t>(i - first)] = std::max(0.0, 1 - away);
      sum += exact[static_cast<size_t>(i - first)];
    }
    taps.ranges.push_back({first, last - first});
    for (int64_t i = 0; i < last - first; ++i) {
      double weight = exact[static_cast<size_t>(i)];
      if (sum != 0) weight *= 1.0 / sum;
      taps.weights[static_cast<size_t>(x * taps.widest + i)] =
          static_cast<int32_t>(0.5 + weight * (1 << kFractionBits));
    }
  }
  return taps;
}

uint8_t rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

Image resize_rows(const Image& image, int64_t width) {
  const Taps taps = triangle_taps(image.width, width);
  Image out{image.height, width, image.channels, {}};
  out.pixels.resize(static_cast<size_t>(image.height * width * image.channels));
  const int channels = image.channels;
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* from = image.row(y);
    uint8_t* to = out.row(y);
    for (int64_t x = 0; x < width; ++x) {
      const auto [first, count] = taps.ranges[static_cast<size_t>(x)];
      const int32_t* weights = taps.weights.data() + x * taps.widest;
      for (int k = 0; k < channels; ++k) {
        int32_t sum = kHalf;
        for (int64_t i = 0; i < count; ++i) sum += from[(first + i) * channels + k] * weights[i];
        *to++ = rounded(sum);
      }
    }
  }
  return out;
}

Image resize_columns(const Image& image, int64_t height) {
  const Taps taps = triangle_taps(image.height, height);
  Image out{height, image.width, image.channels, {}};
  const int64_t bytes = image.width * image.channels;
  out.pixels.resize(static_cast<size_t>(height * bytes));
  std::vector<int32_t> sums(static_cast<size_t>(bytes));
  for (int64_t y = 0; y < height; ++y) {
    const auto [first, count] = taps.ranges[static_cast<size_t>(y)];
    const int32_t* weights = taps.weights.data() + y * taps.widest;
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int64_t i = 0; i < count; ++i) {
      const uint8_t* from = image.row(first + i);
      for (int64_t x = 0; x < bytes; ++x) sums[static_cast<size_t>(x)] += from[x] * weights[i];
    }
    uint8_t* to = out.row(y);
    for (int64_t x = 0; x < bytes; ++x) to[x] = rounded(sums[static_cast<size_t>(x)]);
  }
  return out;
}

double ratio(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

int64_t scaled(int64_t size, double scale) {
  return std::max<int64_t>(1, std::llround(scale * static_cast<double>(size)));
}

/// Copies the middle of an image into the middle of a frame of another size.
Image frame(const Image& image, int64_t height, int64_t width, uint8_t outside) {
  if (image.height == height && image.width == width) return image;
  Image out{height, width, image.channels, {}};
  out.pixels.assign(static_cast<size_t>(height * width * image.channels), outside);
  const int64_t rows = std::min(height, image.height), columns = std::min(width, image.width);
  const int64_t from_y = (image.height - rows) / 2, from_x = (image.width - columns) / 2;
  const int64_t to_y = (height - rows) / 2, to_x = (width - columns) / 2;
  for (int64_t y = 0; y < rows; ++y)
    std::memcpy(out.row(to_y + y) + to_x * image.channels,
                image.row(from_y + y) + from_x * image.channels,
                static_cast<size_t>(columns * image.channels));
  return out;
}

struct Size {
  int64_t height, width;
};

/// The size an image is scaled to before it is put into its frame.
Size resized(int64_t height, int64_t width, const ImageOptions& options) {
  const double vertical = ratio(options.height, height), horizontal = ratio(options.width, width);
  double scale = 1;
  switch (options.resize) {
    case Resize::squash: return {options.height, options.width};
    case Resize::crop: scale = std::max(vertical, horizontal); break;
    case Resize::fill: scale = std::min(vertical, horizontal); break;
    case Resize::half_crop: scale = 2 / (1 / vertical + 1 / horizontal); break;
  }
  const Size size{scaled(height, scale), scaled(width, scale)};
  // A long thin strip would grow without bound before its middle is cut out.
  if (size.height > options.max_pixels / size.width)
    refuse_image("its shape of " + std::to_string(width) + "x" + std::to_string(height) +
                 " is too long to scale");
  return size;
}

bool fits(const Image& image, const ImageOptions& options) {
  return options.height < 1 || (image.height == options.height && image.width == options.width);
}

}  // namespace

Image resize_image(const Image& image, int64_t height, int64_t width) {
  if (width == image.width) return height == image.height ? image : resize_columns(image, height);
  Image rows = resize_rows(image, width);
  return height == image.height ? rows : resize_columns(rows, height);
}

Image resize_nearest(const Image& image, int64_t height, int64_t width) {
  Image out{height, width, image.channels, {}};
  out.pixels.resize(static_cast<size_t>(height * width * image.channels));
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* from = image.row((2 * y + 1) * image.height / (2 * height));
    for (int64_t x = 0; x < width; ++x)
      std::copy_n(from + (2 * x + 1) * image.width / (2 * width) * image.channels, image.channels,
                  out.row(y) + x * image.channels);
  }
  return out;
}

Placement placement(int64_t height, int64_t width, const ImageOptions& options) {
  if (options.height < 1) return {};
  const Size size = resized(height, width, options);
  const auto shift = [](int64_t frame, int64_t inner) {
    return static_cast<double>(frame >= inner ? (frame - inner) / 2 : -((inner - frame) / 2));
  };
  return {ratio(size.width, width), ratio(size.height, height), shift(options.width, size.width),
          shift(options.height, size.height)};
}

Image fit_image(Image image, const ImageOptions& options) {
  if (fits(image, options)) return image;
  const Size size = resized(image.height, image.width, options);
  return frame(resize_image(image, size.height, size.width), options.height, options.width,
               options.background);
}

Image fit_mask(Image mask, const ImageOptions& options, uint8_t outside) {
  if (fits(mask, options)) return mask;
  const Size size = resized(mask.height, mask.width, options);
  return frame(resize_nearest(mask, size.height, size.width), options.height, options.width,
               outside);
}

}  // namespace dais::data
