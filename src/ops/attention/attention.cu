// Attention with an online softmax: scores exist only as tiles, whose rows are joined relative to
// the greatest score so far. Keys and values are read once by each block of queries.
//
// attention_rows (any element type): a warp for each query, eight to a block that share tiles of 32
// keys and values in shared memory. Lanes take a key each for the scores, elements of the head for
// the result. Bound by shared memory.
//
// attention_tiles (16-bit types, heads of HEAD elements, a multiple of 16): 64 queries to a block of
// four warps, tiles of 64 keys, both products by the matrix instruction; the scores go from the
// first product's result to the second's operand without leaving the registers. Bound by the matrix
// unit for long sequences.
//
// HEAD is the head's size, at most 256 for rows and 128 for tiles.
//
// With CACHED there are the kernels of caches: they put new keys and values behind those of before,
// rotated by their position where asked, and find how many keys each example has.
//
// Compiled with: -DELEMENT=float -DHEAD=64
// Compiled with: -DELEMENT=float -DHEAD=64 -DCACHED -DINDEX=int64
// Compiled with: -DELEMENT=f16 -DHEAD=64 -DTILES -DCACHED -DINDEX=int32
// Compiled with: -DELEMENT=float -DHEAD=40
// Compiled with: -DELEMENT=f16 -DHEAD=64 -DTILES
// Compiled with: -DELEMENT=bf16 -DHEAD=128 -DTILES -DNEEDS=80
#include "mma.cuh"
#include "pack.cuh"
#include "reduce.cuh"

/// Steps in elements from one example, head and row to the next; elements of a head lie side by
/// side.
struct Rows {
  int64 example, head, row;
};

struct Problem {
  Rows q, k, v, y;
  int64 mask_example, mask_head, mask_row, mask_key;  ///< steps; 0 where the mask repeats
  int queries, keys, heads, group;                    ///< group: query heads of one key head
  int mask_keys;  ///< keys that the mask tells about; those behind are masked
  int causal_offset;  ///< query i sees keys up to i + offset; greater than all keys: all of them
  int window;         ///< so many keys before the last one that it may see; below 0: all
  int causal;         ///< with `ends`: offsets follow from them
  float scale, softcap;
  const int* ends;  ///< keys of each example; null: all have `keys`
};

/// The problem of one example.
__device__ __forceinline__ Problem of_example(Problem p, int example) {
  if (!p.ends) return p;
  p.keys = p.ends[example];
  p.causal_offset = p.causal ? p.keys - p.queries : p.keys;
  return p;
}

/// What is added to a score: minus infinity where the key is not seen.
__device__ __forceinline__ float hidden(const Problem& p, const ELEMENT* added, const bool* seen,
                                        int example, int head, int query, int key) {
  const float never = -infinity();
  if (key >= p.keys || key > query + p.causal_offset || query >= p.queries) return never;
  if (p.window >= 0 && key < query + p.causal_offset - p.window) return never;
  if (!added && !seen) return 0.0f;
  if (key >= p.mask_keys) return never;
  const int64 at = example * p.mask_example + head * p.mask_head + query * p.mask_row +
                   key * p.mask_key;
  return seen ? (seen[at] ? 0.0f : never) : to_float(added[at]);
}

__device__ __forceinline__ float capped(const Problem& p, float score) {
  score *= p.scale;
  return p.softcap > 0 ? p.softcap * tanhf(score / p.softcap) : score;
}

/// exp(score - top), 0 while nothing was seen.
__device__ __forceinline__ float weight(float score, float top) {
  return score == -infinity() ? 0.0f : expf(score - top);
}

constexpr int kKeys = 32, kQueries = 8;

