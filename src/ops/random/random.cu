// Random numbers: a pure function of key, stream and the place of an element, the same bits as on
// the CPU. Bound by the ten rounds of integer products for each block of four words.
//
// Compiled with: -DELEMENT=float
// Compiled with: -DELEMENT=f16
// Compiled with: -DELEMENT=bf16
#include "philox.cuh"

extern "C" __global__ void __launch_bounds__(256)
    uniform(ELEMENT* __restrict__ y, Size count, uint64 key, uint64 stream, double low,
            double range) {
  each_element(count, [&](Size i) {
    y[i] = from_float<ELEMENT>(
        static_cast<float>(low + range * philox_unit(philox(key, stream, i), 0)));
  });
}

extern "C" __global__ void __launch_bounds__(256)
    normal(ELEMENT* __restrict__ y, Size count, uint64 key, uint64 stream, double mean,
           double scale) {
  each_element(count, [&](Size i) {
    y[i] = from_float<ELEMENT>(
        static_cast<float>(mean + scale * philox_normal(philox(key, stream, i))));
  });
}

/// Elements whose word of Philox is below `limit` become 0, the others are multiplied by `scale`. A
/// thread for each block of four words. The step comes from memory, so that a recorded launch draws
/// other numbers in each step.
extern "C" __global__ void __launch_bounds__(256)
    stepped_dropout(const ELEMENT* __restrict__ x, const int64* __restrict__ step,
                    ELEMENT* __restrict__ y, Size count, uint64 key, uint64 stream, uint64 limit,
                    float scale) {
  each_element((count + 3) / 4, [&](Size quad) {
    const PhiloxBlock bits = philox(key, stream << 40 ^ static_cast<uint64>(*step), quad);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const Size i = 4 * quad + k;
      if (i < count)
        y[i] = bits.word[k] < limit ? from_float<ELEMENT>(0.0f)
                                    : from_float<ELEMENT>(to_float(x[i]) * scale);
    }
  });
}
