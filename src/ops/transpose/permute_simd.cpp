// One permutation of `period` neighbouring elements, applied to block after block: transpositions
// of matrices that are narrower than a vector. A gather per vector.

#include <cstdint>

#if DAIS_ISA_LEVEL < 3
namespace dais::DAIS_ISA {
namespace {

template <int count>
void interleave_of(const uint32_t* from, int64_t stride, uint32_t* to, int64_t n) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (int64_t i = 0; i < n; ++i)
    for (int k = 0; k < count; ++k) to[i * count + k] = from[k * stride + i];
}

}  // namespace

/// to[i * count + k] = from[k * stride + i] for 2 to 4 sequences; false for other counts.
bool interleave(const uint32_t* from, int64_t stride, int64_t count, uint32_t* to, int64_t n) {
  switch (count) {
    case 2: interleave_of<2>(from, stride, to, n); return true;
    case 3: interleave_of<3>(from, stride, to, n); return true;
    case 4: interleave_of<4>(from, stride, to, n); return true;
    default: return false;
  }
}

void permute_blocks(const uint32_t* from, uint32_t* to, const int32_t* index, int64_t period,
                    int64_t blocks) {
  for (int64_t block = 0; block < blocks; ++block, from += period, to += period) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (int64_t i = 0; i < period; ++i) to[i] = from[index[i]];
  }
}

}  // namespace dais::DAIS_ISA
#endif