/// 256 threads; grid (queries / 8, heads, examples).
extern "C" __global__ void __launch_bounds__(32 * kQueries)
    attention_rows(const ELEMENT* __restrict__ q, const ELEMENT* __restrict__ k,
                   const ELEMENT* __restrict__ v, const ELEMENT* __restrict__ added,
                   const bool* __restrict__ seen, ELEMENT* __restrict__ y, Problem problem) {
  const Problem p = of_example(problem, blockIdx.z);
  constexpr int kShare = (HEAD + 31) / 32;
  __shared__ float query[kQueries][HEAD];
  __shared__ float keys[kKeys][HEAD + 1];
  __shared__ ELEMENT values[kKeys][HEAD];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int base = blockIdx.x * kQueries, row = base + warp;
  const int head = blockIdx.y, example = blockIdx.z;
  q += example * p.q.example + head * p.q.head + row * p.q.row;
  k += example * p.k.example + head / p.group * p.k.head;
  v += example * p.v.example + head / p.group * p.v.head;
  for (int i = lane; i < HEAD; i += 32) query[warp][i] = row < p.queries ? to_float(q[i]) : 0.0f;
  float top = -infinity(), total = 0, result[kShare] = {};
  const int last = min(p.keys, base + kQueries + p.causal_offset);
  for (int first = 0; first < last; first += kKeys) {
    __syncthreads();
    for (int i = threadIdx.x; i < kKeys * HEAD; i += blockDim.x) {
      const int key = first + i / HEAD, at = i % HEAD;
      const bool there = key < p.keys;
      keys[i / HEAD][at] = there ? to_float(k[key * p.k.row + at]) : 0.0f;
      values[i / HEAD][at] = there ? v[key * p.v.row + at] : from_float<ELEMENT>(0.0f);
    }
    __syncthreads();
    float score = 0;
    for (int i = 0; i < HEAD; ++i) score += query[warp][i] * keys[lane][i];
    const float more = hidden(p, added, seen, example, head, row, first + lane);
    score = more == -infinity() ? more : capped(p, score) + more;
    const float greatest = Greater()(top, warp_join(score, Greater()));
    const float kept = weight(top, greatest), part = weight(score, greatest);
    total = total * kept + warp_join(part, Plus());
    top = greatest;
#pragma unroll
    for (int s = 0; s < kShare; ++s) result[s] *= kept;
    for (int key = 0; key < kKeys; ++key) {
      const float share = __shfl_sync(0xffffffffu, part, key);
      if (share == 0) continue;
#pragma unroll
      for (int s = 0; s < kShare; ++s)
        if (s * 32 + lane < HEAD) result[s] += share * to_float(values[key][s * 32 + lane]);
    }
  }
  if (row >= p.queries) return;
  y += example * p.y.example + head * p.y.head + row * p.y.row;
#pragma unroll
  for (int s = 0; s < kShare; ++s)
    if (s * 32 + lane < HEAD)
      y[s * 32 + lane] = from_float<ELEMENT>(total > 0 ? result[s] / total : 0.0f);
}

#ifdef TILES
constexpr int kTile = 64, kPad = 8, kSteps = HEAD / 16, kColumns = HEAD / 8;

__device__ __forceinline__ uint32 pair_at(const ELEMENT* at) {
  return *reinterpret_cast<const uint32*>(at);
}

/// Rows [first, first + 64) of `from` to shared memory, 16 bytes by each thread, zeros behind the
/// end; `turned`: element by element to the other order.
template <bool turned>
__device__ __forceinline__ void load_tile(ELEMENT* tile, const ELEMENT* from, int64 row_step,
                                          int first, int rows) {
  for (int i = threadIdx.x; i < kTile * kColumns; i += blockDim.x) {
    const int row = i / kColumns, column = i % kColumns * 8;
    Pack<ELEMENT, 8> pack = {};
    if (first + row < rows) pack = load_pack<8>(from + (first + row) * row_step + column);
    if (turned) {
#pragma unroll
      for (int e = 0; e < 8; ++e) tile[(column + e) * (kTile + kPad) + row] = pack.at[e];
    } else {
      store_pack(tile + row * (HEAD + kPad) + column, pack);
    }
  }
}

