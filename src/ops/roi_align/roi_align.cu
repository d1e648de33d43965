// Boxes resampled to bins: a block takes a box and some channels. The samples of some bins are worked
// out once, kept in shared memory in the order in which a warp reads them, and every channel is read
// at them; a bin of more samples than fit works them out for each channel. Bound by memory: warps write
// runs of bins. Coordinates are those of the CPU to the bit; hence no fused products.
//
// Compiled with: --fmad=false -DELEMENT=float -DBOX=float -DINDEX=int64
// Compiled with: --fmad=false -DELEMENT=f16 -DBOX=f16 -DINDEX=int32
#include "fault.cuh"
#include "box_grid.cuh"

using namespace dais;

constexpr Size kSamples = 512;  // in shared memory

struct alignas(16) Places {
  Size at[4];
};
struct alignas(16) Weights {
  float at[4];
};

/// Sizes of the features.
struct Features {
  Size batches, channels, height, width;
};

struct Tap {
  Places places;
  Weights weights;
};

__device__ __forceinline__ Tap tap_of(const BoxGrid& box, const BoxRules& rules, Size bin, Size k,
                                      const Features& in) {
  const auto columns = static_cast<Size>(rules.bin_columns);
  const BoxSample sample = box.sample(bin / columns, bin % columns, k, in.height, in.width);
  Tap tap;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    tap.places.at[i] = static_cast<Size>(sample.at[i]);
    tap.weights.at[i] = static_cast<float>(sample.weight[i]);
  }
  return tap;
}

/// The mean or the maximum of a bin's samples in one plane; tap(k) gives them. Samples are summed some
/// at a time, so that many do not lose what is small.
template <typename Taps>
__device__ __forceinline__ float pooled(const ELEMENT* plane, Size count, bool average, Taps tap) {
  float total = 0, some = 0, top = 0;
  for (Size k = 0; k < count; ++k) {
    const Tap one = tap(k);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float value = one.weights.at[i] * to_float(plane[one.places.at[i]]);
      some += value;
      top = (k == 0 && i == 0) || top < value ? value : top;
    }
    if (k % 64 == 63 || k + 1 == count) {
      total += some;
      some = 0;
    }
  }
  return average && count > 0 ? total / static_cast<float>(count) : top;
}

/// The grid's second dimension goes over the channels in steps.
extern "C" __global__ void __launch_bounds__(256)
    roi_align(const ELEMENT* __restrict__ x, const BOX* __restrict__ boxes,
              const INDEX* __restrict__ batches, ELEMENT* __restrict__ y, BoxRules rules,
              Features in, int average, FaultRecord* fault, int step) {
  __shared__ Places places[kSamples];
  __shared__ Weights weights[kSamples];
  const Size n = blockIdx.x;
  float corners[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) corners[i] = to_float(boxes[n * 4 + i]);
  const BoxGrid box = BoxGrid::of(rules, corners);
  const int64 batch = checked_index(batches[n], in.batches, fault, step);
  if (!box.fits) report_fault(fault, 2, step, n);
  if (batch < 0 || !box.fits) return;
  const Size bins = static_cast<Size>(rules.bin_rows * rules.bin_columns);
  const Size area = in.height * in.width, parts = gridDim.y;
  const Size samples = static_cast<Size>(box.rows * box.columns);
  const Size channels = (in.channels - blockIdx.y + parts - 1) / parts;
  const bool kept = samples <= kSamples;
  const Size together = samples == 0 || !kept ? bins : min(bins, kSamples / samples);
  for (Size first = 0; first < bins; first += together) {
    const Size count = min(together, bins - first);
    __syncthreads();
    for (Size i = threadIdx.x; kept && i < count * samples; i += blockDim.x) {
      const Tap tap = tap_of(box, rules, first + i % count, i / count, in);
      places[i] = tap.places;
      weights[i] = tap.weights;
    }
    __syncthreads();
    for (Size i = threadIdx.x; i < count * channels; i += blockDim.x) {
      const Size own = i % count, channel = blockIdx.y + i / count * parts;
      const ELEMENT* plane = x + (static_cast<Size>(batch) * in.channels + channel) * area;
      const float value = pooled(plane, samples, average != 0, [&](Size k) {
        if (!kept) return tap_of(box, rules, first + own, k, in);
        return Tap{places[k * count + own], weights[k * count + own]};
      });
      y[(n * in.channels + channel) * bins + first + own] = from_float<ELEMENT>(value);
    }
  }
}
