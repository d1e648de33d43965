#include "data/image.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/testing/files.h"

namespace dais::data {
namespace {

Decoding with_channels(int channels) {
  Decoding decoding;
  decoding.channels = channels;
  return decoding;
}

void expect_pixels(const Image& image, const Tensor& wanted) {
  ASSERT_EQ(image.height, wanted.shape()[0]);
  ASSERT_EQ(image.width, wanted.shape()[1]);
  ASSERT_EQ(static_cast<int64_t>(image.pixels.size()), wanted.elements());
  const auto expected = wanted.data<uint8_t>();
  int most = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    most = std::max(most, std::abs(image.pixels[i] - expected[i]));
  EXPECT_EQ(most, 0);
}

TEST(DataImage, DecodesAsPillowDoes) {
  for (const char* name : {"color.jpg", "progressive.jpg", "lossy.webp", "color.png"}) {
    SCOPED_TRACE(name);
    std::string expected = name;
    std::replace(expected.begin(), expected.end(), '.', '_');
    expect_pixels(decode_image(golden_file(name).bytes, with_channels(3)),
                  golden(expected + ".npy"));
  }
  expect_pixels(decode_image(golden_file("gray.jpg").bytes, with_channels(1)),
                golden("gray_jpg.npy"));
  expect_pixels(decode_image(golden_file("palette.png").bytes, with_channels(3)),
                golden("palette_png.npy"));
}

TEST(DataImage, LosslessFormatsAgree) {
  const Tensor wanted = golden("color_png.npy");
  for (const char* name : {"lossless.webp", "color.bmp", "color.ppm"}) {
    SCOPED_TRACE(name);
    expect_pixels(decode_image(golden_file(name).bytes, with_channels(3)), wanted);
  }
  expect_pixels(decode_image(golden_file("color.png").bytes, with_channels(1)),
                golden("color_png_luma.npy"));
}

TEST(DataImage, TransparencyIsLaidOverTheBackground) {
  const Blob file = golden_file("alpha.png");
  const Image whole = decode_image(file.bytes, with_channels(4));
  Decoding over = with_channels(3);
  over.background = 40;
  const Image flat = decode_image(file.bytes, over);
  for (size_t i = 0; i < whole.pixels.size() / 4; ++i)
    for (size_t k = 0; k < 3; ++k) {
      const double alpha = whole.pixels[i * 4 + 3] / 255.0;
      const double wanted = whole.pixels[i * 4 + k] * alpha + 40 * (1 - alpha);
      EXPECT_NEAR(flat.pixels[i * 3 + k], wanted, 0.5001);
    }
}

TEST(DataImage, MasksKeepTheIndicesOfAPalette) {
  expect_pixels(decode_mask(golden_file("palette.png").bytes, 1000), golden("palette_indices.npy"));
  expect_refused([] { decode_mask(golden_file("color.png").bytes, 10000); }, "class numbers");
  expect_refused([] { decode_mask(golden_file("color.jpg").bytes, 10000); }, "blur");
  expect_refused([] { decode_mask(golden_file("deep.png").bytes, 10000); }, "16 bits");
}

TEST(DataImage, ResizesAsPillowDoes) {
  const Image image = decode_image(golden_file("color.png").bytes, with_channels(3));
  for (const auto& [height, width] : {std::pair(17, 23), std::pair(64, 80), std::pair(40, 20)}) {
    const std::string size = std::to_string(height) + "x" + std::to_string(width);
    SCOPED_TRACE(size);
    expect_pixels(resize_image(image, height, width), golden("resize_" + size + ".npy"));
  }
}

TEST(DataImage, FitsBySquashCropFillAndHalfCrop) {
  const Image image = decode_image(golden_file("color.png").bytes, with_channels(3));  // 40 x 48
  ImageOptions options;
  options.height = options.width = 20;
  for (const auto mode : {Resize::squash, Resize::crop, Resize::fill, Resize::half_crop}) {
    options.resize = mode;
    const Image fitted = fit_image(image, options);
    EXPECT_EQ(fitted.height, 20);
    EXPECT_EQ(fitted.width, 20);
  }
  // Crop: 40 x 48 becomes 20 x 24, and two columns fall away on each side.
  options.resize = Resize::crop;
  const Image cropped = fit_image(image, options), scaled = resize_image(image, 20, 24);
  for (int64_t y = 0; y < 20; ++y)
    EXPECT_TRUE(std::equal(cropped.row(y), cropped.row(y) + 60, scaled.row(y) + 6));
  const Placement crop = placement(40, 48, options);
  EXPECT_EQ(crop.scale_x, 0.5);
  EXPECT_EQ(crop.shift_x, -2);
  // Fill: 17 x 20, one row of background above and two below.
  options.resize = Resize::fill;
  options.background = 9;
  const Image filled = fit_image(image, options);
  EXPECT_EQ(filled.row(0)[0], 9);
  EXPECT_EQ(filled.row(19)[59], 9);
  EXPECT_EQ(placement(40, 48, options).shift_y, 1);
}

TEST(DataImage, LargeJpegsAreDecodedSmaller) {
  Image large;
  large.allocate(512, 640, 3, 1 << 20);
  for (size_t i = 0; i < large.pixels.size(); ++i)
    large.pixels[i] = static_cast<uint8_t>(i / 3 % 640 / 4 + i % 3 * 20);
  const std::string file = encode_jpeg(large, 95);
  const Bytes bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  Decoding decoding;
  decoding.cover_height = decoding.cover_width = 64;
  const Image quarter = decode_image(bytes, decoding);
  EXPECT_EQ(quarter.height, 128);  // an eighth would cover less than twice the target
  const Image small = resize_image(quarter, 64, 64);
  const Image exact = resize_image(decode_image(bytes, with_channels(3)), 64, 64);
  int most = 0;
  for (size_t i = 0; i < small.pixels.size(); ++i)
    most = std::max(most, std::abs(small.pixels[i] - exact.pixels[i]));
  EXPECT_LE(most, 6);
}

TEST(DataImage, EncodersGiveBackWhatTheyGot) {
  const Image image = decode_image(golden_file("color.png").bytes, with_channels(3));
  const std::string png = encode_png(image);
  expect_pixels(
      decode_image({reinterpret_cast<const uint8_t*>(png.data()), png.size()}, with_channels(3)),
      golden("color_png.npy"));
}

TEST(DataImage, HostileFilesAreRefused) {
  for (const char* name : {"color.jpg", "progressive.jpg", "color.png", "lossy.webp", "color.ppm",
                           "color.bmp", "alpha.png"}) {
    SCOPED_TRACE(name);
    const Blob file = golden_file(name);
    for (size_t size = 0; size < file.bytes.size(); size += 1 + file.bytes.size() / 97)
      EXPECT_THROW(decode_image(file.bytes.first(size), with_channels(3)), Error) << size;
    Decoding tight = with_channels(3);
    tight.max_pixels = 100;
    EXPECT_THROW(decode_image(file.bytes, tight), Error);
    // Broken bytes may decode to something else, but never crash.
    std::vector<uint8_t> broken(file.bytes.begin(), file.bytes.end());
    for (size_t i = 0; i < broken.size(); i += 7) {
      broken[i] ^= 0x55;
      try {
        decode_image(broken, with_channels(3));
      } catch (const Error&) {
      }
    }
  }
  // A header that promises 4 billion pixels.
  std::string bomb(golden_file("color.png").text());
  bomb.replace(16, 8, std::string("\0\0\xff\xff\0\0\xff\xff", 8));
  expect_refused(
      [&] {
        decode_image({reinterpret_cast<const uint8_t*>(bomb.data()), bomb.size()},
                     with_channels(3));
      },
      "unreadable image");
}

}  // namespace
}  // namespace dais::data
