// 8-bit matrix product. B is packed in panels of 16 columns with 4 numbers of the depth side by
// side, which is what both tile and dot-product instructions read. A block of sums is computed into
// a small buffer and finished from there. Without dot products of bytes (AVX2) operands are widened
// to 16 bits, so that sums stay exact.

#include "backends/cpu/byte_store.h"

#if DAIS_ISA_LEVEL >= 3
#include "backends/cpu/tiles.h"
#endif

namespace dais::DAIS_ISA {
namespace {

using cpu::ByteGemm;

constexpr int64_t kPanel = cpu::kBytePanel;
constexpr int64_t kStride = 2 * kPanel;  // of the buffer of sums
constexpr int64_t kTileRows = 32;
constexpr int64_t kLocalRows = 128;
constexpr int64_t kLocalDepth = 512;
[[maybe_unused]] constexpr int64_t kHeldPanels = 8, kHeldDepth = 256;

/// Numbers of A that a block reads, from depth `first` to `last` (multiples of 4, or the end).
struct Stretch {
  const uint8_t* a;  // of the first row, at depth 0
  int64_t a_row;
  const uint8_t* held;  // or null: the same from `first` on as tiles, one step after the other
  int64_t held_strip;   // from 16 rows to the next of these
  const int8_t *left, *right;  // panels at depth 0; right may be null
  const int32_t* sums;         // of the columns of `left`
  int64_t first, last;
};

inline uint32_t four(const uint8_t* from, int64_t count) {
  uint32_t out = 0;
  if (count >= 4) {
    __builtin_memcpy(&out, from, 4);
  } else {
    for (int64_t i = 0; i < count; ++i) out |= static_cast<uint32_t>(from[i]) << (8 * i);
  }
  return out;
}

#if DAIS_ISA_LEVEL >= 2

constexpr int64_t kDotRows = 12;

/// Sums of `rows` rows into `buffer`, which is added to unless first is 0.
template <int rows, bool two>
void dot_rows(const ByteGemm& g, const Stretch& s, int32_t* buffer) {
  constexpr int sets = rows <= 4 ? 2 : 1;
  __m512i left[sets][rows], right[sets][rows];
  const __m512i flip = _mm512_set1_epi32(g.a_signed ? static_cast<int>(0x80808080u) : 0);
  const __m512i shift = _mm512_set1_epi32(g.a_signed && s.first == 0 ? -128 : 0);
  for (int r = 0; r < rows; ++r) {
    __m512i from_left = _mm512_mullo_epi32(shift, _mm512_loadu_si512(s.sums));
    __m512i from_right =
        two ? _mm512_mullo_epi32(shift, _mm512_loadu_si512(s.sums + kPanel)) : __m512i{};
    if (s.first > 0) {
      from_left = _mm512_loadu_si512(buffer + r * kStride);
      from_right = _mm512_loadu_si512(buffer + r * kStride + kPanel);
    }
    left[0][r] = from_left;
    right[0][r] = from_right;
    for (int set = 1; set < sets; ++set) left[set][r] = right[set][r] = _mm512_setzero_si512();
  }
  const auto group = [&](int64_t k, int set, int64_t count) {
    const __m512i b0 = _mm512_loadu_si512(s.left + k * kPanel);
    const __m512i b1 = two ? _mm512_loadu_si512(s.right + k * kPanel) : __m512i{};
    if constexpr (rows <= 8) {
      _mm_prefetch(reinterpret_cast<const char*>(s.left + k * kPanel + 2048), _MM_HINT_T0);
      if (two)
        _mm_prefetch(reinterpret_cast<const char*>(s.right + k * kPanel + 2048), _MM_HINT_T0);
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      const uint32_t bytes = four(s.a + r * s.a_row + k, count);
      const __m512i a = _mm512_xor_si512(_mm512_set1_epi32(static_cast<int>(bytes)), flip);
      left[set][r] = _mm512_dpbusd_epi32(left[set][r], a, b0);
      if (two) right[set][r] = _mm512_dpbusd_epi32(right[set][r], a, b1);
    }
  };
  int64_t k = s.first;
  for (; k + 4 * sets <= s.last; k += 4 * sets)
#pragma GCC unroll 2
    for (int set = 0; set < sets; ++set) group(k + 4 * set, set, 4);
  for (; k < s.last; k += 4) group(k, 0, s.last - k);
  for (int r = 0; r < rows; ++r) {
    for (int set = 1; set < sets; ++set) {
      left[0][r] = _mm512_add_epi32(left[0][r], left[set][r]);
      right[0][r] = _mm512_add_epi32(right[0][r], right[set][r]);
    }
    _mm512_storeu_si512(buffer + r * kStride, left[0][r]);
    if (two) _mm512_storeu_si512(buffer + r * kStride + kPanel, right[0][r]);
  }
}

template <int rows>
void dot_any(const ByteGemm& g, const Stretch& s, int32_t* buffer) {
  s.right ? dot_rows<rows, true>(g, s, buffer) : dot_rows<rows, false>(g, s, buffer);
}

void dot_block(const ByteGemm& g, const Stretch& s, int64_t rows, int32_t* buffer) {
  switch (rows) {
    case 1: return dot_any<1>(g, s, buffer);
    case 2: return dot_any<2>(g, s, buffer);
    case 3: return dot_any<3>(g, s, buffer);
    case 4: return dot_any<4>(g, s, buffer);
    case 5: return dot_any<5>(g, s, buffer);
    case 6: return dot_any<6>(g, s, buffer);
    case 7: return dot_any<7>(g, s, buffer);
    case 8: return dot_any<8>(g, s, buffer);
    case 9: return dot_any<9>(g, s, buffer);
    case 10: return dot_any<10>(g, s, buffer);
    case 11: return dot_any<11>(g, s, buffer);
    default: return dot_any<12>(g, s, buffer);
  }
}

#else

constexpr int64_t kDotRows = 4;

/// One row and panel: 16-bit products of 4 numbers, summed in pairs by one instruction.
void dot_panel(const ByteGemm& g, const uint8_t* a, const int8_t* b, int64_t first, int64_t last,
               int32_t* sums) {
#if DAIS_ISA_LEVEL >= 1
  __m256i parts[4] = {};  // of 4 columns: two halves of each sum
  for (int64_t k = first; k < last; k += 4) {
    const __m128i bytes = _mm_cvtsi32_si128(static_cast<int>(four(a + k, last - k)));
    const __m128i words = g.a_signed ? _mm_cvtepi8_epi16(bytes) : _mm_cvtepu8_epi16(bytes);
    const __m256i row = _mm256_broadcastq_epi64(words);
    for (int i = 0; i < 4; ++i) {
      const auto* from = reinterpret_cast<const __m128i*>(b + k * kPanel + i * 16);
      const __m256i columns = _mm256_cvtepi8_epi16(_mm_loadu_si128(from));
      parts[i] = _mm256_add_epi32(parts[i], _mm256_madd_epi16(row, columns));
    }
  }
  for (int i = 0; i < 4; ++i) {
    alignas(32) int32_t pairs[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(pairs), parts[i]);
    for (int j = 0; j < 4; ++j) sums[4 * i + j] += pairs[2 * j] + pairs[2 * j + 1];
  }
#else
  for (int64_t k = first; k < last; k += 4) {
    const uint32_t bytes = four(a + k, last - k);
    for (int j = 0; j < 4; ++j) {
      const auto byte = static_cast<uint8_t>(bytes >> (8 * j));
      const int32_t value = g.a_signed ? static_cast<int32_t>(static_cast<int8_t>(byte)) : byte;
      for (int64_t n = 0; n < kPanel; ++n) sums[n] += value * b[k * kPanel + n * 4 + j];
    }
  }
#endif
}

void dot_block(const ByteGemm& g, const Stretch& s, int64_t rows, int32_t* buffer) {
  for (int64_t r = 0; r < rows; ++r) {
    int32_t* sums = buffer + r * kStride;
    if (s.first == 0)
      for (int64_t i = 0; i < kStride; ++i) sums[i] = 0;
    const uint8_t* a = s.a + r * s.a_row;
    dot_panel(g, a, s.left, s.first, s.last, sums);
    if (s.right) dot_panel(g, a, s.right, s.first, s.last, sums + kPanel);
  }
}

#endif

#if DAIS_ISA_LEVEL >= 3

/// Tiles 0..3 are sums (2 x 2), 4 and 5 hold A, 6 and 7 B.
void configure(int64_t rows, int64_t step) {
  TileConfig config;
  const auto upper = static_cast<uint8_t>(rows < 16 ? rows : 16);
  const auto lower = static_cast<uint8_t>(rows > 16 ? rows - 16 : 1);
  for (int i = 0; i < 8; ++i) config.row_bytes[i] = 64;
  config.rows[0] = config.rows[1] = config.rows[4] = upper;
  config.rows[2] = config.rows[3] = config.rows[5] = lower;
  config.row_bytes[4] = config.row_bytes[5] = static_cast<uint16_t>(step);
  config.rows[6] = config.rows[7] = static_cast<uint8_t>(step / 4);
  load_config(config);
}

// The intrinsics are statements that name tiles by literals.
#define DAIS_TILE_PRODUCT(to, a, b) \
  if constexpr (a_signed)           \
    _tile_dpbssd(to, a, b);         \
  else                              \
    _tile_dpbusd(to, a, b)

/// Where tiles of A lie: rows `row` apart, the lower tile `lower` behind the upper, the next step's
/// `step` behind.
struct TileRows {
  const uint8_t* a;
  int64_t row, lower, step;
};

template <bool a_signed, bool lower, bool two>
void tile_steps(const TileRows& rows, const int8_t* left, const int8_t* right, int64_t step,
                int64_t count) {
  const uint8_t* a = rows.a;
  for (int64_t i = 0; i < count; ++i) {
    // The rows that come next, which no hardware prefetcher foresees.
    // The rows that come next, which no hardware prefetcher foresees.
    if constexpr (lower && two)
      if (rows.row != 64)
        for (int64_t r = 32; r < 64; ++r)
          _mm_prefetch(reinterpret_cast<const char*>(a + r * rows.row), _MM_HINT_T0);
    _tile_loadd(4, a, rows.row);
    _tile_loadd(6, left, 64);
    DAIS_TILE_PRODUCT(0, 4, 6);
    if constexpr (two) {
      _tile_loadd(7, right, 64);
      DAIS_TILE_PRODUCT(1, 4, 7);
    }
    if constexpr (lower) {
      _tile_loadd(5, a + rows.lower, rows.row);
      DAIS_TILE_PRODUCT(2, 5, 6);
      if constexpr (two) {
        DAIS_TILE_PRODUCT(3, 5, 7);
      }
    }
    a += rows.step;
    left += step * kPanel;
    if constexpr (two) right += step * kPanel;
  }
}

#undef DAIS_TILE_PRODUCT

using TileSteps = void (*)(const TileRows&, const int8_t*, const int8_t*, int64_t, int64_t);

TileSteps tile_steps_for(bool a_signed, bool lower, bool two) {
  static constexpr TileSteps table[] = {
      tile_steps<false, false, false>, tile_steps<false, false, true>,
      tile_steps<false, true, false>,  tile_steps<false, true, true>,
      tile_steps<true, false, false>,  tile_steps<true, false, true>,
      tile_steps<true, true, false>,   tile_steps<true, true, true>};
  return table[4 * a_signed + 2 * lower + two];
}

/// The last numbers of each row, zeros behind them.
void copy_tail(const Stretch& s, int64_t rows, int64_t from, uint8_t* to) {
  const __mmask64 mask = (uint64_t{1} << (s.last - from)) - 1;
  for (int64_t r = 0; r < rows; ++r)
    _mm512_storeu_si512(to + 64 * r, _mm512_maskz_loadu_epi8(mask, s.a + r * s.a_row + from));
}

/// Depth [first, last) of rows [row, end) as tiles: [16 rows][step][row][64].
void hold_rows(const ByteGemm& g, int64_t row, int64_t end, int64_t first, int64_t last,
               uint8_t* to) {
  const int64_t steps = (last - first + g.step - 1) / g.step;
  for (int64_t r = row; r < end; ++r) {
    const uint8_t* from = g.a + r * g.a_row + first;
    uint8_t* at = to + ((r - row) / 16 * steps * 16 + (r - row) % 16) * 64;
    for (int64_t left = last - first; left > 0; left -= g.step, from += g.step, at += 16 * 64) {
      const int64_t count = left < g.step ? left : g.step;
      const __mmask64 mask = count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
      _mm512_store_si512(at, _mm512_maskz_loadu_epi8(mask, from));
    }
  }
  settle_memory();
}

void tile_block(const ByteGemm& g, const Stretch& s, int64_t rows, int32_t* buffer) {
  settle_memory();
  const bool lower = rows > 16, two = s.right != nullptr;
  if (s.first == 0) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, buffer, kStride * 4);
    if (two) _tile_loadd(1, buffer + kPanel, kStride * 4);
    if (lower) _tile_loadd(2, buffer + 16 * kStride, kStride * 4);
    if (lower && two) _tile_loadd(3, buffer + 16 * kStride + kPanel, kStride * 4);
  }
  const auto steps = tile_steps_for(g.a_signed, lower, two);
  const auto run = [&](const TileRows& tiles, int64_t k, int64_t step, int64_t count) {
    steps(tiles, s.left + k * kPanel, two ? s.right + k * kPanel : nullptr, step, count);
  };
  if (s.held) {
    run({s.held, 64, s.held_strip, kTileRows / 2 * 64}, s.first, g.step,
        (s.last - s.first + g.step - 1) / g.step);
  } else {
    const int64_t end = g.a_padded && s.last == g.depth ? g.padded : s.last;
    const int64_t whole = (end - s.first) / g.step, rest = s.first + whole * g.step;
    run({s.a + s.first, s.a_row, 16 * s.a_row, g.step}, s.first, g.step, whole);
    if (rest < end) {
      alignas(64) uint8_t tail[kTileRows * 64];
      copy_tail(s, rows, rest, tail);
      settle_memory();
      run({tail, 64, 16 * 64, 64}, rest, 64, 1);
    }
  }
  _tile_stored(0, buffer, kStride * 4);
  if (two) _tile_stored(1, buffer + kPanel, kStride * 4);
  if (lower) _tile_stored(2, buffer + 16 * kStride, kStride * 4);
  if (lower && two) _tile_stored(3, buffer + 16 * kStride + kPanel, kStride * 4);
  settle_memory();
}

