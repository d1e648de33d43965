// The parts of attention that are no large matrix product: scores and weighted sums for few
// queries, which stream keys and values once (bound by memory), softmax of score rows under a mask,
// and rotary embedding.

#include "backends/cpu/simd.h"

namespace dais::DAIS_ISA {
namespace {

constexpr int kKeys = 8;

#if DAIS_ISA_LEVEL >= 1
inline __m256 folded(Vf v) {
#if DAIS_ISA_LEVEL >= 2
  return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
#else
  return v;
#endif
}

/// Sums of eight vectors, in order.
inline void store_sums(const Vf (&v)[kKeys], float* to) {
  __m256 h[4];
  for (int i = 0; i < 4; ++i) h[i] = _mm256_hadd_ps(folded(v[2 * i]), folded(v[2 * i + 1]));
  const __m256 low = _mm256_hadd_ps(h[0], h[1]), high = _mm256_hadd_ps(h[2], h[3]);
  const __m256 left = _mm256_permute2f128_ps(low, high, 0x20);
  const __m256 right = _mm256_permute2f128_ps(low, high, 0x31);
  _mm256_storeu_ps(to, _mm256_add_ps(left, right));
}
#else
inline void store_sums(const Vf (&v)[kKeys], float* to) {
  for (int i = 0; i < kKeys; ++i) to[i] = sum(v[i]);
}
#endif

inline float dot(const float* a, const float* b, int64_t size) {
  Vf total = all(0);
  for (int64_t i = 0; i < size; i += kLanes)
    total = fma(load_first(a + i, size - i), load_first(b + i, size - i), total);
  return sum(total);
}

/// Weighted sums of a block of `vectors` vectors of V for one query.
template <int vectors>
void add_values(const float* p, const float* v, int64_t v_row, int64_t keys, float* y) {
  Vf even[vectors], odd[vectors];
  for (int i = 0; i < vectors; ++i) {
    even[i] = load(y + i * kLanes);
    odd[i] = all(0);
  }
  int64_t t = 0;
  for (; t + 2 <= keys; t += 2, v += 2 * v_row) {
    const Vf first = all(p[t]), second = all(p[t + 1]);
    for (int i = 0; i < vectors; ++i) {
      even[i] = fma(first, load(v + i * kLanes), even[i]);
      odd[i] = fma(second, load(v + v_row + i * kLanes), odd[i]);
    }
  }
  if (t < keys)
    for (int i = 0; i < vectors; ++i) even[i] = fma(all(p[t]), load(v + i * kLanes), even[i]);
  for (int i = 0; i < vectors; ++i) store(y + i * kLanes, add(even[i], odd[i]));
}

void add_values_tail(const float* p, const float* v, int64_t v_row, int64_t keys, int64_t count,
                     float* y) {
  Vf total = load_first(y, count);
  for (int64_t t = 0; t < keys; ++t, v += v_row)
    total = fma(all(p[t]), load_first(v, count), total);
  store_first(y, total, count);
}

}  // namespace

/// s[t] = q . k[t].
void attention_scores(const float* q, const float* k, int64_t k_row, int64_t keys, int64_t size,
                      float* s) {
  int64_t t = 0;
  for (; t + kKeys <= keys; t += kKeys) {
    const float* rows = k + t * k_row;
    Vf acc[kKeys];
    for (int j = 0; j < kKeys; ++j) acc[j] = all(0);
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      const Vf x = load(q + i);
      for (int j = 0; j < kKeys; ++j) acc[j] = fma(x, load(rows + j * k_row + i), acc[j]);
    }
    if (i < size) {
      const Vf x = load_first(q + i, size - i);
      for (int j = 0; j < kKeys; ++j)
        acc[j] = fma(x, load_first(rows + j * k_row + i, size - i), acc[j]);
    }
    store_sums(acc, s + t);
  }
  for (; t < keys; ++t) s[t] = dot(q, k + t * k_row, size);
}

/// y += sum of p[t] * v[t].
void attention_values(const float* p, const float* v, int64_t v_row, int64_t keys, int64_t size,
                      float* y) {
  int64_t i = 0;
  for (; i + 4 * kLanes <= size; i += 4 * kLanes) add_values<4>(p, v + i, v_row, keys, y + i);
  for (; i + kLanes <= size; i += kLanes) add_values<1>(p, v + i, v_row, keys, y + i);
  if (i < size) add_values_tail(p, v + i, v_row, keys, size - i, y + i);
}

/// Scores of one query become exp(softcap(scale * s) + mask - largest) in [low, end) and 0 outside
/// (up to `total`). Gives 1 / sum, or 0 when all keys are hidden. `mask` may be null.
float attention_softmax(float* s, int64_t low, int64_t end, int64_t total, float scale,
                        float softcap, const float* mask) {
  for (int64_t t = 0; t < low; ++t) s[t] = 0;
  for (int64_t t = end; t < total; ++t) s[t] = 0;
  if (low >= end) {
    for (int64_t t = 0; t < total; ++t) s[t] = 0;
    return 0;
  }
  const Vf factor = all(scale), hidden = all(-__builtin_inff());
  Vf top = hidden;
  const auto score = [&](int64_t t, int64_t count) __attribute__((always_inline)) {
    Vf v = mul(load_first(s + t, count), factor);
    if (softcap > 0) v = mul(tanh(div(v, all(softcap))), all(softcap));
    if (mask) v = add(v, load_first(mask + t, count));
    store_first(s + t, v, count);
    return v;
  };
  int64_t t = low;
  for (; t + kLanes <= end; t += kLanes) top = max(score(t, kLanes), top);
  float most = largest(top);
  if (t < end) {
    score(t, end - t);
    for (int64_t i = t; i < end; ++i) most = s[i] > most ? s[i] : most;
  }
  if (most == -__builtin_inff()) {
    for (t = low; t < end; ++t) s[t] = 0;
    return 0;
  }
  const Vf shift = all(most);
  Vf sums = all(0);
  for (t = low; t + kLanes <= end; t += kLanes) {
    const Vf e = exp(sub(load(s + t), shift));
    store(s + t, e);
    sums = add(sums, e);
  }
  float all_of_it = sum(sums);
  if (t < end) {
    store_first(s + t, exp(sub(load_first(s + t, end - t), shift)), end - t);
    for (; t < end; ++t) all_of_it += s[t];
  }
  return 1 / all_of_it;
}

/// y *= factor.
void attention_scale(float* y, int64_t size, float factor) {
  for (int64_t i = 0; i < size; i += kLanes)
    store_first(y + i, mul(load_first(y + i, size - i), all(factor)), size - i);
}

/// Rotates the first 2 * half elements of a head and copies the rest. from may be to.
void rotate_head(const float* from, int64_t half, int64_t size, bool interleaved, const float* cos,
                 const float* sin, float* to) {
  if (interleaved) {
    for (int64_t i = 0; i < half; ++i) {
      const float a = from[2 * i], b = from[2 * i + 1];
      to[2 * i] = cos[i] * a - sin[i] * b;
      to[2 * i + 1] = sin[i] * a + cos[i] * b;
    }
  } else {
    for (int64_t i = 0; i < half; i += kLanes) {
      const int64_t count = half - i;
      const Vf a = load_first(from + i, count), b = load_first(from + half + i, count);
      const Vf c = load_first(cos + i, count), s = load_first(sin + i, count);
      store_first(to + i, sub(mul(c, a), mul(s, b)), count);
      store_first(to + half + i, add(mul(s, a), mul(c, b)), count);
    }
  }
  for (int64_t i = 2 * half; i < size; ++i) to[i] = from[i];
}

}  // namespace dais::DAIS_ISA
