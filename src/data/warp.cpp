#include "data/warp.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dais::data {

void Warp::then(const Matrix& step) {
  const Matrix& m = to_source_;
  to_source_ = {m[0] * step[0] + m[1] * step[3],        m[0] * step[1] + m[1] * step[4],
                m[0] * step[2] + m[1] * step[5] + m[2], m[3] * step[0] + m[4] * step[3],
                m[3] * step[1] + m[4] * step[4],        m[3] * step[2] + m[4] * step[5] + m[5]};
}

void Warp::turn(int64_t quarters) {
  for (int64_t i = 0; i < quarters % 4; ++i) {
    // The pixel at the top right comes from the top left.
    then({0, 1, 0, -1, 0, static_cast<double>(height_)});
    std::swap(height_, width_);
  }
}

void Warp::rotate(double angle, double scale) {
  const double x = static_cast<double>(width_) / 2, y = static_cast<double>(height_) / 2;
  const double c = std::cos(angle) / scale, s = std::sin(angle) / scale;
  then({c, s, x - c * x - s * y, -s, c, y + s * x - c * y});
  whole_pixels_ = false;
}

void Warp::crop(int64_t y, int64_t x, int64_t height, int64_t width) {
  then({1, 0, static_cast<double>(x), 0, 1, static_cast<double>(y)});
  height_ = height;
  width_ = width;
}

/// Calls sampler(y, x, source_y, source_x) with the source point of each pixel's middle.
template <typename Sampler>
void Warp::for_each_pixel(const Sampler& sampler) const {
  const Matrix& m = to_source_;
  for (int64_t y = 0; y < height_; ++y)
    for (int64_t x = 0; x < width_; ++x) {
      const double px = static_cast<double>(x) + 0.5, py = static_cast<double>(y) + 0.5;
      sampler(y, x, m[3] * px + m[4] * py + m[5], m[0] * px + m[1] * py + m[2]);
    }
}

namespace {

struct Pixels {
  const uint8_t* data;
  int64_t height, width, channels;

  const uint8_t* at(int64_t y, int64_t x) const {
    return y < 0 || x < 0 || y >= height || x >= width ? nullptr
                                                       : data + (y * width + x) * channels;
  }
};

/// Interpolates between the four pixels whose middles surround a point.
void interpolate(const Pixels& from, double y, double x, uint8_t outside, uint8_t* to) {
  const double top = std::floor(y - 0.5), left = std::floor(x - 0.5);
  const auto down = static_cast<float>(y - 0.5 - top), right = static_cast<float>(x - 0.5 - left);
  const auto row = static_cast<int64_t>(top), column = static_cast<int64_t>(left);
  const uint8_t* corners[4] = {from.at(row, column), from.at(row, column + 1),
                               from.at(row + 1, column), from.at(row + 1, column + 1)};
  const float weights[4] = {(1 - down) * (1 - right), (1 - down) * right, down * (1 - right),
                            down * right};
  for (int64_t k = 0; k < from.channels; ++k) {
    float sum = 0.5F;
    for (int i = 0; i < 4; ++i)
      sum += weights[i] * static_cast<float>(corners[i] ? corners[i][k] : outside);
    to[k] = static_cast<uint8_t>(std::min(sum, 255.0F));
  }
}

/// One row without turns: a stretch of a source row, forwards or backwards, `outside` beside it.
void copy_row(const Pixels& from, int64_t y, int64_t first, bool forwards, int64_t width,
              uint8_t outside, uint8_t* to) {
  const int64_t channels = from.channels;
  if (y < 0 || y >= from.height) {
    std::memset(to, outside, static_cast<size_t>(width * channels));
    return;
  }
  const uint8_t* row = from.data + y * from.width * channels;
  // Target positions [begin, end) lie inside the source.
  const int64_t begin = std::clamp<int64_t>(forwards ? -first : first - from.width + 1, 0, width);
  const int64_t end = std::clamp<int64_t>(forwards ? from.width - first : first + 1, begin, width);
  std::memset(to, outside, static_cast<size_t>(begin * channels));
  std::memset(to + end * channels, outside, static_cast<size_t>((width - end) * channels));
  if (forwards) {
    std::memcpy(to + begin * channels, row + (first + begin) * channels,
                static_cast<size_t>((end - begin) * channels));
    return;
  }
  for (int64_t x = begin; x < end; ++x)
    for (int64_t k = 0; k < channels; ++k) to[x * channels + k] = row[(first - x) * channels + k];
}

}  // namespace

