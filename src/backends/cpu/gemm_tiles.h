#pragma once

#include "backends/cpu/gemm_block.h"

namespace dais::cpu {

/// Runs a product with packed B on the tile unit, shared out among `threads` of the pool while it
/// runs: a core that is busy with somebody else's work takes less. Which thread takes what changes
/// no bits. False, with c in any state: the operands hold infinities or NaN.
bool gemm_on_tiles(const GemmBlock& block, int64_t threads);

/// Memory of the calling thread that no product holds between its calls, kTileMemory floats.
float* gemm_tiles_memory();
constexpr int64_t kTileMemory = kTileHeld * 3 / 2;

}  // namespace dais::cpu
