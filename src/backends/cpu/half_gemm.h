#pragma once

#include "backends/cpu/half_block.h"

namespace dais::cpu {

/// Runs products of bf16 numbers on the tile unit, one after the other, shared out among the pool
/// while they run; which thread takes what changes no bits. Needs Isa::amx. Subnormal numbers count
/// as zero, as the unit has it. Empty products are not taken: rows, columns and depth are positive.
void half_gemm(const HalfBlock& block);
/// The same on the calling thread.
void half_gemm_serial(const HalfBlock& block);

/// For products of few rows, one after the other with the same B: numbers that B takes in tiles,
/// bringing it there, and a product on the calling thread. Lines of A run along the depth, which is
/// at most kHalfMostDepth; `block.b` is not read.
int64_t half_packed_numbers(int64_t depth, int64_t columns);
void half_pack(const HalfFactor& b, int64_t depth, int64_t columns, uint16_t* packed);
void half_gemm_packed(const HalfBlock& block, const uint16_t* packed);

}  // namespace dais::cpu
