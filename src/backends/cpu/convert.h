#pragma once

#include <cstdint>

#include "base/isa.h"

namespace dais::cpu {

/// The 16-bit float formats.
enum class Half : uint8_t { f16, bf16 };

/// Widens or rounds (to nearest, ties to even) `count` numbers, on the pool.
void widen(Isa isa, Half format, const uint16_t* from, float* to, int64_t count);
void narrow(Isa isa, Half format, const float* from, uint16_t* to, int64_t count);

}  // namespace dais::cpu