#endif

inline void move_sums(const int32_t* from, int64_t from_row, int64_t rows, int64_t columns,
                      int32_t* to, int64_t to_row) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < columns; ++i) to[r * to_row + i] = from[r * from_row + i];
}

/// Walks blocks of one kind of loop over [row, row_end) x [panel, panel_end).
class Blocks {
 public:
  /// `held`: kByteHeld bytes, or null: A is read where it lies.
  Blocks(const ByteGemm& g, bool tiles, uint8_t* held) : g_(g), tiles_(tiles), held_(held) {
    block_rows_ = tiles ? kTileRows : kDotRows;
    partial_row_ = (g.columns + kPanel - 1) / kPanel * kPanel;
  }

  void run(int64_t row, int64_t row_end, int64_t panel, int64_t panel_end) {
    const int64_t depth = g_.partial ? cpu::kByteDepthBlock / g_.step * g_.step : g_.depth;
    const int64_t row_bytes = held_ ? (depth + g_.step - 1) / g_.step * 64 : depth + 1;
    const int64_t fit = cpu::kByteHeld / row_bytes / kTileRows * kTileRows;
    const int64_t chunk = fit < kTileRows ? kTileRows : fit;
    for (; row < row_end; row += chunk) {
      const int64_t end = row_end - row > chunk ? row + chunk : row_end;
      int64_t first = 0;
      do {
        const int64_t last = first + depth >= g_.depth ? g_.depth : first + depth;
        hold(row, end, first, last);
        for (int64_t p = panel; p < panel_end; p += 2)
          pair(row, end, p, p + 1 < panel_end, first, last);
        first = last;
      } while (first < g_.depth);
    }
  }

