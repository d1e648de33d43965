#include "ops/strings/strings.h"

#include <gtest/gtest.h>

#include "ir/call.h"
#include "ops/strings/regex.h"
#include "ops/strings/utf8.h"

namespace dais {
namespace {

bool matches(const char* pattern, const char* text) { return Regex(pattern).full_match(text); }

TEST(Regex, PatternsAndTexts) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("a|bc*", "bccc"));
  EXPECT_FALSE(matches("a|bc*", "ac"));
  EXPECT_TRUE(matches("(?:ab){2,3}", "ababab"));
  EXPECT_FALSE(matches("(?:ab){2,3}", "ab"));
  EXPECT_TRUE(matches("x{0,2}y{2,}?", "yyy"));
  EXPECT_TRUE(matches("[^a-c]\\d[[:upper:]]", "z7Q"));
  EXPECT_FALSE(matches("[^a-c]\\d[[:upper:]]", "b7Q"));
  EXPECT_TRUE(matches("[]-]+", "]-"));
  EXPECT_TRUE(matches("(?i)stra\\x{df}e",
                      "STRA\xc3\x9f"
                      "E"));
  EXPECT_TRUE(matches("(?i:a)b", "Ab"));
  EXPECT_FALSE(matches("(?i:a)b", "AB"));
  EXPECT_TRUE(matches("a.c",
                      "a\xe2\x82\xac"
                      "c"));
  EXPECT_FALSE(matches("a.c", "a\nc"));
  EXPECT_TRUE(matches("(?s)a.c", "a\nc"));
  EXPECT_TRUE(matches("^\\bword\\b$", "word"));
  EXPECT_TRUE(matches("(?m)a$\\n^b", "a\nb"));
  EXPECT_TRUE(matches("\\Qa.b\\E+", "a.bbb"));
  EXPECT_TRUE(matches("a{,2}", "a{,2}"));
}

TEST(Regex, PatternsWithoutMeaningAreRefused) {
  for (const char* pattern : {"(", ")", "a)", "[a", "*a", "a{2,1}", "a{1001}", "(?=a)", "\\1",
                              "[[:nope:]]", "[z-a]", "\\x{110000}", "a\\"})
    EXPECT_THROW(Regex{pattern}, Error) << pattern;
  EXPECT_THROW(Regex("((a{1000}){1000}){1000}"), Error);
}

TEST(Regex, TimeDoesNotExplode) {
  EXPECT_FALSE(Regex("(a*)*b").full_match(std::string(2000, 'a')));
  EXPECT_THROW(Regex(std::string(100000, '(')), Error);
}

TEST(Strings, CaseOfLettersAndBrokenText) {
  EXPECT_EQ(upper_case("stra\xc3\xa9"
                       "e"),
            "STRA\xc3\x89"
            "E");
  EXPECT_EQ(lower_case("\xff\xc3"), "\xff\xc3");
}

TEST(Strings, SplitLimits) {
  Graph graph;
  const Tensor x = Tensor::of<std::string>({3}, {"  a b  c ", "", "d"});
  graph.outputs =
      graph.add_node(StringSplit{.maxsplit = 1}, {graph.add_input(Type::of(x), "x")}, 2).outs;
  const Datum input(x);
  const auto out = evaluate(graph, std::span(&input, 1));
  EXPECT_TRUE(
      out[0].tensor.identical(Tensor::of<std::string>({3, 2}, {"a", "b  c ", "", "", "d", ""})));
  EXPECT_TRUE(out[1].tensor.identical(Tensor::of<int64_t>({3}, {2, 0, 1})));
}

TEST(Strings, BrokenPoolsAreRefused) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::i64, Dims{3}), "x");
  TfIdfVectorizer attrs{.max_gram_length = 2,
                        .max_skip_count = 0,
                        .min_gram_length = 1,
                        .mode = "TF",
                        .ngram_counts = {0, 2},
                        .ngram_indexes = {0, 1, 2},
                        .pool_int64s = {1, 2, 1, 2},
                        .pool_strings = {},
                        .weights = {}};
  EXPECT_NO_THROW(graph.add(attrs, {x}));
  attrs.ngram_counts = {0, 1};
  EXPECT_THROW(graph.add(attrs, {x}), Error);
  attrs.ngram_counts = {0, 9};
  EXPECT_THROW(graph.add(attrs, {x}), Error);
}

}  // namespace
}  // namespace dais
