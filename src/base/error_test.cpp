#include "base/error.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dais {
namespace {

TEST(ErrorText, JoinsWhatWhereAndRemedy) {
  Error error(Code::invalid_argument, "axis 4 is outside a rank-2 input", "node 'probs'",
              "Use -2 to 1");
  EXPECT_STREQ(error.what(), "axis 4 is outside a rank-2 input (node 'probs'). Use -2 to 1");
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_EQ(error.problem(), "axis 4 is outside a rank-2 input");
  EXPECT_EQ(error.where(), "node 'probs'");
  EXPECT_EQ(error.remedy(), "Use -2 to 1");
}

TEST(ErrorText, LeavesOutEmptyParts) {
  EXPECT_STREQ(Error(Code::not_found, "no file").what(), "no file");
  EXPECT_STREQ(Error(Code::not_found, "no file", "a.onnx").what(), "no file (a.onnx)");
  EXPECT_STREQ(Error(Code::not_found, "no file", "", "Check the path").what(),
               "no file. Check the path");
}

TEST(ErrorText, KeepsTheInnerPlaceInFront) {
  const Error inner(Code::invalid_model, "wrong shape", "node 'conv1'");
  const Error outer = inner.at("model.onnx");
  EXPECT_EQ(outer.where(), "node 'conv1', model.onnx");
  EXPECT_EQ(outer.code(), Code::invalid_model);
  EXPECT_EQ(inner.where(), "node 'conv1'");
  EXPECT_EQ(Error(Code::invalid_model, "wrong shape").at("model.onnx").where(), "model.onnx");
}

TEST(ErrorText, EveryCodeHasItsOwnName) {
  std::vector<std::string_view> names;
  for (Code code : {Code::invalid_argument, Code::invalid_model, Code::unsupported, Code::not_found,
                    Code::exhausted, Code::unavailable, Code::cancelled, Code::internal}) {
    names.push_back(code_name(code));
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
  EXPECT_EQ(code_name(Code::exhausted), "exhausted");
}

TEST(ErrorCheck, ThrowsInternalWithItsPlace) {
  EXPECT_NO_THROW(DAIS_CHECK(1 + 1 == 2));
  try {
    DAIS_CHECK(1 + 1 == 3);
    FAIL() << "a broken invariant went unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::internal);
    EXPECT_NE(error.problem().find("1 + 1 == 3"), std::string::npos);
    EXPECT_NE(error.where().find("error_test.cpp:"), std::string::npos);
    EXPECT_FALSE(error.remedy().empty());
  }
}

TEST(Error, StaysOneLineWhateverItQuotes) {
  EXPECT_STREQ(Error(Code::invalid_model, "no 'a\nb\x1b[0m'").what(), "no 'a?b?[0m'");
}

TEST(Nearest, FindsLikelySlips) {
  const std::vector<std::string> ops{"Softmax", "LogSoftmax", "Softplus", "Conv", "Gemm"};
  EXPECT_EQ(nearest("Sofmax", ops), "Softmax");
  EXPECT_EQ(nearest("softmax", ops), "Softmax");
  EXPECT_EQ(nearest("LogSoftMax", ops), "LogSoftmax");
  EXPECT_EQ(nearest("Gem", ops), "Gemm");
  EXPECT_EQ(nearest("Conv", ops), "Conv");
}

TEST(Nearest, IsSilentWhenNothingIsNear) {
  const std::vector<std::string> ops{"Softmax", "Conv", "Gemm"};
  EXPECT_EQ(nearest("Transpose", ops), "");
  EXPECT_EQ(nearest("", ops), "");
  EXPECT_EQ(nearest("Conv", {}), "");
}

TEST(Nearest, PrefersTheEarlierOfTwoEquallyNear) {
  EXPECT_EQ(nearest("cat", {"bat", "hat"}), "bat");
}

}  // namespace
}  // namespace dais
