#pragma once

#include <string_view>

namespace dais {

/// Instruction-set levels that kernels are compiled for, in rising order; each includes the ones
/// before it. `avx2` means AVX2, FMA and F16C; `avx512` means F, CD, BW, DQ, VL and VNNI; `amx`
/// adds AVX512_BF16 and the AMX tile, int8 and bf16 units. `plain` is the x86-64 baseline.
enum class Isa { plain, avx2, avx512, amx };

constexpr std::string_view isa_name(Isa isa) {
  constexpr std::string_view names[] = {"plain", "avx2", "avx512", "amx"};
  return names[static_cast<int>(isa)];
}

}  // namespace dais
