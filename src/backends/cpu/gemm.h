#pragma once

#include <memory>

#include "backends/cpu/gemm_block.h"
#include "base/isa.h"

/// The engine's own f32 matrix product: cheap to call at any size, with what follows it (bias,
/// activation, residual) applied while a tile is in cache. Rows of products, attention and
/// recurrent layers share it.
namespace dais::cpu {

/// Aligned memory for packed weights, in large pages where the system gives them.
class PageMemory {
 public:
  explicit PageMemory(size_t bytes);  ///< throws Error(exhausted)
  ~PageMemory();
  PageMemory(const PageMemory&) = delete;
  PageMemory& operator=(const PageMemory&) = delete;
  void* data() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

/// Columns of one panel of packed B at a level.
int64_t gemm_panel_columns(Isa isa);
/// Floats that a packed B takes.
int64_t gemm_packed_floats(Isa isa, int64_t depth, int64_t columns);
/// Packs a matrix whose element (k, n) is at from[k * row + n * column]; on the pool.
void gemm_pack(Isa isa, const float* from, int64_t row, int64_t column, int64_t depth,
               int64_t columns, float* packed);
/// The same on the calling thread.
void gemm_pack_serial(Isa isa, const float* from, int64_t row, int64_t column, int64_t depth,
                      int64_t columns, float* packed);

/// Fills the fields of B for packed memory, or for a plain matrix with unit column stride.
void gemm_set_packed(Isa isa, GemmBlock& block, const float* packed);
void gemm_set_plain(Isa isa, GemmBlock& block, const float* b, int64_t row);

/// Runs the product on the pool. The split over threads depends on sizes and team only. Empty
/// products (depth 0) give the steps of zero.
void gemm(Isa isa, const GemmBlock& block);
/// The same with windows for rows of A; needs the tile unit.
void gemm_windows(const GemmBlock& block);
/// A product on the calling thread.
void gemm_serial(Isa isa, const GemmBlock& block);

}  // namespace dais::cpu
