#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dais {

/// Takes one code point off the front of `text` (not empty). A broken byte counts as itself.
char32_t take_code_point(std::string_view& text);
void append_code_point(std::string& text, char32_t point);

/// Simple case mapping of every code point, whatever the process's locale is.
std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);
char32_t lower_case(char32_t point);
char32_t upper_case(char32_t point);

}  // namespace dais
