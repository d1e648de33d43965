#pragma once

namespace dais {

/// How far products of f32 may round their inputs for speed: not at all, to TF32 (10 bits of
/// mantissa), to bf16 (7 bits). Sums are f32 always.
enum class MatmulPrecision { highest, high, medium };

}  // namespace dais