 private:
  void hold([[maybe_unused]] int64_t row, [[maybe_unused]] int64_t end,
            [[maybe_unused]] int64_t first, [[maybe_unused]] int64_t last) {
#if DAIS_ISA_LEVEL >= 3
    if (held_) hold_rows(g_, row, end, first, last, held_);
#endif
    held_row_ = row;
    held_first_ = first;
    held_strip_ = (last - first + g_.step - 1) / g_.step * 16 * 64;
  }

  /// One or two panels for rows [row, end). Depth is cut again so that the stretch of B and the
  /// sums of some rows stay in the first-level cache.
  void pair(int64_t row, int64_t end, int64_t panel, bool two, int64_t first, int64_t last) {
    alignas(64) int32_t buffer[kLocalRows * kStride];
    Stretch s{.a = nullptr,
              .a_row = g_.a_row,
              .held = nullptr,
              .held_strip = held_strip_,
              .left = g_.b + panel * kPanel * g_.padded,
              .right = two ? g_.b + (panel + 1) * kPanel * g_.padded : nullptr,
              .sums = g_.sums + panel * kPanel,
              .first = first,
              .last = last};
    const int64_t columns = two ? 2 * kPanel : kPanel;
    const int64_t local = kLocalRows / block_rows_ * block_rows_;
    for (; row < end; row += local) {
      const int64_t rows = end - row < local ? end - row : local;
      int32_t* partial = g_.partial ? g_.partial + row * partial_row_ + panel * kPanel : nullptr;
      if (first > 0) move_sums(partial, partial_row_, rows, columns, buffer, kStride);
      const int64_t whole = last - first;
      const int64_t depth = rows <= block_rows_ || whole < 3 * kLocalDepth / 2
                                ? whole
                                : kLocalDepth / g_.step * g_.step;
      s.first = first;
      do {
        s.last = last - s.first > depth ? s.first + depth : last;
        for (int64_t r = 0; r < rows; r += block_rows_) {
          s.a = g_.a + (row + r) * g_.a_row;
          if (held_)
            s.held = held_ + (row + r - held_row_) / 16 * held_strip_ +
                     (s.first - held_first_) / g_.step * 16 * 64;
          compute(s, rows - r < block_rows_ ? rows - r : block_rows_, buffer + r * kStride);
        }
        s.first = s.last;
      } while (s.first < last);
      if (last < g_.depth) {
        move_sums(buffer, kStride, rows, columns, partial, partial_row_);
        continue;
      }
      store_sums(g_, buffer, kStride, row, rows, panel * kPanel);
      if (two) store_sums(g_, buffer + kPanel, kStride, row, rows, (panel + 1) * kPanel);
    }
  }