/// Joins the value over the four lanes that hold one row.
template <typename Join>
__device__ __forceinline__ float row_join(float value, Join join) {
  value = join(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return join(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

/// 128 threads; grid (queries / 64, heads, examples). All rows begin at multiples of 16 bytes.
extern "C" __global__ void __launch_bounds__(128)
    attention_tiles(const ELEMENT* __restrict__ q, const ELEMENT* __restrict__ k,
                    const ELEMENT* __restrict__ v, const ELEMENT* __restrict__ added,
                    const bool* __restrict__ seen, ELEMENT* __restrict__ y, Problem problem) {
  const Problem p = of_example(problem, blockIdx.z);
  __shared__ __align__(16) ELEMENT keys[kTile * (HEAD + kPad)];
  __shared__ __align__(16) ELEMENT values[HEAD * (kTile + kPad)];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int head = blockIdx.y, example = blockIdx.z, base = blockIdx.x * kTile;
  k += example * p.k.example + head / p.group * p.k.head;
  v += example * p.v.example + head / p.group * p.v.head;
  // The queries pass through the keys' memory into registers.
  load_tile<false>(keys, q + example * p.q.example + head * p.q.head, p.q.row, base, p.queries);
  __syncthreads();
  uint32 query[kSteps][4];
#pragma unroll
  for (int s = 0; s < kSteps; ++s)
#pragma unroll
    for (int r = 0; r < 4; ++r)
      query[s][r] =
          pair_at(keys + (warp * 16 + g + r % 2 * 8) * (HEAD + kPad) + s * 16 + r / 2 * 8 + 2 * t);
  float result[kColumns][4] = {}, top[2] = {-infinity(), -infinity()}, total[2] = {0, 0};
  const int last = min(p.keys, base + kTile + p.causal_offset);
  for (int first = 0; first < last; first += kTile) {
    __syncthreads();
    load_tile<false>(keys, k, p.k.row, first, p.keys);
    load_tile<true>(values, v, p.v.row, first, p.keys);
    __syncthreads();
    float score[kTile / 8][4];
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) score[n][e] = 0;
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        const ELEMENT* at = keys + (n * 8 + g) * (HEAD + kPad) + s * 16 + 2 * t;
        const uint32 b[2] = {pair_at(at), pair_at(at + 8)};
        mma_16x8x16<ELEMENT>(score[n], query[s], b);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = base + warp * 16 + g + half * 8;
      float greatest = top[half];
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& value = score[n][half * 2 + e];
          const float more =
              hidden(p, added, seen, example, head, row, first + n * 8 + 2 * t + e);
          value = more == -infinity() ? more : capped(p, value) + more;
          greatest = Greater()(greatest, value);
        }
      greatest = row_join(greatest, Greater());
      const float kept = weight(top[half], greatest);
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& value = score[n][half * 2 + e];
          value = weight(value, greatest);
          sum += value;
        }
      total[half] = total[half] * kept + row_join(sum, Plus());
      top[half] = greatest;
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
        result[n][half * 2] *= kept;
        result[n][half * 2 + 1] *= kept;
      }
    }
#pragma unroll
    for (int s = 0; s < kTile / 16; ++s) {
      const uint32 a[4] = {mma_pair<ELEMENT>(score[2 * s][0], score[2 * s][1]),
                           mma_pair<ELEMENT>(score[2 * s][2], score[2 * s][3]),
                           mma_pair<ELEMENT>(score[2 * s + 1][0], score[2 * s + 1][1]),
                           mma_pair<ELEMENT>(score[2 * s + 1][2], score[2 * s + 1][3])};
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
        const ELEMENT* at = values + (n * 8 + g) * (kTile + kPad) + s * 16 + 2 * t;
        const uint32 b[2] = {pair_at(at), pair_at(at + 8)};
        mma_16x8x16<ELEMENT>(result[n], a, b);
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = base + warp * 16 + g + half * 8;
    if (row >= p.queries) continue;
    const float factor = total[half] > 0 ? 1 / total[half] : 0.0f;
    ELEMENT* to = y + example * p.y.example + head * p.y.head + row * p.y.row + 2 * t;
#pragma unroll
    for (int n = 0; n < kColumns; ++n)
      *reinterpret_cast<uint32*>(to + n * 8) =
          mma_pair<ELEMENT>(result[n][half * 2] * factor, result[n][half * 2 + 1] * factor);
  }
}
#endif

