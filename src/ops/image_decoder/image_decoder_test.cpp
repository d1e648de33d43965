#include "ops/image_decoder/image_decoder.h"

#include <openjpeg.h>

#include <cstring>

#include "ops/image_decoder/decode.h"
#include "ops/op_testing.h"

namespace dais {
namespace {

std::vector<uint8_t> bytes(std::string_view text) { return {text.begin(), text.end()}; }

OPJ_SIZE_T append(void* from, OPJ_SIZE_T count, void* to) {
  const auto* first = static_cast<const uint8_t*>(from);
  static_cast<std::vector<uint8_t>*>(to)->insert(static_cast<std::vector<uint8_t>*>(to)->end(),
                                                 first, first + count);
  return count;
}

/// A lossless JPEG 2000 stream of one tile.
std::vector<uint8_t> jpeg2000(const RgbImage& image) {
  opj_image_cmptparm_t parts[3] = {};
  for (auto& part : parts) {
    part.dx = part.dy = 1;
    part.w = static_cast<uint32_t>(image.width);
    part.h = static_cast<uint32_t>(image.height);
    part.prec = 8;
  }
  opj_image_t* picture = opj_image_create(3, parts, OPJ_CLRSPC_SRGB);
  picture->x1 = parts[0].w;
  picture->y1 = parts[0].h;
  for (size_t i = 0; i < image.pixels.size(); ++i)
    picture->comps[i % 3].data[i / 3] = image.pixels[i];
  opj_cparameters_t parameters;
  opj_set_default_encoder_parameters(&parameters);
  parameters.tcp_numlayers = 1;
  parameters.cp_disto_alloc = 1;
  parameters.numresolution = 1;
  opj_codec_t* codec = opj_create_compress(OPJ_CODEC_J2K);
  std::vector<uint8_t> out;
  opj_stream_t* stream = opj_stream_default_create(OPJ_FALSE);
  opj_stream_set_user_data(stream, &out, nullptr);
  opj_stream_set_write_function(stream, append);
  EXPECT_TRUE(opj_setup_encoder(codec, &parameters, picture) &&
              opj_start_compress(codec, picture, stream) && opj_encode(codec, stream) &&
              opj_end_compress(codec, stream));
  opj_stream_destroy(stream);
  opj_destroy_codec(codec);
  opj_image_destroy(picture);
  return out;
}

TEST(ImageDecoder, LosslessJpeg2000) {
  RgbImage image;
  image.resize(5, 7);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(i * 37 % 251);
  const auto decoded = decode_image(jpeg2000(image));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->pixels, image.pixels);
}

TEST(ImageDecoder, TextAndBitmapsOfPnm) {
  const auto gray = decode_image(bytes("P2 # two pixels\n2 1\n15\n0 15"));
  ASSERT_TRUE(gray.has_value());
  EXPECT_EQ(gray->pixels, (std::vector<uint8_t>{0, 0, 0, 255, 255, 255}));
  const auto bits = decode_image(bytes("P4\n2 1\n\x40"));
  ASSERT_TRUE(bits.has_value());
  EXPECT_EQ(bits->pixels, (std::vector<uint8_t>{255, 255, 255, 0, 0, 0}));
}

TEST(ImageDecoder, BrokenFilesGiveNoPixels) {
  for (std::string_view file :
       {"", "P6", "P6 99999 99999 255 x", "BM", "\x89PNG\r\n\x1a\n....", "\xff\xd8\xff\xe0..",
        "RIFF....WEBPVP8 ", "II*\0........", "\xff\x4f\xff\x51...."}) {
    const auto data = bytes(file);
    const Tensor y =
        run_onnx("ImageDecoder", 20,
                 {Tensor::of<uint8_t>({std::ssize(data)}, std::span<const uint8_t>(data))},
                 {{"pixel_format", std::string("Grayscale")}})[0];
    EXPECT_EQ(y.shape(), (Shape{0, 0, 1}));
  }
}

}  // namespace
}  // namespace dais
