#include "backends/cpu/half_gemm.h"

#include <algorithm>
#include <atomic>

#include "backends/cpu/gemm.h"
#include "base/threads.h"

namespace dais {

namespace amx {
int64_t half_gemm_scratch();
void half_gemm_begin();
void half_gemm_end();
void half_gemm_part(const cpu::HalfBlock&, const cpu::HalfPart&, bool, void*);
void half_pack(const cpu::HalfFactor&, int64_t, int64_t, int64_t, int64_t, uint16_t*);
void half_gemm_packed(const cpu::HalfBlock&, const uint16_t*, void*);
}  // namespace amx

namespace cpu {
namespace {

constexpr int64_t kSquare = 32;

int64_t up(int64_t count, int64_t to) { return (count + to - 1) / to; }

/// The product in parts of rows and columns, all rows of the same columns in a row.
class Parts {
 public:
  Parts(const HalfBlock& block, int64_t threads) : block_(block) {
    const int64_t rows = up(block.rows, kSquare), columns = up(block.columns, kSquare);
    across_ = up(columns, kHalfColumns / kSquare);
    down_ = up(rows, kHalfRows / kSquare);
    // Sums of a part have their bound as well.
    const auto wide = [&] { return up(columns, across_) * kSquare; };
    const auto high = [&] { return up(rows, down_) * kSquare; };
    while (wide() * high() > kHalfSums) {
      int64_t& grows = wide() > high() ? across_ : down_;
      ++grows;
    }
    // A part for each thread; columns first, as what is brought into tiles is then used most.
    if (across_ * down_ < threads) {
      if (columns >= rows)
        across_ = std::min(columns, threads);
      else
        down_ = std::min(rows, threads);
    }
    rows_ = rows;
    columns_ = columns;
  }

  int64_t count() const { return across_ * down_; }
  int64_t column_of(int64_t part) const { return part / down_; }
  HalfPart at(int64_t part) const {
    const int64_t i = part % down_, j = part / down_;
    return {.m0 = rows_ * i / down_ * kSquare,
            .m1 = std::min(rows_ * (i + 1) / down_ * kSquare, block_.rows),
            .n0 = columns_ * j / across_ * kSquare,
            .n1 = std::min(columns_ * (j + 1) / across_ * kSquare, block_.columns)};
  }

 private:
  const HalfBlock& block_;
  int64_t rows_, columns_, across_, down_;
};

void* thread_memory() {
  thread_local const PageMemory memory(static_cast<size_t>(amx::half_gemm_scratch()));
  return memory.data();
}

void run(const HalfBlock& block, int64_t threads) {
  const Parts parts(block, threads);
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    void* memory = thread_memory();
    int64_t held = -1;
    amx::half_gemm_begin();
    for (;;) {
      const int64_t part = next.fetch_add(1);
      if (part >= parts.count()) break;
      const HalfPart piece = parts.at(part);
      const bool same = held == parts.column_of(part) && half_holds(piece, block.depth);
      amx::half_gemm_part(block, piece, same, memory);
      held = parts.column_of(part);
    }
    amx::half_gemm_end();
  };
  parallel_for(std::min(threads, parts.count()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) work();
  });
}

}  // namespace

void half_gemm(const HalfBlock& block) {
  const double work = 2.0 * static_cast<double>(block.rows) * static_cast<double>(block.columns) *
                      static_cast<double>(block.depth);
  const auto useful = static_cast<int64_t>(std::max(work / 4e6, 1.0));
  run(block, std::min<int64_t>(team_size(), useful));
}

void half_gemm_serial(const HalfBlock& block) { run(block, 1); }

int64_t half_packed_numbers(int64_t depth, int64_t columns) {
  return up(depth, kSquare) * kSquare * up(columns, kSquare) * kSquare;
}

void half_pack(const HalfFactor& b, int64_t depth, int64_t columns, uint16_t* packed) {
  parallel_for(up(columns, kSquare), 1, [&](int64_t first, int64_t last) {
    amx::half_pack(b, depth, columns, first * kSquare, std::min(last * kSquare, columns), packed);
  });
}

void half_gemm_packed(const HalfBlock& block, const uint16_t* packed) {
  void* memory = thread_memory();
  amx::half_gemm_begin();
  amx::half_gemm_packed(block, packed, memory);
  amx::half_gemm_end();
}

}  // namespace cpu
}  // namespace dais
