// n-grams are looked up as lists of token numbers: tokens of the pool are numbered once, so that
// integer and string pools share one search.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/strings/strings.h"

namespace dais {
namespace {

using Gram = std::vector<int64_t>;

/// What is wrong with the attributes, or nothing.
std::optional<std::string> problem_of(const TfIdfVectorizer& a) {
  if (a.mode != "TF" && a.mode != "IDF" && a.mode != "TFIDF") return "mode is '" + a.mode + "'";
  if (a.min_gram_length < 1 || a.max_gram_length < a.min_gram_length || a.max_gram_length > 1000)
    return "the gram lengths are out of range";
  if (a.max_skip_count < 0 || a.max_skip_count > 1000) return "max_skip_count is out of range";
  if (a.pool_int64s.empty() == a.pool_strings.empty()) return "one pool must be given";
  const auto pool = static_cast<int64_t>(std::max(a.pool_int64s.size(), a.pool_strings.size()));
  int64_t grams = 0;
  for (size_t i = 0; i < a.ngram_counts.size(); ++i) {
    const int64_t first = a.ngram_counts[i],
                  last = i + 1 < a.ngram_counts.size() ? a.ngram_counts[i + 1] : pool;
    const auto length = static_cast<int64_t>(i + 1);
    if (first < 0 || last < first || last > pool || (last - first) % length != 0)
      return "ngram_counts do not divide the pool";
    grams += (last - first) / length;
  }
  if (grams != static_cast<int64_t>(a.ngram_indexes.size()))
    return "ngram_indexes do not name a column for each n-gram of the pool";
  for (const int64_t column : a.ngram_indexes)
    if (column < 0 || column > (int64_t{1} << 31)) return "a column is out of range";
  if (!a.weights.empty() && a.weights.size() != a.ngram_indexes.size())
    return "weights and n-grams differ in number";
  return std::nullopt;
}

int64_t columns(const TfIdfVectorizer& a) {
  int64_t most = -1;
  for (const int64_t column : a.ngram_indexes) most = std::max(most, column);
  return most + 1;
}

void infer(Inference& c) {
  const TfIdfVectorizer& attrs = c.attrs<TfIdfVectorizer>();
  if (const auto problem = problem_of(attrs)) c.fail(*problem);
  const bool text = c.dtype(0) == DType::string;
  if (text != attrs.pool_int64s.empty()) c.fail("the pool is of another type than the input");
  c.set(0, DType::f32);
  Dims shape = c.shape(0);
  if (shape.empty() || shape.size() > 2) c.fail("x is neither [C] nor [N,C]");
  shape.back() = columns(attrs);
  c.set(0, DType::f32, std::move(shape));
}

/// Numbers for tokens; those outside the pool share -1.
template <typename T>
std::vector<int64_t> numbered(std::span<const T> tokens, std::unordered_map<T, int64_t>& numbers,
                              bool learn) {
  std::vector<int64_t> out;
  for (const T& token : tokens) {
    const auto found = numbers.find(token);
    if (found != numbers.end())
      out.push_back(found->second);
    else
      out.push_back(learn ? numbers[token] = static_cast<int64_t>(numbers.size()) : -1);
  }
  return out;
}

struct Pool {
  std::map<Gram, size_t> grams;  ///< n-gram to its place in the pool
  std::vector<int64_t> tokens;   ///< of the input
};

Pool read_pool(const TfIdfVectorizer& a, const Tensor& x) {
  Pool out;
  std::vector<int64_t> pool;
  if (a.pool_int64s.empty()) {
    std::unordered_map<std::string, int64_t> numbers;
    pool = numbered(std::span<const std::string>(a.pool_strings), numbers, true);
    out.tokens = numbered(x.data<std::string>(), numbers, false);
  } else {
    std::unordered_map<int64_t, int64_t> numbers;
    pool = numbered(std::span<const int64_t>(a.pool_int64s), numbers, true);
    const auto ints = x.to_ints();
    out.tokens = numbered(std::span<const int64_t>(ints), numbers, false);
  }
  size_t place = 0;
  for (size_t i = 0; i < a.ngram_counts.size(); ++i) {
    const auto last =
        i + 1 < a.ngram_counts.size() ? a.ngram_counts[i + 1] : static_cast<int64_t>(pool.size());
    const auto length = static_cast<int64_t>(i + 1);
    for (int64_t at = a.ngram_counts[i]; at < last; at += length)
      out.grams[Gram(pool.begin() + at, pool.begin() + at + length)] = place++;
  }
  return out;
}

/// Counts the n-grams of one row: every start, every allowed distance between items.
void count_row(const TfIdfVectorizer& a, const Pool& pool, std::span<const int64_t> row,
               std::vector<int64_t>& counts) {
  const auto size = static_cast<int64_t>(row.size());
  Gram gram;
  for (int64_t length = a.min_gram_length; length <= a.max_gram_length; ++length)
    // A single item has no distances: skipping would count it again.
    for (int64_t step = 1; step <= (length == 1 ? 1 : a.max_skip_count + 1); ++step)
      for (int64_t start = 0; start + (length - 1) * step < size; ++start) {
        gram.clear();
        for (int64_t k = 0; k < length; ++k)
          gram.push_back(row[static_cast<size_t>(start + k * step)]);
        const auto found = pool.grams.find(gram);
        if (found != pool.grams.end()) ++counts[found->second];
      }
}

void reference(Call& c) {
  const TfIdfVectorizer& attrs = c.attrs<TfIdfVectorizer>();
  const Tensor& x = c.in(0);
  c.require(x.rank() == 1 || x.rank() == 2, "x is neither [C] nor [N,C]");
  const int64_t rows = x.rank() == 2 ? x.shape()[0] : 1, width = x.shape().back();
  const int64_t wide = columns(attrs);
  Tensor& y = c.out(0, DType::f32, x.rank() == 2 ? Shape{rows, wide} : Shape{wide});
  auto out = y.data<float>();
  std::fill(out.begin(), out.end(), 0.0f);
  const Pool pool = read_pool(attrs, x);
  std::vector<int64_t> counts(attrs.ngram_indexes.size());
  for (int64_t row = 0; row < rows; ++row) {
    std::fill(counts.begin(), counts.end(), 0);
    count_row(attrs, pool,
              std::span(pool.tokens)
                  .subspan(static_cast<size_t>(row * width), static_cast<size_t>(width)),
              counts);
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      const float weight = attrs.weights.empty() ? 1 : attrs.weights[i];
      out[static_cast<size_t>(row * wide + attrs.ngram_indexes[i])] =
          attrs.mode == "TF"    ? static_cast<float>(counts[i])
          : attrs.mode == "IDF" ? weight
                                : static_cast<float>(counts[i]) * weight;
    }
  }
}

}  // namespace

const Op TfIdfVectorizer::op{
    .name = "tf_idf_vectorizer",
    .attrs = &AttrsOf<TfIdfVectorizer>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{"TfIdfVectorizer", 9}},
};

void define_tfidf(OpRegistry& registry) { registry.add(TfIdfVectorizer::op); }

}  // namespace dais
