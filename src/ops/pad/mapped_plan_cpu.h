#pragma once

#include <vector>

#include "ops/pad/mapped_copy.h"

namespace dais {

/// copy_mapped made ready for fixed sizes: whole blocks where inner axes stay as they are, runs
/// along the innermost axis that does not, and rows that repeat the one before copied from it.
class MappedPlan {
 public:
  /// Elements of 1, 2, 4 or 8 bytes.
  MappedPlan(const Shape& from, IndexMaps maps, size_t element_size);

  /// `fill`: one element, or nullptr for zero bits.
  void run(const void* from, const void* fill, void* to) const noexcept;

 private:
  /// `count` blocks from block `from` of the source's row on (-1: filled).
  struct Piece {
    int64_t from, count;
  };
  template <typename T>
  void run_as(const T* from, T fill, T* to) const;
  template <typename T>
  void run_row(const T* from, T fill, T* to) const;
  void cut_row(const std::vector<int64_t>& map);

  size_t size_;
  int64_t block_ = 1;           ///< elements that stay together
  int64_t rows_ = 1, row_ = 0;  ///< rows of the result, elements of one
  std::vector<Piece> pieces_;   ///< of a row, when runs are long
  std::vector<int64_t> index_;  ///< of a row, otherwise
  IndexMaps outer_;             ///< element offsets by axis; -1 stays
};

}  // namespace dais
