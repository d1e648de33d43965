// Scattering by indices without a reduction: where an index repeats, the last one wins, as on the
// CPU. Two launches find that out without sorting: claim_* notes for each element of y the greatest
// update that names it, scatter_* writes the updates that won. Bound by memory and, where many
// updates name one element, by its atomics. y holds data before; disown makes
// every owner -1, nobody.
//
// With a reduction (COMBINE, in the type WIDE) each element of y looks for the updates that name it and
// takes them in their order, so that a result has the same bits each time. Bound by that search.
//
// Compiled with: -DWORD=uint32 -DINDEX=int64
// Compiled with: -DWORD=uint16 -DINDEX=int32
// Compiled with: -DWORD=uint32 -DINDEX=int64 -DELEMENT=float -DWIDE=float -DCOMBINE=s_add
// Compiled with: -DWORD=uint16 -DINDEX=int32 -DELEMENT=f16 -DWIDE=float -DCOMBINE=s_max
// Compiled with: -DWORD=uint2 -DINDEX=int64 -DELEMENT=int64 -DWIDE=int64 -DCOMBINE=s_mul
#include "scalar.cuh"
#include "tuple.cuh"

/// indices [outer, count, inner] into y [outer, size, inner]; a thread for each.
extern "C" __global__ void __launch_bounds__(256)
    claim_elements(const INDEX* __restrict__ indices, int64* __restrict__ owners, Size outer,
                   Size size, Size count, Size inner, FaultRecord* fault, int step) {
  each_element(outer * count * inner, [&](Size i) {
    const int64 at = checked_index(indices[i], size, fault, step);
    if (at >= 0) atomicMax(owners + (i / inner / count * size + at) * inner + i % inner, i);
  });
}

extern "C" __global__ void __launch_bounds__(256)
    scatter_elements(const int64* __restrict__ owners, const WORD* __restrict__ updates,
                     WORD* __restrict__ y, Size elements) {
  each_element(elements, [&](Size i) {
    if (owners[i] >= 0) y[i] = updates[owners[i]];
  });
}

/// indices [count, tuple.length]: each names one of the slices of y.
extern "C" __global__ void __launch_bounds__(256)
    claim_slices(const INDEX* __restrict__ indices, int64* __restrict__ owners, Size count,
                 Tuple tuple, FaultRecord* fault, int step) {
  each_element(count, [&](Size i) {
    const int64 slice = slice_of(indices, i, tuple, fault, step);
    if (slice >= 0) atomicMax(owners + slice, i);
  });
}

extern "C" __global__ void __launch_bounds__(256)
    scatter_slices(const int64* __restrict__ owners, const WORD* __restrict__ updates,
                   WORD* __restrict__ y, Size slices, Size inner) {
  each_element(slices * inner, [&](Size i) {
    const int64 owner = owners[i / inner];
    if (owner >= 0) y[i] = updates[owner * inner + i % inner];
  });
}

extern "C" __global__ void __launch_bounds__(256) disown(int64* __restrict__ owners, Size count) {
  each_element(count, [&](Size i) { owners[i] = -1; });
}

/// A cache [batches, between, size, inner] with an update [batches, between, length, inner] written from
/// each batch entry's own place on; starts may be null: from 0 on. A ring begins again at its front.
extern "C" __global__ void __launch_bounds__(256)
    scatter_tensor(const WORD* __restrict__ cache, const WORD* __restrict__ update,
                   const INDEX* __restrict__ starts, WORD* __restrict__ y, Size batches,
                   Size between, Size size, Size length, Size inner, int ring, FaultRecord* fault,
                   int step) {
  each_element(batches * between * size * inner, [&](Size i) {
    const Size row = i / inner / size;
    const int64 start = starts ? static_cast<int64>(starts[row / between]) : 0;
    if (start < 0 || (!ring && start + length > size)) return report_fault(fault, 1, step, start);
    const Size from = static_cast<Size>(start % size), at = i / inner % size;
    const Size ahead = at >= from ? at - from : at + size - from;
    y[i] = ahead < length ? update[(row * length + ahead) * inner + i % inner] : cache[i];
  });
}

#ifdef COMBINE
/// data and y [outer, size, inner], indices and updates [outer, count, inner].
extern "C" __global__ void __launch_bounds__(256)
    reduce_elements(const ELEMENT* __restrict__ data, const INDEX* __restrict__ indices,
                    const ELEMENT* __restrict__ updates, ELEMENT* __restrict__ y, Size outer,
                    Size size, Size count, Size inner, FaultRecord* fault, int step) {
  each_element(outer * size * inner, [&](Size i) {
    const Size own = i / inner % size, first = i / inner / size * count * inner + i % inner;
    WIDE value = widen<WIDE>(data[i]);
    for (Size k = 0; k < count; ++k) {
      const Size update = first + k * inner;
      if (checked_index(indices[update], size, fault, step) == own)
        value = COMBINE(value, widen<WIDE>(updates[update]));
    }
    y[i] = narrow<ELEMENT>(value);
  });
}

/// Notes which slice each tuple names.
extern "C" __global__ void __launch_bounds__(256)
    name_slices(const INDEX* __restrict__ indices, int64* __restrict__ named, Size count,
                Tuple tuple, FaultRecord* fault, int step) {
  each_element(count, [&](Size i) { named[i] = slice_of(indices, i, tuple, fault, step); });
}

/// data and y [slices, inner], updates [count, inner].
extern "C" __global__ void __launch_bounds__(256)
    reduce_slices(const ELEMENT* __restrict__ data, const int64* __restrict__ named,
                  const ELEMENT* __restrict__ updates, ELEMENT* __restrict__ y, Size slices,
                  Size count, Size inner) {
  each_element(slices * inner, [&](Size i) {
    const Size own = i / inner;
    WIDE value = widen<WIDE>(data[i]);
    for (Size k = 0; k < count; ++k)
      if (named[k] == own) value = COMBINE(value, widen<WIDE>(updates[k * inner + i % inner]));
    y[i] = narrow<ELEMENT>(value);
  });
}
#endif
