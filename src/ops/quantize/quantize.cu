// Quantising and dequantising with one scale, one per slice of an axis, or one per block along it.
// Bound by memory. CODE is int8 or uint8, or with FLOATS f8e4m3 or f8e5m2; codes of 4 bits take a byte
// each in memory, too, and differ in their range only. Element i of [outer, axis, inner] takes scale [outer or 1, axis / block,
// inner or 1].
//
// Compiled with: -DELEMENT=float -DCODE=int8
// Compiled with: -DELEMENT=f16 -DCODE=uint8
// Compiled with: -DELEMENT=float -DCODE=f8e4m3 -DFLOATS
// Compiled with: -DELEMENT=f16 -DCODE=f8e5m2 -DFLOATS
#include "float8.cuh"

/// Which scale an element takes.
struct Scales {
  Size axis, inner, block;  ///< block: elements of the axis that share one
  int by_outer, by_inner;   ///< whether scales differ by these, too
};

__device__ __forceinline__ Size scale_of(Size i, const Scales& by) {
  const Size place = i / by.inner % by.axis / by.block, blocks = (by.axis + by.block - 1) / by.block;
  Size at = by.by_outer ? i / by.inner / by.axis * blocks + place : place;
  return by.by_inner ? at * by.inner + i % by.inner : at;
}

/// The quotient and the zero point as a code: of floats, `most` says whether it saturates.
__device__ __forceinline__ CODE coded(float quotient, const CODE* zero, int least, int most) {
#ifdef FLOATS
  return code_of<CODE>(quotient + (zero ? to_float(*zero) : 0.0f), most);
#else
  const int whole = __float2int_rn(fminf(fmaxf(quotient, -1e9f), 1e9f));
  return static_cast<CODE>(max(least, min(most, whole + (zero ? *zero : 0))));
#endif
}

/// `zeros` may be null.
extern "C" __global__ void __launch_bounds__(256)
    quantize(const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ scales,
             const CODE* __restrict__ zeros, CODE* __restrict__ y, Size count, Scales by, int least,
             int most) {
  each_element(count, [&](Size i) {
    const Size at = scale_of(i, by);
    // The quotient has the precision of the elements.
    const float quotient = to_float(from_float<ELEMENT>(to_float(x[i]) / to_float(scales[at])));
    y[i] = coded(quotient, zeros ? zeros + at : nullptr, least, most);
  });
}

extern "C" __global__ void __launch_bounds__(256)
    dequantize(const CODE* __restrict__ x, const ELEMENT* __restrict__ scales,
               const CODE* __restrict__ zeros, ELEMENT* __restrict__ y, Size count, Scales by) {
  each_element(count, [&](Size i) {
    const Size at = scale_of(i, by);
    y[i] = from_float<ELEMENT>((to_float(x[i]) - (zeros ? to_float(zeros[at]) : 0.0f)) *
                               to_float(scales[at]));
  });
}
