// Casts of types of few bits: the bits of the CPU's reference, from every code and from numbers
// around every code and beyond all.
#include "ops/cast/cast.h"
#include "watched_row.h"

namespace dais {
namespace {

const std::vector<DType> kFloats = {DType::f8e4m3fn,   DType::f8e4m3fnuz, DType::f8e5m2,
                                    DType::f8e5m2fnuz, DType::f8e8m0,     DType::f4e2m1};
const std::vector<DType> kWholes = {DType::i4, DType::u4, DType::i2, DType::u2};
const WatchedCase kExact{.tolerance = {0, 0}};

/// Every element of such a type.
Tensor codes_of(DType dtype) {
  const auto bits = static_cast<int>(dtype_bits(dtype));
  Tensor bytes(DType::u8, Shape{1 << bits});
  for (int i = 0; i < 1 << bits; ++i)
    bytes.data<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(i);
  if (bits < 8) return run_reference(Cast{.to = dtype}, {bytes});
  return run_reference(BitCast{.to = dtype}, {bytes});
}

/// Numbers on, beside and between the codes, and where no code is.
Tensor numbers_around(const Tensor& codes) {
  std::vector<float> numbers{1e9F,  -1e9F,  INFINITY, -INFINITY, NAN,
                             1e-9F, -1e-9F, 5e-40F,   -0.0F,     3e38F};
  for (const float number : to_wide<float>(codes)) {
    if (!std::isfinite(number)) continue;
    for (const float part : {1.0F, 1.0625F, 1.125F, 1.25F, 1.5F, 0.9375F, 1.03F})
      numbers.push_back(number * part);
    numbers.push_back(std::nextafter(number * 1.0625F, 0.0F));
  }
  return Tensor::of<float>({static_cast<int64_t>(numbers.size())}, numbers);
}

/// Not to the bit: there are many patterns of NaN.
TEST(CastRows, EveryCodeIsWidened) {
  const WatchedCase equal{.tolerance = {0, 1e-45}};
  for (const DType from : kFloats)
    for (const DType to : {DType::f32, DType::f16, DType::i32})
      watch_row(Cast{.to = to}, {codes_of(from)}, equal);
  for (const DType from : kWholes)
    for (const DType to : {DType::f32, DType::bf16, DType::u8})
      watch_row(Cast{.to = to}, {codes_of(from)}, kExact);
  watch_row(Cast{.to = DType::i64}, {codes_of(DType::f8e5m2)}, kExact);
  watch_row(Cast{.to = DType::u16}, {codes_of(DType::f8e5m2fnuz)}, kExact);
}

TEST(CastRows, NumbersAroundEveryCodeAreNarrowed) {
  for (const DType to : kFloats) {
    const Tensor x = numbers_around(codes_of(to));
    for (const bool saturate : {true, false})
      watch_row(Cast{.to = to, .saturate = saturate}, {x}, kExact);
    watch_row(Cast{.to = to}, {narrowed(x, DType::f16)}, kExact);
    watch_row(Cast{.to = to}, {narrowed(x, DType::bf16)}, kExact);
    watch_row(Cast{.to = to}, {sample<int32_t>({70}, 300)}, kExact);
  }
}

TEST(CastRows, ScalesAreRoundedAsAsked) {
  const Tensor x = numbers_around(codes_of(DType::f8e8m0));
  for (const char* mode : {"up", "down", "nearest"})
    watch_row(Cast{.to = DType::f8e8m0, .round_mode = mode}, {x}, kExact);
}

TEST(CastRows, IntegersOfFewBitsWrap) {
  for (const DType to : kWholes) {
    watch_row(Cast{.to = to}, {numbers_around(sample<float>({40}, 20))}, kExact);
    watch_row(Cast{.to = to}, {sample<int64_t>({70}, 1e6)}, kExact);
    watch_row(Cast{.to = to}, {codes_of(DType::f8e5m2)}, kExact);
    for (const DType from : kWholes)
      if (from != to) watch_row(Cast{.to = to}, {codes_of(from)}, kExact);
  }
}

TEST(CastRows, BitsAreCopied) {
  const WatchedRun run = watch_row(BitCast{.to = DType::i32}, {sample<float>({4, 32})}, kExact);
  run.expect_coalesced();
  run.expect_bytes(4 * 32 * 4, 4 * 32 * 4);
}

}  // namespace
}  // namespace dais
