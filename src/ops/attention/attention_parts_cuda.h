#pragma once

#include <cstdint>

#include "backends/cuda/row.h"

namespace dais {

// The host's side of attention.cu, shared by the operators that run on it.

/// The kernels by name, as attention_kernels() lists them.
enum class AttentionPart : size_t { rows, append, rotate, set_ends, tiles };

/// As in attention.cu.
struct AttentionRows {
  int64_t example = 0, head = 0, row = 0;
};
struct AttentionProblem {
  AttentionRows q, k, v, y;
  int64_t mask_example = 0, mask_head = 0, mask_row = 0, mask_key = 0;
  int queries = 0, keys = 0, heads = 0, group = 1;
  int mask_keys = 0;
  int causal_offset = 0, window = -1, causal = 0;
  float scale = 1, softcap = 0;
  const void* ends = nullptr;
};
static_assert(sizeof(AttentionProblem) == 4 * 24 + 32 + 8 * 4 + 8 + 8);
struct AttentionCache {
  AttentionRows rows;
  int heads = 0, length = 0, past = 0, past_capacity = 0, capacity = 0, half = 0, interleaved = 0;
};

/// What the text is compiled with for heads of that size, and its kernels: `cached` adds those of
/// caches (`index`: the type of lengths), `tiles` that of the matrix instruction.
struct AttentionText {
  std::vector<std::string> options;
  std::vector<const char*> kernels;
};
AttentionText attention_text(DType element, int64_t head, bool cached, DType index, bool tiles);

/// Makes a kernel of it.
std::unique_ptr<Kernel> make_attention(const KernelQuery& query, AttentionText text,
                                       void (*run)(const cuda::RowCall&) noexcept,
                                       size_t (*scratch_bytes)(const Node&, const Sizes&),
                                       bool (*takes)(const Node&, const Sizes&));

/// Whether the device has the matrix instruction for these elements and heads.
Verdict accepts_attention_tiles(const KernelQuery& query, int64_t head);

/// Launches the attention itself.
void launch_attention(const cuda::RowCall& call, const AttentionProblem& problem, int64_t examples,
                      bool tiles, const void* q, const void* k, const void* v, const void* added,
                      const void* seen) noexcept;

/// Launches the kernel that joins what a cache held (null: nothing) and new tokens.
void launch_append(const cuda::RowCall& call, const AttentionCache& cache, int64_t elements,
                   const void* before, const void* fresh, void* to, const void* cosines,
                   const void* sines, const void* ends) noexcept;

}  // namespace dais
