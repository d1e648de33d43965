#include "ops/transpose/copy_plan_cpu.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "base/threads.h"
#include "ops/conv/conv_loops.h"

namespace dais {

#define DAIS_PERMUTE(isa)                                                            \
  namespace isa {                                                                    \
  void permute_blocks(const uint32_t*, uint32_t*, const int32_t*, int64_t, int64_t); \
  bool interleave(const uint32_t*, int64_t, int64_t, uint32_t*, int64_t);            \
  }
DAIS_PERMUTE(plain)
DAIS_PERMUTE(avx2)
DAIS_PERMUTE(avx512)
#undef DAIS_PERMUTE

namespace {

/// Bytes that are worth waking another thread for.
constexpr int64_t kParallelBytes = 128 * 1024;
/// Columns of one block of a transposition.
constexpr int64_t kColumns = 64;

struct Axis {
  int64_t size, to, from;
};

/// Axes longer than 1, neighbours merged where both sides walk them evenly.
std::vector<Axis> merged(const Shape& space, const Strides& from, const Strides& to) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < space.rank(); ++i) {
    if (space[i] == 1) continue;
    if (!axes.empty() && axes.back().to == to[i] * space[i] &&
        axes.back().from == from[i] * space[i]) {
      axes.back() = {axes.back().size * space[i], to[i], from[i]};
    } else {
      axes.push_back({space[i], to[i], from[i]});
    }
  }
  return axes;
}

StridedLoop<2> loop_over(const std::vector<Axis>& axes) {
  Shape shape;
  Strides to{}, from{};
  for (size_t i = 0; i < axes.size(); ++i) {
    shape.push_back(axes[i].size);
    to[i] = axes[i].to;
    from[i] = axes[i].from;
  }
  return StridedLoop<2>(shape, {to, from});
}

/// From where each element of a block comes, when the outermost axis walks whole blocks on both
/// sides and everything inside stays within one; empty otherwise.
std::vector<int32_t> block_permutation(const std::vector<Axis>& axes) {
  constexpr int64_t kLargestBlock = 4096;
  if (axes.size() < 2) return {};
  int64_t period = 1;
  for (size_t i = axes.size(); i-- > 1;) {
    if (axes[i].to != period) return {};
    period *= axes[i].size;
  }
  if (period > kLargestBlock || axes[0].to != period || axes[0].from != period) return {};
  std::vector<int32_t> index;
  for (int64_t i = 0; i < period; ++i) {
    int64_t from = 0;
    for (size_t k = 1; k < axes.size(); ++k) from += i / axes[k].to % axes[k].size * axes[k].from;
    if (from < 0 || from >= period) return {};
    index.push_back(static_cast<int32_t>(from));
  }
  return index;
}

bool interleaved(Isa isa, const uint32_t* from, int64_t stride, int64_t count, uint32_t* to,
                 int64_t n) {
  if (isa >= Isa::avx512) return avx512::interleave(from, stride, count, to, n);
  return isa == Isa::avx2 ? avx2::interleave(from, stride, count, to, n)
                          : plain::interleave(from, stride, count, to, n);
}

template <typename T>
void transpose_block(const T* from, int64_t rows, int64_t columns, int64_t from_stride, T* to,
                     int64_t to_stride) {
  constexpr int64_t kRows = 16;
  for (int64_t first = 0; first < rows; first += kRows) {
    const int64_t last = std::min(rows, first + kRows);
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t r = first; r < last; ++r) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

}  // namespace

CopyPlan::CopyPlan(const Shape& space, size_t element_size, const Strides& from_steps,
                   const Strides& to_steps, Isa isa)
    : size_(element_size), isa_(isa), rows_(Shape{}, {Strides{}, Strides{}}) {
  total_ = space.elements();
  auto axes = merged(space, from_steps, to_steps);
  const bool turned = axes.size() > 1 && axes.back().to == 1 && axes.back().from > 1;
  const auto other = turned ? std::find_if(axes.begin(), axes.end(),
                                           [](const Axis& axis) { return axis.from == 1; })
                            : axes.end();
  // Narrower than the blocks of a transposition: gathers do better.
  constexpr int64_t kNarrow = 8;
  if (other != axes.end() && size_ == 4 && std::min(other->size, axes.back().size) < kNarrow)
    index_ = block_permutation(axes);
  if (other != axes.end() && index_.empty()) {
    blocks_ = true;
    last_ = axes.back().size;
    last_from_ = axes.back().from;
    other_ = other->size;
    other_to_ = other->to;
    axes.pop_back();
    axes.erase(other);
    // One element per row: the outer axes stay separate from the blocks.
    axes.push_back({1, 0, 0});
  }
  rows_ = loop_over(axes);
}