#ifdef CACHED
#include "fault.cuh"

/// New tokens of one call: `rows` says where they lie, `past` how many came before when `ends` does
/// not; a cache has room for `capacity`. Pairs of the first 2 * half elements are rotated.
struct Cache {
  Rows rows;
  int heads, length, past, past_capacity, capacity, half, interleaved;
};

/// Element e of a head rotated by one row of the tables.
__device__ __forceinline__ float rotated(const ELEMENT* head, int e, const ELEMENT* cosines,
                                         const ELEMENT* sines, const Cache& c) {
  const float x = to_float(head[e]);
  if (e >= 2 * c.half) return x;
  const int pair = c.interleaved ? e / 2 : e % c.half;
  const bool upper = c.interleaved ? e % 2 : e >= c.half;
  const int other = c.interleaved ? e ^ 1 : upper ? e - c.half : e + c.half;
  const float turned = to_float(head[other]) * to_float(sines[pair]);
  return x * to_float(cosines[pair]) + (upper ? turned : -turned);
}

/// cache [examples, heads, capacity, HEAD]: what was there before, and `fresh` behind it. `before`,
/// the tables and `ends` may be null.
extern "C" __global__ void __launch_bounds__(256)
    append(const ELEMENT* __restrict__ before, const ELEMENT* __restrict__ fresh,
           ELEMENT* __restrict__ cache, const ELEMENT* __restrict__ cosines,
           const ELEMENT* __restrict__ sines, const int* __restrict__ ends, Size count, Cache c) {
  each_element(count, [&](Size i) {
    const int e = i % HEAD, at = i / HEAD % c.capacity, head = i / HEAD / c.capacity % c.heads;
    const int example = i / HEAD / c.capacity / c.heads;
    const int past = ends ? ends[example] - c.length : c.past;
    const int token = at - past;
    ELEMENT value = from_float<ELEMENT>(0.0f);
    if (token >= 0 && token < c.length) {
      const ELEMENT* from = fresh + example * c.rows.example + head * c.rows.head + token * c.rows.row;
      value = cosines ? from_float<ELEMENT>(rotated(from, e, cosines + int64(at) * c.half,
                                                    sines + int64(at) * c.half, c))
                      : from[e];
    } else if (before && at < c.past_capacity) {
      value = before[((int64(example) * c.heads + head) * c.past_capacity + at) * HEAD + e];
    }
    cache[i] = value;
  });
}

/// x, in `rows`, to y [examples, length, heads, HEAD].
extern "C" __global__ void __launch_bounds__(256)
    rotate(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y,
           const ELEMENT* __restrict__ cosines, const ELEMENT* __restrict__ sines,
           const int* __restrict__ ends, Size count, Cache c) {
  each_element(count, [&](Size i) {
    const int e = i % HEAD, head = i / HEAD % c.heads, token = i / HEAD / c.heads % c.length;
    const int example = i / HEAD / c.heads / c.length;
    const int64 at = int64(ends[example] - c.length + token) * c.half;
    y[i] = from_float<ELEMENT>(
        rotated(x + example * c.rows.example + head * c.rows.head + token * c.rows.row, e,
                cosines + at, sines + at, c));
  });
}

/// ends[n]: how many keys example n has. With `total` lengths[n] is the last one's index, but all
/// count `least` in a prompt (where the total is that); else it is their number. Ends outside
/// [least, most], or beyond the total, are reported.
extern "C" __global__ void __launch_bounds__(256)
    set_ends(const INDEX* __restrict__ lengths, const INDEX* __restrict__ total,
             int* __restrict__ ends, int examples, int least, int most, FaultRecord* faults,
             int step) {
  for (int n = threadIdx.x; n < examples; n += blockDim.x) {
    const int64 given = lengths[n], whole = total ? int64(*total) : int64(most);
    int64 end = !total ? given : whole == least ? int64(least) : given + 1;
    if (end < least || end > most || end > whole) {
      report_fault(faults, 1, step, given);
      end = end < least ? least : most;
    }
    ends[n] = static_cast<int>(end);
  }
}
#endif
