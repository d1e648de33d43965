#include "ops/concat/concat.h"
#include "ops/gather/gather.h"
#include "ops/generate/generate.h"
#include "ops/pad/pad.h"
#include "ops/reshape/reshape.h"
#include "ops/scatter/scatter.h"
#include "ops/slice/slice.h"
#include "ops/split/split.h"
#include "ops/tile/tile.h"
#include "ops/transpose/transpose.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

template <typename T>
void check_transposes() {
  const std::pair<Shape, std::vector<int64_t>> cases[] = {
      {{70, 33}, {1, 0}},
      {{2, 3, 40, 50}, {0, 2, 3, 1}},
      {{2, 40, 50, 3}, {0, 3, 1, 2}},
      {{2, 130, 4, 64}, {0, 2, 1, 3}},
      {{5, 6, 7, 8}, {3, 1, 2, 0}},
      {{3, 1, 9, 17}, {2, 3, 1, 0}},
      {{4, 5, 6, 2, 3}, {4, 2, 0, 3, 1}},
      {{17}, {0}},
      {{30, 3, 40}, {0, 2, 1}},
      {{2, 3, 40, 70}, {0, 2, 3, 1}},
      {{2, 4, 90, 70}, {0, 2, 3, 1}},
      {{2, 7, 3, 5, 4}, {0, 1, 4, 2, 3}},
      {{0, 4}, {1, 0}},
      {{2, 9, 300, 8}, {0, 2, 3, 1}},
  };
  for (const auto& [shape, perm] : cases)
    EXPECT_GT(check_rows(Transpose{perm}, {sample<T>(shape, 100)}), 0) << shape.text();
}

TEST(CopyRows, Transpose) {
  check_transposes<float>();
  check_transposes<uint8_t>();
  check_transposes<int64_t>();
  check_transposes<Float16>();
}

TEST(CopyRows, ConcatAndSplit) {
  const Tensor a = sample<float>({2, 3, 4}), b = sample<float>({2, 5, 4}, 4, 2);
  EXPECT_GT(check_rows(Concat{1}, {a, b, a}), 0);
  EXPECT_GT(check_rows(Concat{-2}, {sample<uint8_t>({2, 1, 4}), sample<uint8_t>({2, 0, 4})}), 0);
  EXPECT_GT(check_rows(Split{.axis = 1}, {b}, {}, {}, 5), 0);
  EXPECT_GT(check_rows(Split{.axis = 2}, {b, Tensor::ints(std::vector<int64_t>{1, 3})}, {}, {1}, 2),
            0);
}

TEST(CopyRows, Slice) {
  const auto ints = [](std::vector<int64_t> values) { return Tensor::ints(values); };
  const Tensor x = sample<float>({6, 7, 8});
  const auto check = [&](Tensor starts, Tensor ends, Tensor axes, Tensor steps) {
    EXPECT_GT(check_rows(Slice{}, {x, starts, ends, axes, steps}, {}, {1, 2, 3, 4}), 0);
  };
  check(ints({1, 2}), ints({5, 100}), ints({0, 2}), ints({1, 1}));
  check(ints({-1, 3}), ints({-100, 100}), ints({1, 2}), ints({-1, 2}));
  check(ints({100}), ints({-100}), ints({-1}), ints({-3}));
  check(ints({5}), ints({2}), ints({0}), ints({1}));
  check(ints({0, 0, 6}), ints({1, 9, 9}), Tensor(), Tensor());
}

TEST(CopyRows, ExpandTileGather) {
  const auto ints = [](std::vector<int64_t> values) { return Tensor::ints(values); };
  EXPECT_GT(check_rows(Expand{}, {sample<float>({3, 1, 5}), ints({2, 1, 4, 5})}, {}, {1}), 0);
  EXPECT_GT(check_rows(Expand{}, {sample<bool>({3, 1}), ints({3, 40})}, {}, {1}), 0);
  EXPECT_GT(check_rows(Tile{}, {sample<float>({3, 4}), ints({2, 3})}, {}, {1}), 0);
  EXPECT_GT(check_rows(Tile{}, {sample<int64_t>({3, 1, 2}), ints({1, 5, 1})}, {}, {1}), 0);
  const Tensor at = Tensor::of<int64_t>({2, 3}, {0, -1, 4, 2, -5, 3});
  EXPECT_GT(check_rows(Gather{0}, {sample<float>({5, 6}), at}), 0);
  EXPECT_GT(check_rows(Gather{1}, {sample<float>({3, 5}), at}), 0);
  EXPECT_GT(check_rows(Gather{1}, {sample<uint8_t>({3, 5, 7}), at}), 0);
}

TEST(CopyRows, PadScatterOneHot) {
  const auto ints = [](std::vector<int64_t> values) { return Tensor::ints(values); };
  const Tensor x = sample<float>({3, 4, 5});
  EXPECT_GT(check_rows(Pad{}, {x, ints({1, 0, 2, 0, 1, 3})}, {}, {1}), 0);
  EXPECT_GT(check_rows(Pad{}, {x, ints({-1, 2, 0, 0, -1, 3}), Tensor::scalar(2.5F)}, {}, {1}), 0);
  EXPECT_GT(check_rows(Pad{}, {x, ints({-2, 4}), Tensor::scalar(2.5F), ints({-1})}, {}, {1, 3}), 0);
  const Tensor tuples = Tensor::of<int64_t>({4, 2}, {0, 1, 0, 2, 2, -1, 0, 1});
  EXPECT_GT(check_rows(ScatterND{}, {x, tuples, sample<float>({4, 5}, 9, 7)}), 0);
  EXPECT_GT(
      check_rows(ScatterND{}, {x, Tensor::of<int64_t>({1, 3}, {2, 3, 4}), sample<float>({1})}), 0);
  const Tensor at = Tensor::of<int64_t>({2, 3}, {0, -1, 4, 2, -9, 3});
  const Tensor values = Tensor::of<float>({2}, {-1, 1});
  for (const int64_t axis : {-1, 0, 1})
    EXPECT_GT(check_rows(OneHot{axis}, {at, Tensor::scalar<int64_t>(5), values}, {}, {1}), 0);
}

}  // namespace
}  // namespace dais
