#pragma once

#include "backends/cuda/launch.h"

namespace dais::cuda {

/// One run of a row: what a CPU row gets, and the row's kernels in the order of their names.
struct RowCall {
  const Node& node;
  const Sizes& sizes;
  const Arguments& arguments;
  std::span<const Function> kernels;

  template <typename T = void>
  const T* in(size_t i) const {
    return i < arguments.in.size() ? static_cast<const T*>(arguments.in[i]) : nullptr;
  }
  template <typename T = void>
  T* out(size_t i = 0) const {
    return i < arguments.out.size() ? static_cast<T*>(arguments.out[i]) : nullptr;
  }
  CudaQueue& queue() const { return *static_cast<CudaQueue*>(arguments.queue); }
  /// Parameters must be of exactly the types that the kernel declares.
  template <typename... Parameters>
  void launch(size_t kernel, const Grid& grid, Parameters... parameters) const noexcept {
    cuda::launch(arguments, kernels[kernel], grid, parameters...);
  }
};

/// A row that launches kernels of one embedded text. Sizes are uint32_t on the device: tensors of
/// 2^31 elements or more do not bind.
struct TextRow {
  std::string_view text;             ///< "softmax.cu"
  std::vector<std::string> options;  ///< what the text is compiled with
  std::vector<const char*> kernels;  ///< by name
  void (*run)(const RowCall&) noexcept;
  /// Null: none.
  size_t (*scratch_bytes)(const Node&, const Sizes&) = nullptr;
  /// Null: all sizes are taken.
  bool (*takes)(const Node&, const Sizes&) = nullptr;
};

/// The kernel of a row for the query's node and device.
std::unique_ptr<Kernel> make_text_kernel(const KernelQuery& query, const TextRow& row);

/// "float", "f16" or "bf16" as in number.cuh; null: such texts do not have it.
const char* float_name(DType dtype);
/// "-DELEMENT=float" for the element type of input 0, which must be one of those.
std::string element_option(DType dtype);
/// Whether an input's element type is one of those, else why not.
Verdict accepts_floats(const KernelQuery& query, size_t input = 0);
/// "-DWORD=uint32": an unsigned type of so many bytes (1, 2, 4, 8 or 16).
std::string word_option(size_t bytes);

inline uint32_t size32(int64_t size) { return static_cast<uint32_t>(size); }
/// A one-dimensional grid for each_element.
Grid grid_of(int64_t elements);
/// A text whose kernel 0 walks a line of neighbours with a block (in, out, size) and whose kernel 1
/// walks lines across with a thread each (in, out, outer, size, inner): launches the one that fits.
void launch_lines(const RowCall& call, int64_t outer, int64_t size, int64_t inner) noexcept;
/// Threads of a block that walks rows of so many elements: 32 to `most`, a multiple of 32.
unsigned row_threads(int64_t elements, unsigned most = 256);

}  // namespace dais::cuda
