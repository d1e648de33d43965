#include "base/error.h"

#include <algorithm>
#include <numeric>

namespace dais {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::invalid_argument: return "invalid_argument";
    case Code::invalid_model: return "invalid_model";
    case Code::unsupported: return "unsupported";
    case Code::not_found: return "not_found";
    case Code::exhausted: return "exhausted";
    case Code::unavailable: return "unavailable";
    case Code::cancelled: return "cancelled";
    case Code::internal: return "internal";
  }
  return "internal";
}

Error::Error(Code code, std::string what, std::string where, std::string remedy)
    : code_(code), problem_(std::move(what)), where_(std::move(where)), remedy_(std::move(remedy)) {
  line_ = problem_;
  if (!where_.empty()) line_ += " (" + where_ + ")";
  if (!remedy_.empty()) line_ += ". " + remedy_;
  // Names from files may hold anything; the message stays one line on any terminal.
  for (char& c : line_)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
}

Error Error::at(std::string_view place) const {
  std::string where = where_.empty() ? std::string(place) : where_ + ", " + std::string(place);
  return Error(code_, problem_, std::move(where), remedy_);
}

namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  std::string found;
  for (const auto& name : names) {
    size_t distance = edit_distance(word, name);
    if (distance < best) {
      best = distance;
      found = name;
    }
  }
  return found;
}

void check_failed(const char* expression, const char* file, int line) {
  throw Error(Code::internal, std::string("broken invariant: ") + expression,
              std::string(file) + ":" + std::to_string(line),
              "This is a bug in dais; please report it with the model and command");
}

}  // namespace dais
