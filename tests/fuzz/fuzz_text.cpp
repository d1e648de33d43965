#include "base/error.h"
#include "ir/text.h"

/// Any text either parses, and then its print parses again to the same print, or is refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto graph = dais::parse_graph(text);
    const std::string printed = dais::graph_text(*graph, dais::Contents::all);
    const std::string again = dais::graph_text(*dais::parse_graph(printed), dais::Contents::all);
    if (again != printed) __builtin_trap();
  } catch (const dais::Error& error) {
    if (error.code() == dais::Code::internal) __builtin_trap();
  }
  return 0;
}
