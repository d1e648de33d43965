#include "data/tar.h"

#include <algorithm>
#include <cstring>

#include "data/readers.h"

namespace dais::data {
namespace {

constexpr size_t kBlock = 512;

[[noreturn]] void refuse(const std::string& what, const std::string& where) {
  throw Error(Code::invalid_argument, "not a readable tar archive: " + what, where);
}

std::string text_field(const uint8_t* from, size_t size) {
  const auto* text = reinterpret_cast<const char*>(from);
  return {text, strnlen(text, size)};
}

/// Octal text, or big-endian bytes behind a set top bit (GNU).
uint64_t number_field(const uint8_t* from, size_t size, const std::string& where) {
  uint64_t value = 0;
  if ((from[0] & 0x80) != 0) {
    for (size_t i = 0; i < size; ++i) {
      if (value >> 55 != 0) refuse("a size is too large", where);
      value = value << 8 | (i == 0 ? from[i] & 0x7f : from[i]);
    }
    return value;
  }
  for (size_t i = 0; i < size && from[i] != 0; ++i) {
    if (from[i] == ' ') continue;
    if (from[i] < '0' || from[i] > '7') refuse("a size is no number", where);
    value = value << 3 | (from[i] - '0');
  }
  return value;
}

/// The sum of all bytes of a header, its own field taken as blanks.
uint64_t header_sum(const uint8_t* header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : header[i];
  return sum;
}

/// "path" and "size" of a pax header: lines "LENGTH KEY=VALUE\n".
struct Pax {
  std::string path;
  int64_t size = -1;
};

Pax parse_pax(std::string_view text, const std::string& where) {
  Pax out;
  while (!text.empty()) {
    size_t length = 0, at = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && length < text.size(); ++at)
      length = length * 10 + static_cast<size_t>(text[at] - '0');
    if (length <= at + 1 || length > text.size()) refuse("a pax header is broken", where);
    std::string_view record = text.substr(at + 1, length - at - 2);
    text.remove_prefix(length);
    if (record.starts_with("path=")) out.path = record.substr(5);
    if (record.starts_with("size=")) {
      out.size = 0;
      for (const char digit : record.substr(5)) {
        if (digit < '0' || digit > '9' || out.size > int64_t{1} << 58)
          refuse("a pax size is no number", where);
        out.size = out.size * 10 + (digit - '0');
      }
    }
  }
  return out;
}

}  // namespace

std::vector<TarMember> parse_tar(Bytes file, const std::string& where) {
  std::vector<TarMember> members;
  std::string long_name;
  Pax pax;
  for (size_t at = 0; at + kBlock <= file.size();) {
    const uint8_t* header = file.data() + at;
    if (header[0] == 0) break;
    if (number_field(header + 148, 8, where) != header_sum(header))
      refuse("the header at byte " + std::to_string(at) + " has a wrong sum", where);
    uint64_t size = number_field(header + 124, 12, where);
    const char type = static_cast<char>(header[156]);
    const bool file_type = type == '0' || type == 0 || type == '7';
    if (file_type && pax.size >= 0) size = static_cast<uint64_t>(pax.size);
    at += kBlock;
    if (size > file.size() - at) refuse("it ends early", where);
    const Bytes data = file.subspan(at, size);
    const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
    at += std::min<size_t>((size + kBlock - 1) / kBlock * kBlock, file.size() - at);
    if (type == 'L') {
      long_name = text.substr(0, text.find('\0'));
    } else if (type == 'x') {
      pax = parse_pax(text, where);
    } else if (type != 'g') {
      std::string name = text_field(header, 100);
      const bool ustar = std::memcmp(header + 257, "ustar", 5) == 0 && header[262] == 0;
      if (const std::string prefix = ustar ? text_field(header + 345, 155) : ""; !prefix.empty())
        name = prefix + "/" + name;
      if (!long_name.empty()) name = long_name;
      if (!pax.path.empty()) name = pax.path;
      if (file_type && !name.empty()) members.push_back({name, data});
      long_name.clear();
      pax = {};
    }
  }
  return members;
}

std::string tar_header(const std::string& name, uint64_t size) {
  DAIS_CHECK(name.size() < 100 && size < uint64_t{1} << 33);
  std::string header(kBlock, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    std::copy(text.begin(), text.end(), header.begin() + static_cast<int64_t>(at));
  };
  const auto octal = [](uint64_t value, size_t digits) {
    std::string text(digits, '0');
    for (size_t i = digits; i-- > 0; value >>= 3) text[i] = static_cast<char>('0' + (value & 7));
    return text;
  };
  put(0, name);
  put(100, octal(0644, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(size, 11));
  put(136, octal(0, 11));  // no time, so that the same data gives the same bytes
  put(156, "0");
  put(257, std::string("ustar\00000", 8));
  put(148, octal(header_sum(reinterpret_cast<const uint8_t*>(header.data())), 6));
  header[155] = ' ';
  return header;
}

}  // namespace dais::data
