#include <algorithm>
#include <cctype>
#include <string_view>

#include "backends/cuda/emulated/compile.h"

namespace dais::cuda::emulated {
namespace {

constexpr std::string_view kLinkage = "\"C\"";

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The text with comments, literals and preprocessor lines blanked, of the same length.
std::string code_only(const std::string& text) {
  std::string code = text;
  bool line_start = true;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    if (text.compare(i, 2, "//") == 0) {
      end = text.find('\n', i);
    } else if (text.compare(i, 2, "/*") == 0) {
      end = text.find("*/", i + 2);
      if (end != std::string::npos) end += 2;
    } else if (text[i] == '#' && line_start) {
      end = i;
      do end = text.find('\n', end + 1);
      while (end != std::string::npos && text[end - 1] == '\\');
    } else if ((text[i] == '\'' && (i == 0 || !is_word(text[i - 1]))) || text[i] == '"') {
      if (text.compare(i, 3, kLinkage) == 0) {
        i += kLinkage.size();
        continue;
      }
      end = i + 1;
      while (end < text.size() && text[end] != text[i]) end += text[end] == '\\' ? 2 : 1;
      ++end;
    } else {
      line_start = text[i] == '\n' || (line_start && std::isspace(text[i]));
      ++i;
      continue;
    }
    for (end = std::min(end, text.size()); i < end; ++i)
      if (code[i] != '\n') code[i] = ' ';
  }
  return code;
}

size_t skip_space(const std::string& code, size_t at) {
  while (at < code.size() && std::isspace(static_cast<unsigned char>(code[at]))) ++at;
  return at;
}

/// The word or single character at `at`, which moves behind it.
std::string token(const std::string& code, size_t& at) {
  at = skip_space(code, at);
  const size_t from = at;
  while (at < code.size() && is_word(code[at])) ++at;
  if (at == from && at < code.size()) ++at;
  return code.substr(from, at - from);
}

/// From an opening bracket to behind the one that closes it.
std::string bracketed(const std::string& code, size_t& at, char open = '(', char close = ')') {
  const size_t from = at;
  int depth = 0;
  for (; at < code.size(); ++at) {
    depth += code[at] == open ? 1 : code[at] == close ? -1 : 0;
    if (depth == 0) {
      ++at;
      break;
    }
  }
  return code.substr(from, at - from);
}

bool next_word(const std::string& code, std::string_view word, size_t& at) {
  for (at = code.find(word, at); at != std::string::npos; at = code.find(word, at + 1)) {
    const bool starts = at == 0 || !is_word(code[at - 1]);
    if (starts && (at + word.size() == code.size() || !is_word(code[at + word.size()])))
      return true;
  }
  return false;
}

/// extern __shared__ T name[]; becomes a pointer to the block's dynamic shared memory.
void rewrite_dynamic_shared(std::string& text, std::string& code) {
  for (size_t at = 0; next_word(code, "extern", at);) {
    size_t next = at + 6;
    if (token(code, next) != "__shared__") {
      at = next;
      continue;
    }
    const size_t end = code.find(';', next), open = code.find('[', next);
    if (end == std::string::npos || open == std::string::npos || open > end) break;
    std::string type = code.substr(next, open - next);
    for (size_t align; (align = type.find("__align__")) != std::string::npos;) {
      size_t behind = skip_space(type, align + 9);
      bracketed(type, behind);
      type.erase(align, behind - align);
    }
    while (!type.empty() && !is_word(type.back())) type.pop_back();
    size_t name = type.size();
    while (name > 0 && is_word(type[name - 1])) --name;
    std::string pointer = type.substr(0, name) + "*const " + type.substr(name) +
                          " = reinterpret_cast<" + type.substr(0, name) +
                          "*>(::dais_emulation::dynamic_shared())";
    for (char& c : pointer)
      if (c == '\n') c = ' ';
    text.replace(at, end - at, pointer);
    code.replace(at, end - at, pointer);
    at += pointer.size();
  }
}

/// Whether `extern "C"` stands before a place.
bool has_linkage(const std::string& code, size_t at) {
  const size_t before = code.find_last_not_of(" \t\n\r", at == 0 ? 0 : at - 1);
  return before != std::string::npos && before + 1 >= kLinkage.size() &&
         code.compare(before + 1 - kLinkage.size(), kLinkage.size(), kLinkage) == 0;
}

/// A kernel's name and, as macro arguments, its launch bounds; `at` moves from behind __global__ to
/// its parameters. Empty: no function follows.
std::string kernel_arguments(const std::string& code, size_t& at) {
  std::string bounds = "()";
  for (;;) {
    const std::string name = token(code, at);
    at = skip_space(code, at);
    if (name.empty() || at >= code.size()) return {};
    if (name == "__launch_bounds__") {
      bounds = bracketed(code, at);
    } else if (code[at] == '(') {
      const std::string most = bounds.substr(1, bounds.size() - 2);
      return name + (most.empty() ? "" : ", " + most);
    }
  }
}

/// Exports each kernel behind its body: in the same line, and only where the text is compiled.
void export_kernels(std::string& text, std::string& code) {
  for (size_t at = 0; next_word(code, "__global__", at);) {
    const bool exported = has_linkage(code, at);
    at += 10;
    if (!exported) continue;
    const std::string arguments = kernel_arguments(code, at);
    if (arguments.empty()) return;
    bracketed(code, at);
    at = skip_space(code, at);
    if (at >= code.size() || code[at] != '{') continue;
    bracketed(code, at, '{', '}');
    const std::string line = " DAIS_KERNEL(" + arguments + ")";
    text.insert(at, line);
    code.insert(at, line);
    at += line.size();
  }
}

}  // namespace

std::string translate(const std::string& text) {
  std::string out = text, code = code_only(text);
  rewrite_dynamic_shared(out, code);
  export_kernels(out, code);
  return out;
}

}  // namespace dais::cuda::emulated
