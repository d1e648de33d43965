#pragma once

#include "backends/cpu/onednn.h"

// libgomp, which libdnnl runs on, is not built for ThreadSanitizer: that build has no oneDNN.
#if __has_include(<oneapi/dnnl/dnnl.h>) && !defined(DAIS_STD_THREADS)
#define DAIS_ONEDNN 1

#include <oneapi/dnnl/dnnl.h>

#include <memory>

/// The C functions of libdnnl found at run time, and types that look the same for both of its
/// generations. Only the onednn_*.cpp files include this.
namespace dais::onednn {

/// The generation of the headers decides which libdnnl is opened, as the two differ in ABI.
inline constexpr bool second_generation = DNNL_VERSION_MAJOR < 3;

// clang-format off
#define DAIS_ONEDNN_FUNCTIONS(X) \
  X(version) X(set_max_cpu_isa) X(engine_create) X(engine_destroy) X(stream_create) \
  X(stream_destroy) X(memory_create) X(memory_destroy) X(memory_set_data_handle) \
  X(memory_desc_get_size) X(memory_desc_equal) X(primitive_create) X(primitive_destroy) \
  X(primitive_execute) X(primitive_desc_destroy) X(primitive_desc_query) \
  X(primitive_desc_query_md) X(primitive_attr_create) X(primitive_attr_destroy) \
  X(primitive_attr_set_scratchpad_mode) X(primitive_attr_set_post_ops) X(post_ops_create) \
  X(post_ops_destroy) X(post_ops_append_eltwise) X(post_ops_append_sum) \
  X(post_ops_append_binary) X(reorder_primitive_desc_create)

#if DNNL_VERSION_MAJOR < 3
#define DAIS_ONEDNN_GENERATION(X) \
  X(memory_desc_init_by_strides) X(memory_desc_init_by_tag) X(primitive_desc_create) \
  X(dilated_convolution_forward_desc_init) X(dilated_deconvolution_forward_desc_init) \
  X(dilated_convolution_backward_weights_desc_init) \
  X(matmul_desc_init) X(primitive_attr_set_output_scales) X(primitive_attr_set_zero_points)
#else
#define DAIS_ONEDNN_GENERATION(X) \
  X(memory_desc_create_with_strides) X(memory_desc_create_with_tag) X(memory_desc_clone) \
  X(memory_desc_destroy) X(convolution_forward_primitive_desc_create) \
  X(convolution_backward_weights_primitive_desc_create) \
  X(deconvolution_forward_primitive_desc_create) X(matmul_primitive_desc_create) \
  X(primitive_attr_set_zero_points_mask)
#endif
// clang-format on

struct Library {
#define DAIS_ONEDNN_FIELD(name) decltype(&::dnnl_##name) name = nullptr;
  DAIS_ONEDNN_FUNCTIONS(DAIS_ONEDNN_FIELD)
  DAIS_ONEDNN_GENERATION(DAIS_ONEDNN_FIELD)
#undef DAIS_ONEDNN_FIELD
  dnnl_engine_t engine = nullptr;
  std::string missing;  ///< why the library is unusable; the functions are then null
  std::string version_text;
};

/// Opened at the first call and never closed.
const Library& library();

/// Throws unless the call succeeded: exhausted for memory, internal otherwise.
void check(dnnl_status_t status, const char* call);

/// Owns one oneDNN object; `destroy` is its function in the table.
template <typename T, auto destroy>
struct Destroy {
  void operator()(T* object) const { (library().*destroy)(object); }
};
using Memory = std::unique_ptr<dnnl_memory, Destroy<dnnl_memory, &Library::memory_destroy>>;
using Stream = std::unique_ptr<dnnl_stream, Destroy<dnnl_stream, &Library::stream_destroy>>;
using Attr = std::unique_ptr<dnnl_primitive_attr,
                             Destroy<dnnl_primitive_attr, &Library::primitive_attr_destroy>>;
using PostOps = std::unique_ptr<dnnl_post_ops, Destroy<dnnl_post_ops, &Library::post_ops_destroy>>;
using PrimitiveDesc =
    std::unique_ptr<dnnl_primitive_desc,
                    Destroy<dnnl_primitive_desc, &Library::primitive_desc_destroy>>;
using Compiled =
    std::unique_ptr<dnnl_primitive, Destroy<dnnl_primitive, &Library::primitive_destroy>>;

using Dims = std::vector<int64_t>;

/// A tensor's dims, type and memory format.
class MemoryDesc {
 public:
#if DNNL_VERSION_MAJOR < 3
  using Raw = const dnnl_memory_desc_t*;
#else
  using Raw = const_dnnl_memory_desc_t;
#endif
  MemoryDesc() = default;  ///< no tensor
  /// Gives no tensor when oneDNN does not take such strides (zero, or overlapping elements).
  static MemoryDesc strided(const Dims& dims, Data data, const Dims& strides);
  static MemoryDesc dense(const Dims& dims, Data data);  ///< row-major
  static MemoryDesc any(const Dims& dims, Data data);    ///< oneDNN chooses the format
  static MemoryDesc copy(Raw raw);

  explicit operator bool() const { return desc_ != nullptr; }
  /// For calls that take a null pointer as "no tensor".
  Raw raw() const;
  size_t bytes() const;
  bool operator==(const MemoryDesc& other) const;

 private:
#if DNNL_VERSION_MAJOR < 3
  std::shared_ptr<const dnnl_memory_desc_t> desc_;
#else
  std::shared_ptr<dnnl_memory_desc> desc_;
#endif
};

/// Strides of dense memory whose dims lie in the given order, outermost first.
Dims strides_in_order(const Dims& dims, const std::vector<int>& order);

/// A memory object without a buffer.
Memory make_memory(const MemoryDesc& desc);

/// Creates the primitive that copies `from` into `to`.
Compiled make_reorder(const MemoryDesc& from, const MemoryDesc& to);

Stream make_stream();

}  // namespace dais::onednn

#endif
