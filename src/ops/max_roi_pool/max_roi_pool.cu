// The maximum of each bin of boxes whose corners are rounded to pixels. Bound by memory: a thread for
// each bin of a channel, so that a warp writes a run and reads windows that lie side by side. Bins are
// those of the CPU to the bit; hence no fused products.
//
// Compiled with: --fmad=false -DELEMENT=float -DBOX=float
// Compiled with: --fmad=false -DELEMENT=f16 -DBOX=f16
#include "fault.cuh"
#include "bin_span.cuh"

using namespace dais;

/// Features [batches, channels, height, width]; bins of a box.
struct Pooling {
  Size batches, channels, height, width, rows, columns;
  double scale;
};

extern "C" __global__ void __launch_bounds__(256)
    max_roi_pool(const ELEMENT* __restrict__ x, const BOX* __restrict__ boxes,
                 ELEMENT* __restrict__ y, Size count, Pooling in, FaultRecord* fault, int step) {
  each_element(count * in.channels * in.rows * in.columns, [&](Size i) {
    const Size column = i % in.columns, row = i / in.columns % in.rows;
    const Size channel = i / in.columns / in.rows % in.channels;
    const Size n = i / in.columns / in.rows / in.channels;
    double box[5];
    bool finite = true;
#pragma unroll
    for (int k = 0; k < 5; ++k) {
      const float value = to_float(boxes[n * 5 + k]);
      finite = finite && fabsf(value) < infinity();
      box[k] = value;
    }
    if (!finite) return report_fault(fault, 3, step, n);
    const auto named = static_cast<int64>(clamp_to(box[0], -1e9, 1e9));
    const int64 batch = checked_index(named, in.batches, fault, step);
    if (batch < 0) return;
    const BinSpan down = bin_span(box[2], box[4], in.scale, in.rows, in.height, row);
    const BinSpan along = bin_span(box[1], box[3], in.scale, in.columns, in.width, column);
    const Size plane = (static_cast<Size>(batch) * in.channels + channel) * in.height * in.width;
    float best = down.first < down.last && along.first < along.last ? -infinity() : 0.0f;
    for (Size v = static_cast<Size>(down.first); v < static_cast<Size>(down.last); ++v)
      for (Size u = static_cast<Size>(along.first); u < static_cast<Size>(along.last); ++u) {
        const float value = to_float(x[plane + v * in.width + u]);
        best = best < value ? value : best;
      }
    y[i] = from_float<ELEMENT>(best);
  });
}
