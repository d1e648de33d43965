#include "ops/strings/utf8.h"

#include <clocale>
#include <cwctype>

namespace dais {
namespace {

/// The locale whose tables map case; null (only ASCII changes) where the system has none.
locale_t unicode_locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

template <typename Map>
std::string mapped(std::string_view text, Map map) {
  std::string out;
  while (!text.empty()) append_code_point(out, map(take_code_point(text)));
  return out;
}

}  // namespace

char32_t take_code_point(std::string_view& text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const size_t length = lead < 0x80    ? 1
                        : lead >= 0xf0 ? 4
                        : lead >= 0xe0 ? 3
                        : lead >= 0xc0 ? 2
                                       : 1;
  char32_t point = length == 1 ? lead : lead & (0x7fu >> length);
  bool whole = length <= text.size() && lead < 0xf8;
  for (size_t i = 1; whole && i < length; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    whole = (next & 0xc0) == 0x80;
    point = (point << 6) | (next & 0x3f);
  }
  if (!whole) point = 0xdc00 + lead;  // a lone surrogate: no valid text holds one
  if (length == 1 && lead >= 0x80) point = 0xdc00 + lead;
  text.remove_prefix(whole ? length : 1);
  return point;
}

void append_code_point(std::string& text, char32_t point) {
  auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (point >= 0xdc80 && point <= 0xdcff) return put(point - 0xdc00);
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | (point >> 6));
  } else {
    if (point < 0x10000) {
      put(0xe0 | (point >> 12));
    } else {
      put(0xf0 | (point >> 18));
      put(0x80 | ((point >> 12) & 0x3f));
    }
    put(0x80 | ((point >> 6) & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

char32_t lower_case(char32_t point) {
  if (point >= 'A' && point <= 'Z') return point + ('a' - 'A');
  if (point < 0x80 || !unicode_locale()) return point;
  return static_cast<char32_t>(towlower_l(static_cast<wint_t>(point), unicode_locale()));
}

char32_t upper_case(char32_t point) {
  if (point >= 'a' && point <= 'z') return point - ('a' - 'A');
  if (point < 0x80 || !unicode_locale()) return point;
  return static_cast<char32_t>(towupper_l(static_cast<wint_t>(point), unicode_locale()));
}

std::string lower_case(std::string_view text) {
  return mapped(text, [](char32_t point) { return lower_case(point); });
}
std::string upper_case(std::string_view text) {
  return mapped(text, [](char32_t point) { return upper_case(point); });
}

}  // namespace dais