template <typename T>
void CopyPlan::run_rows(const T* from, T* to) const {
  const int64_t n = rows_.size(), to_step = rows_.step(0), from_step = rows_.step(1);
  const auto bytes = static_cast<int64_t>(sizeof(T));
  const int64_t rows = rows_.count_rows();
  if (rows == 1 && to_step == 1 && from_step == 1) {
    parallel_for(n, kParallelBytes / bytes, [&](int64_t first, int64_t last) {
      std::memcpy(to + first, from + first, static_cast<size_t>(last - first) * sizeof(T));
    });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kParallelBytes / std::max<int64_t>(1, n * bytes));
  parallel_for(rows, grain, [&](int64_t first, int64_t last) {
    rows_.rows(first, last, [&](const std::array<int64_t, 2>& at) {
      T* t = to + at[0];
      const T* s = from + at[1];
      if (to_step == 1 && from_step == 1 && n > 16)
        std::memcpy(t, s, static_cast<size_t>(n) * sizeof(T));
      else if (to_step == 1 && from_step == 0)
        std::fill_n(t, n, *s);
      else
        for (int64_t i = 0; i < n; ++i) t[i * to_step] = s[i * from_step];
    });
  });
}

/// Work is cut into columns of each outer position; a unit is one such piece.
template <typename T>
void CopyPlan::run_blocks(const T* from, T* to) const {
  const int64_t wide = last_ < 8 ? 16 * kColumns : kColumns;
  const int64_t pieces = (other_ + wide - 1) / wide;
  const int64_t units = total_ / (last_ * other_) * pieces;
  const int64_t unit_bytes = last_ * std::min(other_, wide) * static_cast<int64_t>(sizeof(T));
  const int64_t grain = std::max<int64_t>(1, kParallelBytes / std::max<int64_t>(1, unit_bytes));
  const auto transpose = conv_loops(isa_).transpose;
  // Outer positions are the elements of rows_, in order: StridedLoop walks rows of its last axis.
  const int64_t n = rows_.size();
  parallel_for(units, grain, [&](int64_t first, int64_t last) {
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t outer = unit / pieces, column = unit % pieces * wide;
      const int64_t columns = std::min(wide, other_ - column);
      rows_.rows(outer / n, outer / n + 1, [&](const std::array<int64_t, 2>& at) {
        const T* s = from + at[1] + outer % n * rows_.step(1) + column;
        T* t = to + at[0] + outer % n * rows_.step(0) + column * other_to_;
        if constexpr (sizeof(T) == 4) {
          if (other_to_ == last_ && interleaved(isa_, s, last_from_, last_, t, columns)) return;
          transpose(reinterpret_cast<const float*>(s), last_, columns, last_from_,
                    reinterpret_cast<float*>(t), other_to_);
        } else {
          transpose_block(s, last_, columns, last_from_, t, other_to_);
        }
      });
    }
  });
}

void CopyPlan::run_permuted(const uint32_t* from, uint32_t* to) const {
  const auto permute = isa_ >= Isa::avx512 ? avx512::permute_blocks
                       : isa_ == Isa::avx2 ? avx2::permute_blocks
                                           : plain::permute_blocks;
  const auto period = static_cast<int64_t>(index_.size());
  parallel_for(total_ / period, std::max<int64_t>(1, kParallelBytes / 8 / period),
               [&](int64_t first, int64_t last) {
                 permute(from + first * period, to + first * period, index_.data(), period,
                         last - first);
               });
}

template <typename T>
void CopyPlan::run_as(const T* from, T* to) const {
  if constexpr (sizeof(T) == 4)
    if (!index_.empty()) return run_permuted(from, to);
  if (blocks_)
    run_blocks(from, to);
  else
    run_rows(from, to);
}

void CopyPlan::run(const void* from, int64_t from_start, void* to,
                   int64_t to_start) const noexcept {
  if (total_ == 0) return;
  const auto go = [&]<typename T>() {
    run_as(static_cast<const T*>(from) + from_start, static_cast<T*>(to) + to_start);
  };
  switch (size_) {
    case 1: return go.template operator()<uint8_t>();
    case 2: return go.template operator()<uint16_t>();
    case 4: return go.template operator()<uint32_t>();
    case 8: return go.template operator()<uint64_t>();
    default: return go.template operator()<std::complex<double>>();
  }
}

std::unique_ptr<BoundKernel> CopyKernel::bind(const Sizes& sizes) const {
  const auto moves = list_(node_, sizes.in, sizes.out);
  if (!moves) return nullptr;
  const size_t size = dtype_size(node_.in[0]->type.dtype);
  std::vector<PlannedCopy> planned;
  for (const Move& move : *moves)
    planned.push_back({.in = move.in,
                       .out = move.out,
                       .from = move.from,
                       .to = move.to,
                       .plan = CopyPlan(move.space, size, move.from_steps, move.to_steps, isa_)});
  return std::make_unique<BoundCopies>(std::move(planned));
}

Fault BoundCopies::run(const Arguments& arguments) noexcept {
  for (const PlannedCopy& copy : copies_)
    copy.plan.run(arguments.in[copy.in], copy.from, arguments.out[copy.out], copy.to);
  return {};
}

}  // namespace dais
