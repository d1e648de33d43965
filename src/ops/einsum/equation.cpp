#include "ops/einsum/equation.h"

#include <algorithm>
#include <cstddef>
#include <map>

namespace dais {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The labels of one term; `dots` axes stand behind its ellipsis.
std::string parse_term(const std::string& term, size_t dots, std::vector<int>& out) {
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (is_letter(term[i])) {
      out.push_back(term[i]);
      continue;
    }
    if (term.compare(i, 3, "...") != 0 || seen) return "the term '" + term + "' is malformed";
    seen = true;
    i += 2;
    for (size_t k = dots; k-- > 0;) out.push_back(EinsumEquation::kEllipsis + static_cast<int>(k));
  }
  return {};
}

std::vector<std::string> split_terms(const std::string& text) {
  std::vector<std::string> out(1);
  for (char c : text) {
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

/// All ellipsis axes, then the letters that occur once, in order of their codes.
std::vector<int> implicit_result(const EinsumEquation& equation, size_t dots) {
  std::map<int, int> counts;
  for (const auto& term : equation.terms)
    for (int label : term) ++counts[label];
  std::vector<int> out;
  for (size_t k = dots; k-- > 0;) out.push_back(EinsumEquation::kEllipsis + static_cast<int>(k));
  for (const auto& [label, count] : counts)
    if (label < EinsumEquation::kEllipsis && count == 1) out.push_back(label);
  return out;
}

std::string check_result(const EinsumEquation& equation) {
  for (size_t i = 0; i < equation.result.size(); ++i) {
    const int label = equation.result[i];
    const bool used = std::any_of(equation.terms.begin(), equation.terms.end(),
                                  [&](const std::vector<int>& term) {
                                    return std::find(term.begin(), term.end(), label) != term.end();
                                  });
    if (!used) return "the result uses an index that no term has";
    if (std::find(equation.result.begin(), equation.result.begin() + static_cast<std::ptrdiff_t>(i),
                  label) != equation.result.begin() + static_cast<std::ptrdiff_t>(i))
      return "the result repeats an index";
  }
  return {};
}

}  // namespace

std::string parse_einsum(const std::string& equation, const std::vector<size_t>& ranks,
                         EinsumEquation& out) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text),
               [](char c) { return c != ' '; });
  const size_t arrow = text.find("->");
  const auto terms = split_terms(text.substr(0, arrow));
  if (terms.size() != ranks.size())
    return "the equation '" + equation + "' has " + std::to_string(terms.size()) + " terms for " +
           std::to_string(ranks.size()) + " inputs";
  size_t most_dots = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto letters =
        static_cast<size_t>(std::count_if(terms[i].begin(), terms[i].end(), is_letter));
    const bool ellipsis = terms[i].find("...") != std::string::npos;
    if (letters > ranks[i] || (!ellipsis && letters != ranks[i]))
      return "the term '" + terms[i] + "' does not fit an input of rank " +
             std::to_string(ranks[i]);
    const size_t dots = ranks[i] - letters;
    most_dots = std::max(most_dots, dots);
    out.terms.emplace_back();
    if (auto problem = parse_term(terms[i], dots, out.terms.back()); !problem.empty())
      return problem;
  }
  if (arrow == std::string::npos) {
    out.result = implicit_result(out, most_dots);
    return {};
  }
  if (auto problem = parse_term(text.substr(arrow + 2), most_dots, out.result); !problem.empty())
    return problem;
  return check_result(out);
}

}  // namespace dais
