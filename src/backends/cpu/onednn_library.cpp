#include "backends/cpu/onednn_library.h"

#ifdef DAIS_ONEDNN

#include <dlfcn.h>

#include <numeric>

#include "backends/cpu/isa.h"
#include "base/error.h"
#include "base/threads.h"

namespace dais::onednn {
namespace {

/// Distributions name the library by its major number or by a minor one of the same ABI.
std::vector<std::string> file_names() {
  const std::string stem = "libdnnl.so." + std::to_string(DNNL_VERSION_MAJOR);
  std::vector<std::string> names{stem};
  for (int minor = DNNL_VERSION_MINOR; minor >= 0; --minor)
    names.push_back(stem + "." + std::to_string(minor));
  return names;
}

bool find_functions(void* handle, Library& out) {
  bool complete = true;
#define DAIS_ONEDNN_FIND(name)                                                   \
  out.name = reinterpret_cast<decltype(out.name)>(dlsym(handle, "dnnl_" #name)); \
  complete = complete && out.name != nullptr;
  DAIS_ONEDNN_FUNCTIONS(DAIS_ONEDNN_FIND)
  DAIS_ONEDNN_GENERATION(DAIS_ONEDNN_FIND)
#undef DAIS_ONEDNN_FIND
  return complete;
}

/// oneDNN detects the processor itself; only a cap set by the user is passed on.
void pass_cap(const Library& opened) {
  const auto cap = cpu::isa_cap();
  if (cap == Isa::avx2) opened.set_max_cpu_isa(dnnl_cpu_isa_avx2);
  if (cap == Isa::avx512) opened.set_max_cpu_isa(dnnl_cpu_isa_avx512_core_vnni);
}

Library open_library() {
  Library out;
  if (cpu::isa() == Isa::plain) {
    out.missing = "the oneDNN rows need AVX2, and this process is limited to plain x86-64";
    return out;
  }
  // Opens libgomp with the settings of the pool, before libdnnl would open it with its own.
  team_size();
  void* handle = nullptr;
  std::string file_name;
  for (const std::string& name : file_names()) {
    handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    file_name = name;
    break;
  }
  if (handle == nullptr) {
    out.missing = file_names().front() + " cannot be opened; install the package libdnnl-dev";
    return out;
  }
  if (!find_functions(handle, out)) {
    out.missing = file_name + " lacks functions of the version dais was built for";
    return out;
  }
  pass_cap(out);
  if (out.engine_create(&out.engine, dnnl_cpu, 0) != dnnl_success) {
    out.missing = file_name + " offers no CPU engine";
    return out;
  }
  const auto* number = out.version();
  out.version_text = std::to_string(number->major) + "." + std::to_string(number->minor) + "." +
                     std::to_string(number->patch);
  return out;
}

dnnl_data_type_t raw_type(Data data) {
  switch (data) {
    case Data::f32: return dnnl_f32;
    case Data::bf16: return dnnl_bf16;
    case Data::f16: return dnnl_f16;
    case Data::s32: return dnnl_s32;
    case Data::s8: return dnnl_s8;
    case Data::u8: return dnnl_u8;
  }
  return dnnl_data_type_undef;
}

#if DNNL_VERSION_MAJOR < 3
using Slot = dnnl_memory_desc_t;

std::shared_ptr<const dnnl_memory_desc_t> own(Slot made) {
  return std::make_shared<const dnnl_memory_desc_t>(made);
}
#else
using Slot = dnnl_memory_desc_t;

std::shared_ptr<dnnl_memory_desc> own(Slot made) {
  return {made, [](dnnl_memory_desc_t desc) { library().memory_desc_destroy(desc); }};
}
#endif

}  // namespace

const Library& library() {
  static const Library opened = open_library();
  return opened;
}

void check(dnnl_status_t status, const char* call) {
  if (status == dnnl_success) return;
  if (status == dnnl_out_of_memory)
    throw Error(Code::exhausted, "oneDNN ran out of memory", call, "Free memory or shrink sizes");
  throw Error(Code::internal, "oneDNN failed with status " + std::to_string(status), call);
}

MemoryDesc MemoryDesc::strided(const Dims& dims, Data data, const Dims& strides) {
  DAIS_CHECK(dims.size() == strides.size() && dims.size() <= DNNL_MAX_NDIMS);
  Slot made{};
  const int rank = static_cast<int>(dims.size());
#if DNNL_VERSION_MAJOR < 3
  const auto create = library().memory_desc_init_by_strides;
#else
  const auto create = library().memory_desc_create_with_strides;
#endif
  const dnnl_status_t status = create(&made, rank, dims.data(), raw_type(data), strides.data());
  MemoryDesc out;
  if (status == dnnl_invalid_arguments) return out;
  check(status, "dnnl_memory_desc with strides");
  out.desc_ = own(made);
  return out;
}

MemoryDesc MemoryDesc::dense(const Dims& dims, Data data) {
  std::vector<int> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  return strided(dims, data, strides_in_order(dims, order));
}

MemoryDesc MemoryDesc::any(const Dims& dims, Data data) {
  DAIS_CHECK(dims.size() <= DNNL_MAX_NDIMS);
  Slot made{};
  const int rank = static_cast<int>(dims.size());
#if DNNL_VERSION_MAJOR < 3
  const auto create = library().memory_desc_init_by_tag;
#else
  const auto create = library().memory_desc_create_with_tag;
#endif
  check(create(&made, rank, dims.data(), raw_type(data), dnnl_format_tag_any),
        "dnnl_memory_desc of any format");
  MemoryDesc out;
  out.desc_ = own(made);
  return out;
}

MemoryDesc MemoryDesc::copy(Raw raw) {
  MemoryDesc out;
#if DNNL_VERSION_MAJOR < 3
  out.desc_ = own(*raw);
#else
  Slot made{};
  check(library().memory_desc_clone(&made, raw), "dnnl_memory_desc_clone");
  out.desc_ = own(made);
#endif
  return out;
}

MemoryDesc::Raw MemoryDesc::raw() const { return desc_.get(); }

size_t MemoryDesc::bytes() const { return desc_ ? library().memory_desc_get_size(raw()) : 0; }

bool MemoryDesc::operator==(const MemoryDesc& other) const {
  if (!desc_ || !other.desc_) return !desc_ && !other.desc_;
  return library().memory_desc_equal(raw(), other.raw()) != 0;
}

Dims strides_in_order(const Dims& dims, const std::vector<int>& order) {
  Dims strides(dims.size());
  int64_t step = 1;
  for (size_t index = order.size(); index-- > 0;) {
    strides[order[index]] = step;
    step *= dims[order[index]];
  }
  return strides;
}

Memory make_memory(const MemoryDesc& desc) {
  dnnl_memory_t made = nullptr;
  check(library().memory_create(&made, desc.raw(), library().engine, DNNL_MEMORY_NONE),
        "dnnl_memory_create");
  return Memory(made);
}

Compiled make_reorder(const MemoryDesc& from, const MemoryDesc& to) {
  const Library& dnnl = library();
  dnnl_primitive_desc_t described = nullptr;
  check(dnnl.reorder_primitive_desc_create(&described, from.raw(), dnnl.engine, to.raw(),
                                           dnnl.engine, nullptr),
        "dnnl_reorder_primitive_desc_create");
  const PrimitiveDesc keep(described);
  dnnl_primitive_t made = nullptr;
  check(dnnl.primitive_create(&made, described), "dnnl_primitive_create");
  return Compiled(made);
}

Stream make_stream() {
  dnnl_stream_t made = nullptr;
  check(library().stream_create(&made, library().engine, dnnl_stream_default_flags),
        "dnnl_stream_create");
  return Stream(made);
}

}  // namespace dais::onednn

#endif
