#pragma once

#include <cstdint>

#include "base/isa.h"
#include "ops/elementwise/scalar.h"

namespace dais {

/// The element types in which tiles are computed: f32 also for f16 and bf16, i64 for all integers,
/// u8 (0 or 1) for booleans.
enum class Lane : uint8_t { f32, f64, i64, u8 };
inline constexpr int kLanes = 4;

/// One pass over a tile of n elements: operands in order, the result, parameters of the function.
/// The result may be an operand's own memory when both are of the same size.
using TileLoop = void (*)(const void* const* in, void* out, int64_t n, const double* parameters);

/// Memory types that lanes are read from and written to; not lanes themselves.
enum class Narrow : uint8_t { f16, bf16, i32, i16, i8, u32, u16, u8 };
inline constexpr int kNarrows = 8;

/// Loops of one instruction set.
struct TileLoops {
  /// The loop of a function whose operands are of this lane; bit k of `repeats` says that operand k
  /// is one element that repeats. Null where there is none. `where` takes a u8 condition first.
  TileLoop (*function)(Scalar function, Lane lane, unsigned repeats);
  /// Conversion between lanes; from floats to integers with saturation to parameters {low, high}.
  TileLoop convert[kLanes][kLanes];
  TileLoop load[kNarrows];   ///< memory to lane
  TileLoop store[kNarrows];  ///< lane to memory; integers wrap, floats round to nearest
  TileLoop wrap[kNarrows];   ///< i64 cut to the width of an integer type, in place of a store
};

const TileLoops& tile_loops(Isa isa);

}  // namespace dais
