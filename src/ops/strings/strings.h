#pragma once

#include "ir/op.h"

namespace dais {

/// (a, b): joined element by element, broadcasting.
struct StringConcat {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// (x) → (pieces: x.shape + [most pieces], padded with "", counts: i64, x.shape). Without a
/// delimiter, runs of blanks separate and outer blanks vanish.
struct StringSplit {
  std::string delimiter = {};
  std::optional<int64_t> maxsplit = {};
  static constexpr auto fields = std::tuple{field("delimiter", &StringSplit::delimiter),
                                            field("maxsplit", &StringSplit::maxsplit)};
  static const Op op;
};

/// (x: [C] or [1,C]): drops stop words, changes case. Nothing left gives one empty string.
struct StringNormalizer {
  std::string case_change_action = "NONE";  ///< or LOWER, UPPER
  bool is_case_sensitive = false;           ///< when stop words are compared
  std::string locale = {};                  ///< the case of letters is Unicode's in every locale
  std::vector<std::string> stopwords = {};
  static constexpr auto fields = std::tuple{
      field("case_change_action", &StringNormalizer::case_change_action),
      field("is_case_sensitive", &StringNormalizer::is_case_sensitive),
      field("locale", &StringNormalizer::locale), field("stopwords", &StringNormalizer::stopwords)};
  static const Op op;
};

/// (x) → bool: whether the whole string matches an RE2 pattern (see regex.h).
struct RegexFullMatch {
  std::string pattern = {};
  static constexpr auto fields = std::tuple{field("pattern", &RegexFullMatch::pattern)};
  static const Op op;
};

/// (x: [C] or [N,C], integers or strings) → f32: how often each n-gram of the pool occurs, with up
/// to max_skip_count elements left out between its items. mode TF counts, IDF gives the weight of
/// what occurs, TFIDF their product.
struct TfIdfVectorizer {
  int64_t max_gram_length = 0;
  int64_t max_skip_count = 0;
  int64_t min_gram_length = 0;
  std::string mode = {};
  std::vector<int64_t> ngram_counts = {};   ///< where the pool's 1-grams, 2-grams, … start
  std::vector<int64_t> ngram_indexes = {};  ///< the output column of each n-gram
  std::vector<int64_t> pool_int64s = {};
  std::vector<std::string> pool_strings = {};
  std::vector<float> weights = {};
  static constexpr auto fields =
      std::tuple{field("max_gram_length", &TfIdfVectorizer::max_gram_length),
                 required_field("max_skip_count", &TfIdfVectorizer::max_skip_count),
                 field("min_gram_length", &TfIdfVectorizer::min_gram_length),
                 field("mode", &TfIdfVectorizer::mode),
                 field("ngram_counts", &TfIdfVectorizer::ngram_counts),
                 field("ngram_indexes", &TfIdfVectorizer::ngram_indexes),
                 field("pool_int64s", &TfIdfVectorizer::pool_int64s),
                 field("pool_strings", &TfIdfVectorizer::pool_strings),
                 field("weights", &TfIdfVectorizer::weights)};
  static const Op op;
};

void define_tfidf(OpRegistry& registry);

}  // namespace dais