Tensor Warp::image(const Tensor& source, uint8_t outside) const {
  const Pixels from{source.storage<uint8_t>(), source.shape()[0], source.shape()[1],
                    source.shape()[2]};
  Tensor out(DType::u8, {height_, width_, from.channels});
  auto* to = out.storage<uint8_t>();
  if (!whole_pixels_) {
    for_each_pixel([&](int64_t, int64_t, double y, double x) {
      interpolate(from, y, x, outside, to);
      to += from.channels;
    });
    return out;
  }
  if (to_source_[1] == 0) {
    const Matrix& m = to_source_;
    const auto first = static_cast<int64_t>(std::floor(m[0] * 0.5 + m[2]));
    for (int64_t y = 0; y < height_; ++y, to += width_ * from.channels)
      copy_row(from, static_cast<int64_t>(std::floor(m[4] * (static_cast<double>(y) + 0.5) + m[5])),
               first, m[0] > 0, width_, outside, to);
    return out;
  }
  for_each_pixel([&](int64_t, int64_t, double y, double x) {
    const uint8_t* pixel =
        from.at(static_cast<int64_t>(std::floor(y)), static_cast<int64_t>(std::floor(x)));
    for (int64_t k = 0; k < from.channels; ++k) *to++ = pixel ? pixel[k] : outside;
  });
  return out;
}

Tensor Warp::mask(const Tensor& source, uint8_t outside) const {
  const Pixels from{source.storage<uint8_t>(), source.shape()[0], source.shape()[1], 1};
  Tensor out(DType::u8, {height_, width_});
  auto* to = out.storage<uint8_t>();
  for_each_pixel([&](int64_t, int64_t, double y, double x) {
    const uint8_t* pixel =
        from.at(static_cast<int64_t>(std::floor(y)), static_cast<int64_t>(std::floor(x)));
    *to++ = pixel ? *pixel : outside;
  });
  return out;
}

std::optional<std::array<float, 4>> Warp::box(const float* corners) const {
  const Matrix& m = to_source_;
  const double area = m[0] * m[4] - m[1] * m[3];
  double low[2] = {1e30, 1e30}, high[2] = {-1e30, -1e30};
  for (const int i : {0, 2})
    for (const int j : {1, 3}) {
      const double x = corners[i] - m[2], y = corners[j] - m[5];
      const double at[2] = {(m[4] * x - m[1] * y) / area, (m[0] * y - m[3] * x) / area};
      for (int k = 0; k < 2; ++k) {
        low[k] = std::min(low[k], at[k]);
        high[k] = std::max(high[k], at[k]);
      }
    }
  const double whole = (high[0] - low[0]) * (high[1] - low[1]);
  const double limit[2] = {static_cast<double>(width_), static_cast<double>(height_)};
  double visible = 1;
  for (int k = 0; k < 2; ++k) {
    low[k] = std::clamp(low[k], 0.0, limit[k]);
    high[k] = std::clamp(high[k], 0.0, limit[k]);
    visible *= high[k] - low[k];
  }
  if (!(visible > 0) || visible < whole / 4) return std::nullopt;
  return std::array{static_cast<float>(low[0]), static_cast<float>(low[1]),
                    static_cast<float>(high[0]), static_cast<float>(high[1])};
}

}  // namespace dais::data
