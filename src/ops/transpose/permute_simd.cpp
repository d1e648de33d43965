// One permutation of `period` neighbouring elements, applied to block after block: transpositions
// of matrices that are narrower than a vector. A gather per vector.

#include <cstdint>

#if DAIS_ISA_LEVEL < 3
namespace dais::DAIS_ISA {

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
