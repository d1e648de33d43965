#pragma once

#include "backends/cpu/half_block.h"

namespace dais::cpu {

/// Runs products of bf16 numbers on the tile unit, one after the other, shared out among the pool
/// while they run; which thread takes what changes no bits. Needs Isa::amx. Subnormal numbers count
/// as zero, as the unit has it. Empty products are not taken: rows, columns and depth are positive.
void half_gemm(const HalfBlock& block);
/// The same on the calling thread.
void half_gemm_serial(const HalfBlock& block);

}  // namespace dais::cpu