  void compute(const Stretch& s, int64_t rows, int32_t* buffer) {
#if DAIS_ISA_LEVEL >= 3
    if (tiles_) {
      if (rows != configured_) configure(rows, g_.step);
      configured_ = rows;
      return tile_block(g_, s, rows, buffer);
    }
#endif
    dot_block(g_, s, rows, buffer);
  }

  const ByteGemm& g_;
  [[maybe_unused]] bool tiles_;
  uint8_t* held_;
  int64_t held_row_ = 0, held_first_ = 0, held_strip_ = 0;
  int64_t block_rows_, partial_row_;
  [[maybe_unused]] int64_t configured_ = 0;
};

/// 64 bytes of a panel from four rows of B, each with 16 neighbouring columns.
inline void interleave(const uint8_t* from, int64_t row, bool flip, int8_t* to) {
  const __m128i change = _mm_set1_epi8(flip ? -128 : 0);
  __m128i rows[4];
  for (int i = 0; i < 4; ++i)
    rows[i] =
        _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * row)), change);
  const __m128i a = _mm_unpacklo_epi8(rows[0], rows[1]), b = _mm_unpackhi_epi8(rows[0], rows[1]);
  const __m128i c = _mm_unpacklo_epi8(rows[2], rows[3]), d = _mm_unpackhi_epi8(rows[2], rows[3]);
  auto* out = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(out, _mm_unpacklo_epi16(a, c));
  _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(a, c));
  _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(b, d));
  _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(b, d));
}

}  // namespace

