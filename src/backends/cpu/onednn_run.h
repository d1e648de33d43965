#pragma once

#include "backends/cpu/onednn_library.h"

#ifdef DAIS_ONEDNN

#include "base/threads.h"

/// What the files share that create and run primitives.
namespace dais::onednn {

inline constexpr size_t alignment = 64;
inline size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

inline bool set_data(const Memory& memory, const void* data) noexcept {
  return library().memory_set_data_handle(memory.get(), const_cast<void*>(data)) == dnnl_success;
}

/// Runs oneDNN on a team of the size its primitive was built for: many implementations divide
/// scratch memory by it.
class TeamScope {
 public:
  explicit TeamScope(int wanted) : before_(team_size()), wanted_(wanted) {
    if (before_ != wanted_) set_team_size(wanted_);
  }
  ~TeamScope() {
    if (before_ != wanted_) set_team_size(before_);
  }
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  int before_, wanted_;
};

inline std::string implementation_of(const PrimitiveDesc& described) {
  const char* text = nullptr;
  check(library().primitive_desc_query(described.get(), dnnl_query_impl_info_str, 0, &text),
        "dnnl_primitive_desc_query");
  return text;
}

inline MemoryDesc query(const PrimitiveDesc& described, dnnl_query_t what) {
  const auto raw = library().primitive_desc_query_md(described.get(), what, 0);
  return raw ? MemoryDesc::copy(raw) : MemoryDesc();
}

inline bool copy(const Compiled& reorder, const Stream& stream, dnnl_memory_t from,
                 dnnl_memory_t to) {
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  return library().primitive_execute(reorder.get(), stream.get(), 2, arguments) == dnnl_success;
}

}  // namespace dais::onednn

#endif
