// Between floats of 8 bits and wider ones, rounded to nearest. Bound by memory.
//
// Compiled with: -DELEMENT=float -DCODE=f8e4m3
// Compiled with: -DELEMENT=bf16 -DCODE=f8e5m2
#include "float8.cuh"

extern "C" __global__ void __launch_bounds__(256)
    to_codes(const ELEMENT* __restrict__ x, CODE* __restrict__ y, Size count, int saturate) {
  each_element(count, [&](Size i) { y[i] = code_of<CODE>(to_float(x[i]), saturate); });
}

extern "C" __global__ void __launch_bounds__(256)
    from_codes(const CODE* __restrict__ x, ELEMENT* __restrict__ y, Size count) {
  each_element(count, [&](Size i) { y[i] = from_float<ELEMENT>(to_float(x[i])); });
}