/// Rows [row, row_end) of panels [panel, panel_end). `held`: kByteHeld bytes of the thread's own,
/// 64-byte aligned, or null.
void byte_block(const ByteGemm& g, int64_t row, int64_t row_end, int64_t panel, int64_t panel_end,
                [[maybe_unused]] uint8_t* held) {
#if DAIS_ISA_LEVEL >= 3
  // Few rows leave most of a tile empty; few panels or little depth are not worth a copy of A.
  const bool tiles = row_end - row > 8 && g.depth > 0;
  const bool copy = tiles && row_end - row >= kTileRows && panel_end - panel >= kHeldPanels &&
                    g.depth >= kHeldDepth;
  Blocks(g, tiles, copy ? held : nullptr).run(row, row_end, panel, panel_end);
  if (tiles) _tile_release();
#else
  Blocks(g, false, nullptr).run(row, row_end, panel, panel_end);
#endif
}

/// Panels [first, last) of B packed to `packed`, with the sums of their columns. See byte_pack().
void byte_pack_panels(const uint8_t* from, int64_t row, int64_t column, int64_t depth,
                      int64_t columns, bool flip, int64_t padded, int64_t first, int64_t last,
                      int8_t* packed, int32_t* sums) {
  const uint8_t change = flip ? 0x80 : 0;
  for (int64_t panel = first; panel < last; ++panel) {
    int8_t* to = packed + panel * kPanel * padded;
    const int64_t begin = panel * kPanel;
    const int64_t count = columns - begin < kPanel ? columns - begin : kPanel;
    int32_t totals[kPanel] = {};
    for (int64_t k = 0; k < padded; k += 4, to += 64) {
      const uint8_t* at = from + k * row + begin * column;
      if (column == 1 && count == kPanel && k + 4 <= depth) {
        interleave(at, row, flip, to);
      } else {
        for (int64_t n = 0; n < kPanel; ++n)
          for (int64_t j = 0; j < 4; ++j)
            to[4 * n + j] = n < count && k + j < depth
                                ? static_cast<int8_t>(at[j * row + n * column] ^ change)
                                : int8_t{0};
      }
      for (int64_t n = 0; n < kPanel; ++n)
        totals[n] += to[4 * n] + to[4 * n + 1] + to[4 * n + 2] + to[4 * n + 3];
    }
    for (int64_t n = 0; n < kPanel; ++n) sums[begin + n] = totals[n];
  }
}

}  // namespace dais::DAIS_ISA
