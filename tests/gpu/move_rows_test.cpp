// Rows that only move or make elements: what is read and written, and by how wide words.
#include "ops/concat/concat.h"
#include "ops/depth_to_space/depth_to_space.h"
#include "ops/generate/generate.h"
#include "ops/pad/pad.h"
#include "ops/pool/pool.h"
#include "ops/reshape/reshape.h"
#include "ops/slice/slice.h"
#include "ops/split/split.h"
#include "ops/tile/tile.h"
#include "watched_row.h"

namespace dais {
namespace {

Tensor floats(const Shape& shape, uint64_t seed = 1) { return sample<float>(shape, 4, seed); }
Tensor ints(std::vector<int64_t> list) { return Tensor::ints(list); }

TEST(MoveRows, Concat) {
  const WatchedRun run = watch_row(
      Concat{.axis = 1}, {floats({3, 8, 16}), floats({3, 4, 16}, 2), floats({3, 2, 16}, 3)});
  run.expect_launches(3);
  run.expect_coalesced();
  run.expect_bytes(3 * 14 * 16 * 4, 3 * 14 * 16 * 4);
  watch_row(Concat{.axis = -1}, {floats({5, 3}), floats({5, 0}), floats({5, 2}, 2)});
}

TEST(MoveRows, SplitAndSlice) {
  watch_row(Split{.axis = 1}, {floats({4, 10, 3}), ints({3, 7})}, {.constants = {1}, .outputs = 2});
  const WatchedRun run =
      watch_row(Slice{}, {floats({6, 32, 64}), ints({1, 16}), ints({5, 64}), ints({0, 2})},
                {.constants = {1, 2, 3}});
  run.expect_coalesced();
  run.expect_bytes(4 * 32 * 48 * 4, 4 * 32 * 48 * 4);
  watch_row(Slice{}, {floats({5, 9}), ints({-1, 7}), ints({-100, 0}), ints({0, 1}), ints({-2, -3})},
            {.constants = {1, 2, 3, 4}});
}

/// Steps of a thread in 16 bytes need every address to be a multiple of that: here it is none.
TEST(MoveRows, UnalignedRunsGoByElements) {
  watch_row(Slice{}, {floats({3, 33}), ints({1}), ints({33}), ints({1})}, {.constants = {1, 2, 3}});
  watch_row(Concat{.axis = 0}, {floats({3}), floats({8}, 2)});
}

TEST(MoveRows, Repeats) {
  watch_row(Tile{}, {floats({3, 5}), ints({2, 3})}, {.constants = {1}});
  watch_row(Expand{}, {floats({3, 1, 5}), ints({2, 1, 4, 1})}, {.constants = {1}});
}

TEST(MoveRows, BlocksOfPixels) {
  for (const bool last : {false, true})
    for (const char* mode : {"DCR", "CRD"})
      watch_row(DepthToSpace{.blocksize = 2, .mode = mode, .channels_last = last},
                {floats(last ? Shape{2, 3, 5, 12} : Shape{2, 12, 3, 5})});
  for (const bool last : {false, true})
    watch_row(SpaceToDepth{.blocksize = 3, .channels_last = last},
              {floats(last ? Shape{2, 6, 9, 2} : Shape{2, 2, 6, 9})});
}

TEST(MoveRows, Pad) {
  const Tensor value = Tensor::of<float>({}, {7});
  const WatchedRun run = watch_row(
      Pad{}, {floats({2, 3, 4, 8}), ints({0, 0, 1, 2, 0, 0, 1, 6}), value}, {.constants = {1}});
  run.expect_coalesced_writes();
  for (const char* mode : {"reflect", "edge", "wrap"})
    watch_row(Pad{.mode = mode}, {floats({3, 4, 5}), ints({1, 7, -1, 0, 2, 9})},
              {.constants = {1}});
  watch_row(Pad{}, {floats({6, 5}), ints({-1, 2, 3, -4})}, {.constants = {1}});
}

TEST(MoveRows, Generated) {
  watch_row(OneHot{.axis = 1}, {ints({1, -1, 9, 2}), ints({5}), Tensor::of<float>({2}, {-1, 3})},
            {.constants = {1}});
  watch_row(
      Range{},
      {Tensor::of<int64_t>({}, {7}), Tensor::of<int64_t>({}, {-9}), Tensor::of<int64_t>({}, {-3})},
      {.constants = {0, 1, 2}});
}

TEST(MoveRows, GlobalPools) {
  const WatchedRun run = watch_row(GlobalAveragePool{}, {floats({2, 5, 8, 16})});
  run.expect_coalesced();
  run.expect_bytes(2 * 5 * 128 * 4, 2 * 5 * 4);
  watch_row(GlobalAveragePool{.channels_last = true}, {floats({2, 4, 4, 6})});
  watch_row(GlobalMaxPool{}, {floats({2, 5, 7})});
}

TEST(MoveRows, MaxPoolOfBytes) {
  Tensor x(DType::i8, {1, 2, 6, 6});
  for (size_t i = 0; i < 72; ++i) x.data<int8_t>()[i] = static_cast<int8_t>(i * 37 % 251 - 125);
  watch_row(MaxPool{.kernel_shape = {2, 2}, .strides = {2, 2}}, {x});
}

}  // namespace
}  // namespace dais
