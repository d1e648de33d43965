#include "ops/strings/strings.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/strided.h"
#include "ops/strings/regex.h"
#include "ops/strings/utf8.h"

namespace dais {
namespace {

void check_text(Inference& c, size_t i) {
  if (c.dtype(i) != DType::string)
    c.fail("input " + std::to_string(i) + " is " + std::string(dtype_name(c.dtype(i))) +
           ", not string");
}

void infer_concat(Inference& c) {
  check_text(c, 0);
  check_text(c, 1);
  c.set(0, DType::string);
  c.set(0, DType::string, c.broadcast(c.shape(0), c.shape(1)));
}

void reference_concat(Call& c) {
  const Tensor &a = c.in(0), &b = c.in(1);
  Tensor& y = c.out(0, broadcast(a.shape(), b.shape()));
  const auto loop = StridedLoop<3>::broadcast(y.shape(), {&y.shape(), &a.shape(), &b.shape()});
  const std::string *left = a.storage<std::string>(), *right = b.storage<std::string>();
  loop.rows([&](const auto& at) {
    for (int64_t i = 0; i < loop.size(); ++i)
      y.storage<std::string>()[at[0] + i * loop.step(0)] =
          left[at[1] + i * loop.step(1)] + right[at[2] + i * loop.step(2)];
  });
}

using Pieces = std::vector<std::string>;

Pieces split_at(std::string_view text, std::string_view delimiter, int64_t most) {
  Pieces out;
  for (int64_t cuts = 0; cuts != most; ++cuts) {
    const size_t found = text.find(delimiter);
    if (found == std::string_view::npos) break;
    out.emplace_back(text.substr(0, found));
    text.remove_prefix(found + delimiter.size());
  }
  out.emplace_back(text);
  return out;
}

Pieces split_at_blanks(std::string_view text, int64_t most) {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  Pieces out;
  for (int64_t cuts = 0;; ++cuts) {
    const size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return out;
    text.remove_prefix(first);
    const size_t end =
        cuts == most ? text.size() : std::min(text.find_first_of(blanks), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

void infer_split(Inference& c) {
  check_text(c, 0);
  c.set(0, DType::string);
  c.set(1, DType::i64);
  Dims shape = c.shape(0);
  c.set(1, DType::i64, shape);
  shape.push_back(c.fresh());
  c.set(0, DType::string, std::move(shape));
}

void reference_split(Call& c) {
  const StringSplit& attrs = c.attrs<StringSplit>();
  const int64_t most = attrs.maxsplit && *attrs.maxsplit >= 0 ? *attrs.maxsplit : -1;
  const Tensor& x = c.in(0);
  std::vector<Pieces> pieces;
  size_t width = 0;
  for (const std::string& text : x.data<std::string>()) {
    pieces.push_back(attrs.delimiter.empty() ? split_at_blanks(text, most)
                                             : split_at(text, attrs.delimiter, most));
    width = std::max(width, pieces.back().size());
  }
  Shape shape = x.shape();
  shape.push_back(static_cast<int64_t>(width));
  auto y = c.out(0, DType::string, shape).data<std::string>();
  for (size_t i = 0; i < pieces.size(); ++i)
    for (size_t k = 0; k < width; ++k)
      y[i * width + k] = k < pieces[i].size() ? std::move(pieces[i][k]) : std::string();
  if (c.outputs() < 2) return;
  auto counts = c.out(1, DType::i64, x.shape()).data<int64_t>();
  for (size_t i = 0; i < pieces.size(); ++i) counts[i] = static_cast<int64_t>(pieces[i].size());
}

void infer_normalizer(Inference& c) {
  const std::string& action = c.attrs<StringNormalizer>().case_change_action;
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    c.fail("case_change_action is '" + action + "'", "Use NONE, LOWER or UPPER");
  check_text(c, 0);
  c.set(0, DType::string);
  Dims shape = c.shape(0);
  if (shape.empty() || shape.size() > 2) c.fail("x is neither [C] nor [1,C]");
  shape.back() = c.fresh();
  c.set(0, DType::string, std::move(shape));
}

void reference_normalizer(Call& c) {
  const StringNormalizer& attrs = c.attrs<StringNormalizer>();
  const Tensor& x = c.in(0);
  const bool matrix = x.rank() == 2;
  if (x.rank() > 2 || x.rank() == 0 || (matrix && x.shape()[0] != 1))
    c.fail("x is " + x.describe() + ", neither [C] nor [1,C]");
  auto key = [&](const std::string& text) {
    return attrs.is_case_sensitive ? text : lower_case(text);
  };
  std::vector<std::string> stops, kept;
  for (const std::string& word : attrs.stopwords) stops.push_back(key(word));
  std::sort(stops.begin(), stops.end());
  for (const std::string& word : x.data<std::string>()) {
    if (std::binary_search(stops.begin(), stops.end(), key(word))) continue;
    kept.push_back(attrs.case_change_action == "LOWER"   ? lower_case(word)
                   : attrs.case_change_action == "UPPER" ? upper_case(word)
                                                         : word);
  }
  if (kept.empty()) kept.emplace_back();
  const auto count = static_cast<int64_t>(kept.size());
  Tensor& y = c.out(0, DType::string, matrix ? Shape{1, count} : Shape{count});
  std::move(kept.begin(), kept.end(), y.data<std::string>().begin());
}

void infer_regex(Inference& c) {
  check_text(c, 0);
  const Regex valid(c.attrs<RegexFullMatch>().pattern);
  c.set(0, DType::boolean);
  c.set(0, DType::boolean, c.shape(0));
}

void reference_regex(Call& c) {
  const Regex regex(c.attrs<RegexFullMatch>().pattern);
  const auto text = c.in(0).data<std::string>();
  auto y = c.out(0, DType::boolean, c.in(0).shape()).data<bool>();
  for (size_t i = 0; i < text.size(); ++i) y[i] = regex.full_match(text[i]);
}

}  // namespace

const Op StringConcat::op{
    .name = "string_concat",
    .attrs = &AttrsOf<StringConcat>::info,
    .infer = infer_concat,
    .reference = reference_concat,
    .onnx = {{"StringConcat", 20}},
};
const Op StringSplit::op{
    .name = "string_split",
    .attrs = &AttrsOf<StringSplit>::info,
    .infer = infer_split,
    .reference = reference_split,
    .onnx = {{"StringSplit", 20}},
};
const Op StringNormalizer::op{
    .name = "string_normalizer",
    .attrs = &AttrsOf<StringNormalizer>::info,
    .infer = infer_normalizer,
    .reference = reference_normalizer,
    .onnx = {{"StringNormalizer", 10}},
};
const Op RegexFullMatch::op{
    .name = "regex_full_match",
    .attrs = &AttrsOf<RegexFullMatch>::info,
    .infer = infer_regex,
    .reference = reference_regex,
    .onnx = {{"RegexFullMatch", 20}},
};

namespace ops {
void define_strings(OpRegistry& registry) {
  for (const Op* op :
       {&StringConcat::op, &StringSplit::op, &StringNormalizer::op, &RegexFullMatch::op})
    registry.add(*op);
  define_tfidf(registry);
}
}  // namespace ops
}  // namespace dais
