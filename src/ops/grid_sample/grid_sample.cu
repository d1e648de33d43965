// An image sampled at the places of a grid: a thread works out the elements and weights of its place
// once and takes some channels at them. Bound by memory: a warp writes runs of 32 neighbours. The
// coordinates are those of the CPU to the bit, so that both choose the same element; hence no fused
// products.
//
// Compiled with: --fmad=false -DELEMENT=float -DGRID=float -DAXES=1 -DMODE=nearest
// Compiled with: --fmad=false -DELEMENT=float -DGRID=float -DAXES=2 -DMODE=linear
// Compiled with: --fmad=false -DELEMENT=f16 -DGRID=float -DAXES=2 -DMODE=cubic
// Compiled with: --fmad=false -DELEMENT=bf16 -DGRID=bf16 -DAXES=3 -DMODE=cubic
#include "number.cuh"
#include "axis_sampler.cuh"

using namespace dais;

constexpr SampleMode kMode = SampleMode::MODE;
constexpr int kTaps = sample_taps(kMode);

/// Sizes of the image's axes behind its channels.
struct ImageSizes {
  Size at[3];
};

/// The sum of a plane's elements at the taps of axis `axis` and those behind it, whose product with
/// `weight` they get: in the order of the elements, as on the CPU.
template <int axis>
__device__ __forceinline__ float sample(const ELEMENT* plane, const AxisSampler::Taps* taps,
                                        const ImageSizes& sizes, Size offset, float weight,
                                        float total) {
  if constexpr (axis == AXES) {
    return total + to_float(plane[offset]) * weight;
  } else {
#pragma unroll
    for (int k = 0; k < kTaps; ++k)
      if (taps[axis].index[k] >= 0)
        total = sample<axis + 1>(plane, taps, sizes,
                                 offset * sizes.at[axis] + Size(taps[axis].index[k]),
                                 weight * taps[axis].weight[k], total);
    return total;
  }
}

/// The grid's second dimension goes over `channels` in steps.
extern "C" __global__ void __launch_bounds__(256)
    grid_sample(const ELEMENT* __restrict__ x, const GRID* __restrict__ grid,
                ELEMENT* __restrict__ y, Size batches, Size channels, Size places,
                ImageSizes sizes, int padding, int align_corners) {
  Size area = 1;
#pragma unroll
  for (int axis = 0; axis < AXES; ++axis) area *= sizes.at[axis];
  each_element(batches * places, [&](Size i) {
    const Size batch = i / places, place = i % places;
    AxisSampler::Taps taps[AXES];
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) {
      const AxisSampler along(sizes.at[axis], kMode, static_cast<SamplePadding>(padding),
                              align_corners != 0);
      taps[axis] = along.at(to_float(grid[i * AXES + (AXES - 1 - axis)]));
    }
    for (Size channel = blockIdx.y; channel < channels; channel += gridDim.y) {
      const Size at = batch * channels + channel;
      y[at * places + place] =
          from_float<ELEMENT>(sample<0>(x + at * area, taps, sizes, 0, 1.0f, 0.0f));
    }
  });
}
