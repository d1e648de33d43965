#pragma once

#include "base/isa.h"
#include "ops/transpose/moves_cpu.h"

namespace dais {

/// A copy over one iteration space, made ready for fixed sizes: long runs, repeated elements, and
/// blocks of a transposition. Elements are moved by size, never looked at.
class CopyPlan {
 public:
  /// Steps are in elements; those of `to` must be dense along the last axis that is longer than 1.
  CopyPlan(const Shape& space, size_t element_size, const Strides& from_steps,
           const Strides& to_steps, Isa isa);

  /// Starts in elements. Runs on the team's threads when there is enough to move.
  void run(const void* from, int64_t from_start, void* to, int64_t to_start) const noexcept;

 private:
  template <typename T>
  void run_as(const T* from, T* to) const;
  template <typename T>
  void run_rows(const T* from, T* to) const;
  template <typename T>
  void run_blocks(const T* from, T* to) const;
  void run_permuted(const uint32_t* from, uint32_t* to) const;

  size_t size_;
  Isa isa_;
  StridedLoop<2> rows_;  ///< of a transposition: its outer axes only, in rows of one element
  bool blocks_ = false;
  int64_t total_ = 0;
  /// A transposition: `last_` elements lie together in `to`, `other_` in `from`.
  int64_t last_ = 0, last_from_ = 0, other_ = 0, other_to_ = 0;
  /// The same permutation in every block of so many elements; empty where there is none.
  std::vector<int32_t> index_;
};

/// Copies that move one tensor's elements to a place in another.
struct PlannedCopy {
  size_t in = 0, out = 0;
  int64_t from = 0, to = 0;  ///< starts
  CopyPlan plan;
};

/// A kernel that is nothing but copies between its inputs and outputs.
class BoundCopies : public BoundKernel {
 public:
  explicit BoundCopies(std::vector<PlannedCopy> copies) : copies_(std::move(copies)) {}
  Fault run(const Arguments& arguments) noexcept override;

 private:
  std::vector<PlannedCopy> copies_;
};

/// A row that makes such a list of copies and nothing else.
class CopyKernel : public Kernel {
 public:
  CopyKernel(const KernelQuery& query, ListMoves list)
      : node_(query.node), isa_(query.isa), list_(list) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override;

 private:
  const Node& node_;
  Isa isa_;
  ListMoves list_;
};

/// `prepare` of a row around such a function.
template <ListMoves list>
std::unique_ptr<Kernel> copies(const KernelQuery& query) {
  return std::make_unique<CopyKernel>(query, list);
}

}  // namespace dais
