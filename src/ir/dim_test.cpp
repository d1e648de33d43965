#include "ir/dim.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace dais {
namespace {

TEST(Dim, EqualExpressionsAreEqual) {
  EXPECT_EQ(Dim::parse("N + N"), Dim::parse("2*N"));
  EXPECT_EQ(Dim::parse("(N + 1)*(N - 1)"), Dim::parse("N*N - 1"));
  EXPECT_EQ(Dim::parse("floordiv(4*N + 3, 2)"), Dim::parse("2*N + 1"));
  EXPECT_EQ(Dim::parse("max(N, N + 2)").text(), "N + 2");
}

/// Doubles an expression until it is refused.
template <typename Grow>
void expect_bounded(const Grow& grow) {
  Dim dim = Dim::symbol("n0");
  const auto until_refused = [&] {
    for (int i = 1; i < 100'000; ++i) dim = grow(dim, Dim::symbol("n" + std::to_string(i)));
  };
  EXPECT_THROW(until_refused(), Error);
  EXPECT_LE(dim.text().size(), 20'000u);
}

TEST(Dim, GrowthIsBounded) {
  expect_bounded([](const Dim& a, const Dim& b) { return a + b; });
  expect_bounded([](const Dim& a, const Dim& b) { return a * b; });
  expect_bounded([](const Dim& a, const Dim& b) { return a * (b + 1); });
  expect_bounded([](const Dim& a, const Dim&) { return a * a; });
  expect_bounded([](const Dim& a, const Dim& b) { return max(a, mod(a, b)); });
  expect_bounded([](const Dim& a, const Dim& b) { return broadcast(a + 1, floordiv(a, b)); });
}

TEST(Dim, TextOfAnyKindIsASize) {
  std::string sums = "n";
  for (int i = 0; i < 40; ++i) sums = "(" + sums + ")*(a" + std::to_string(i) + " + 1)";
  EXPECT_THROW(Dim::parse(sums), Error);
  EXPECT_EQ(Dim::parse("floordiv(N, 0)").eval([](const std::string&) { return 4; }), std::nullopt);
  EXPECT_EQ(Dim::parse("what is this?").text(), "what is this?");
  EXPECT_FALSE(Dim::parse(std::string(5'000, '(')).is_constant());
  EXPECT_THROW(Dim::parse(std::string(100'000, '(')), Error);
}

}  // namespace
}  // namespace dais
