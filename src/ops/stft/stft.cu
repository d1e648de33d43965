// Fourier transforms of lines in shared memory, a few lines for each block: powers of two by halving,
// other lengths as a convolution with a chirp, in double, with the roots and steps of the CPU (fft.cpp).
// Bound by memory where doubles are fast. Neighbouring threads read and write neighbours, along a line
// or across lines.
//
// Compiled with: -DELEMENT=float -DWIDE=float
// Compiled with: -DELEMENT=double -DWIDE=double
// Compiled with: -DELEMENT=f16 -DWIDE=float
#include "pack.cuh"
#include "scalar.cuh"

struct alignas(16) Complex {
  double re, im;
};

/// One side of the lines in memory: line i begins at i / run * outer + i % run * inner, its numbers
/// are `step` elements apart and have one or two parts.
struct Lines {
  Size run, outer, inner, step, count, parts;
};

struct Transform {
  Size lines, together;     // all, and those of a block
  Size length, padded;      // padded: a power of two
  int bits;                 // of that
  int conjugate;            // whether roots of the inverse are meant
  int mirror;               // whether the second half of a line is the mirrored conjugate
  Size window;              // values of the window; zeros behind them
  double scale;
};

__device__ __forceinline__ Complex product(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

__device__ __forceinline__ double to_double(ELEMENT x) {
  return static_cast<double>(widen<WIDE>(x));
}

__device__ __forceinline__ Size reversed(Size i, int bits) {
  return bits == 0 ? 0 : __brev(i) >> (32 - bits);
}

/// Number i of a line; none where its source has none.
__device__ __forceinline__ Complex loaded(const ELEMENT* x, Size start, const Lines& from, Size i,
                                          const Transform& t) {
  const bool turned = t.mirror && i > t.length / 2;
  const Size source = turned ? t.length - i : i;
  if (i >= t.length || source >= from.count) return {0, 0};
  const ELEMENT* at = x + start + source * from.step;
  if (from.parts == 1) return {to_double(*at), 0};
  const auto pair = load_pack<2>(at);
  const double im = t.mirror && (i == 0 || 2 * i == t.length) ? 0.0 : to_double(pair.at[1]);
  return {to_double(pair.at[0]), turned ? -im : im};
}

/// Transforms all lines of the block, whose numbers lie in the order of reversed bits.
__device__ __forceinline__ void transform(Complex* values, const Complex* roots, Size lines,
                                          const Transform& t, bool conjugate) {
  const Size pairs = t.padded / 2;
  for (int stage = 0; stage < t.bits; ++stage) {
    __syncthreads();
    for (Size i = threadIdx.x; i < lines * pairs; i += blockDim.x) {
      const Size pair = i & (pairs - 1), k = pair & ((Size(1) << stage) - 1);
      Complex* low = values + (i - pair) * 2 + ((pair - k) << 1) + k;
      Complex* high = low + (Size(1) << stage);
      Complex root = roots[k << (t.bits - 1 - stage)];
      if (conjugate) root.im = -root.im;
      const Complex a = *low, b = product(*high, root);
      *low = {a.re + b.re, a.im + b.im};
      *high = {a.re - b.re, a.im - b.im};
    }
  }
  __syncthreads();
}

/// Between the two transforms of a convolution: the product of spectra, in reversed order again.
__device__ __forceinline__ void multiply(Complex* values, const Complex* spectrum, Size lines,
                                         const Transform& t) {
  for (Size i = threadIdx.x; i < lines * t.padded; i += blockDim.x) {
    const Size place = i & (t.padded - 1), other = reversed(place, t.bits);
    if (place > other) continue;
    Complex* line = values + (i - place);
    const Complex a = product(line[place], spectrum[place]);
    const Complex b = product(line[other], spectrum[other]);
    line[place] = b;
    line[other] = a;
  }
}

/// Calls body(line of the block, number) for `count` numbers of each line, so that neighbouring threads
/// take neighbours in memory.
template <typename Body>
__device__ __forceinline__ void each_number(Size lines, Size count, const Lines& side, Body body) {
  const bool along = side.step == side.parts;
  for (Size i = threadIdx.x; i < lines * count; i += blockDim.x)
    along ? body(i / count, i % count) : body(i % lines, i / lines);
}

/// chirp and spectrum are null for powers of two; dynamic shared memory for the block's lines.
extern "C" __global__ void __launch_bounds__(256)
    dft(const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ window, ELEMENT* __restrict__ y,
        const Complex* __restrict__ roots, const Complex* __restrict__ chirp,
        const Complex* __restrict__ spectrum, Transform t, Lines from, Lines to) {
  extern __shared__ Complex values[];
  const Size first = blockIdx.x * t.together;
  const Size lines = min(t.together, t.lines - first);
  each_number(lines, t.padded, from, [&](Size line, Size i) {
    const Size all = first + line, start = all / from.run * from.outer + all % from.run * from.inner;
    Complex value = loaded(x, start, from, i, t);
    if (window) {
      const double factor = i < t.window ? to_double(window[i]) : 0.0;
      value = {value.re * factor, value.im * factor};
    }
    if (chirp && i < t.length) value = product(value, chirp[i]);
    values[line * t.padded + reversed(i, t.bits)] = value;
  });
  transform(values, roots, lines, t, !chirp && t.conjugate);
  if (chirp) {
    multiply(values, spectrum, lines, t);
    transform(values, roots, lines, t, true);
  }
  each_number(lines, to.count, to, [&](Size line, Size i) {
    const Size all = first + line, start = all / to.run * to.outer + all % to.run * to.inner;
    Complex value = values[line * t.padded + i];
    if (chirp) value = product(value, chirp[i]);
    ELEMENT* at = y + start + i * to.step;
    const ELEMENT re = narrow<ELEMENT>(static_cast<WIDE>(value.re * t.scale));
    if (to.parts == 1)
      *at = re;
    else
      store_pack(at, Pack<ELEMENT, 2>{re, narrow<ELEMENT>(static_cast<WIDE>(value.im * t.scale))});
  });
}
