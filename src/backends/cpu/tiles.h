#pragma once

#include <immintrin.h>

#include <cstdint>

/// What users of the tile unit share. Only for _simd.cpp files at level 3.
namespace dais::DAIS_ISA {

/// Shapes of the eight tiles: rows of up to 64 bytes, up to 16 of them.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

/// The tile intrinsics do not tell the compiler which memory they touch: this goes between them and
/// whatever wrote what they read, or reads what they wrote.
inline void settle_memory() { __asm__ volatile("" ::: "memory"); }

/// GCC's own intrinsic says that it reads eight bytes, and what was written to the others may be
/// left out.
inline void load_config(const TileConfig& config) {
  settle_memory();
  __asm__ volatile("ldtilecfg %0" ::"m"(config));
}

/// All eight tiles whole: 16 rows of 64 bytes.
inline void configure_whole_tiles() {
  TileConfig config;
  for (int i = 0; i < 8; ++i) {
    config.row_bytes[i] = 64;
    config.rows[i] = 16;
  }
  load_config(config);
}

}  // namespace dais::DAIS_ISA
