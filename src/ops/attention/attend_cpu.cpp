#include "ops/attention/attend_cpu.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "base/threads.h"

namespace dais {

#define DAIS_ATTENTION_LEVEL(level)                                                           \
  namespace level {                                                                           \
  void attention_scores(const float*, const float*, int64_t, int64_t, int64_t, float*);       \
  void attention_values(const float*, const float*, int64_t, int64_t, int64_t, float*);       \
  float attention_softmax(float*, int64_t, int64_t, int64_t, float, float, const float*);     \
  void attention_scale(float*, int64_t, float);                                               \
  void rotate_head(const float*, int64_t, int64_t, bool, const float*, const float*, float*); \
  }
DAIS_ATTENTION_LEVEL(plain)
DAIS_ATTENTION_LEVEL(avx2)
DAIS_ATTENTION_LEVEL(avx512)
#undef DAIS_ATTENTION_LEVEL

namespace {

constexpr int64_t kFewQueries = 4, kMaxGroup = 64;
constexpr int64_t kQueryBlock = 60;
constexpr int64_t kKeyChunk = 64;

struct Loops {
  void (*scores)(const float*, const float*, int64_t, int64_t, int64_t, float*);
  void (*values)(const float*, const float*, int64_t, int64_t, int64_t, float*);
  float (*softmax)(float*, int64_t, int64_t, int64_t, float, float, const float*);
  void (*scale)(float*, int64_t, float);
  RotateHead rotate;
};

#define DAIS_ATTENTION_LOOPS(level)                                             \
  {                                                                             \
    level::attention_scores, level::attention_values, level::attention_softmax, \
        level::attention_scale, level::rotate_head                              \
  }
const Loops& loops(Isa isa) {
  static constexpr Loops levels[] = {DAIS_ATTENTION_LOOPS(plain), DAIS_ATTENTION_LOOPS(avx2),
                                     DAIS_ATTENTION_LOOPS(avx512)};
  return levels[std::min(static_cast<int>(isa), 2)];
}
#undef DAIS_ATTENTION_LOOPS

}  // namespace

RotateHead rotate_head_loop(Isa isa) { return loops(isa).rotate; }

/// Products of one head are too thin for the tile unit: cutting factors up and storing scores costs
/// as much as the FMA loops take for all.
Attend::Attend(Isa isa, const AttendSizes& sizes)
    : isa_(std::min(isa, Isa::avx512)), sizes_(sizes) {
  const AttendSizes& s = sizes_;
  group_ = s.kv_heads > 0 ? s.q_heads / s.kv_heads : 1;
  few_ = s.q_length <= kFewQueries && group_ <= kMaxGroup;
  const double work = 4.0 * static_cast<double>(s.batch * s.q_heads * s.q_length) *
                      static_cast<double>(s.total * s.head);
  const auto useful = static_cast<int64_t>(std::max(1.0, work / 2e5));
  parts_ = std::max<int64_t>(
      1, std::min({s.batch * s.kv_heads, static_cast<int64_t>(team_size()), useful}));
  if (few_)
    part_floats_ = (s.q_length * group_ + 1) * s.total;
  else
    part_floats_ = cpu::gemm_packed_floats(isa, s.head, s.total) + (kQueryBlock + 1) * s.total;
}

size_t Attend::scratch_floats() const { return static_cast<size_t>(parts_ * part_floats_); }

void Attend::run(const AttendPointers& pointers, float* scratch) const {
  const int64_t tasks = sizes_.batch * sizes_.kv_heads;
  std::atomic<int64_t> next{0};  // as cores may be of unequal speed
  parallel_for(parts_, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part)
      for (int64_t task = next.fetch_add(1); task < tasks; task = next.fetch_add(1))
        run_task(pointers, task / sizes_.kv_heads, task % sizes_.kv_heads,
                 scratch + part * part_floats_);
  });
}

void Attend::run_task(const AttendPointers& p, int64_t batch, int64_t kv, float* scratch) const {
  if (few_) return run_few(p, batch, kv, scratch);
  run_many(p, batch, kv, scratch);
}

/// Writes rows [first, last) of one head of the present keys or values: the past, then what this
/// call adds, then zeros.
void Attend::append(const AttendPointers& p, bool keys, int64_t batch, int64_t kv, int64_t first,
                    int64_t last) const {
  const AttendSizes& s = sizes_;
  const int64_t width = keys ? s.head : s.v_head, line = batch * s.kv_heads + kv;
  const float* old = keys ? p.past_k : p.past_v;
  float* to = keys ? p.present_k : p.present_v;
  const bool in_place = old == to;
  to += line * room(keys) * width;
  const HeadStrides& at = keys ? s.k : s.v;
  const float* fresh = (keys ? p.k : p.v) + batch * at.batch + kv * at.head;
  const int64_t past = p.past[batch], added = past + s.new_length;
  for (int64_t row = first; row < last;) {
    if (row >= past && row < added) {
      const float* from = fresh + (row - past) * at.row;
      if (keys && p.cos)
        loops(isa_).rotate(from, p.half, width, p.interleaved, p.cos + row * p.half,
                           p.sin + row * p.half, to + row * width);
      else
        std::memcpy(to + row * width, from, sizeof(float) * static_cast<size_t>(width));
      ++row;
      continue;
    }
    // Old rows behind the new ones stay, as the cache may hold more than is in use.
    const int64_t limit = std::min(last, row < past ? past : s.capacity);
    const int64_t held = old ? std::clamp(s.past_capacity, row, limit) : row;
    if (held > row && !in_place)
      std::memcpy(to + row * width, old + (line * s.past_capacity + row) * width,
                  sizeof(float) * static_cast<size_t>((held - row) * width));
    if (limit > held)
      std::memset(to + held * width, 0,
                  sizeof(float) * static_cast<size_t>((limit - held) * width));
    row = limit;
  }
}

/// Keys from 0 that the query may see at most.
int64_t Attend::visible(const AttendPointers& p, int64_t batch, int64_t query) const {
  int64_t end = sizes_.total;
  if (sizes_.mask_width >= 0) end = std::min(end, sizes_.mask_width);
  if (sizes_.causal) end = std::min(end, p.past[batch] + query + 1);
  return std::max<int64_t>(end, 0);
}

float Attend::softmax(const AttendPointers& p, int64_t batch, int64_t head, int64_t query,
                      int64_t total, float* scores, float* mask_row) const {
  const AttendSizes& s = sizes_;
  const int64_t end = std::min(total, visible(p, batch, query));
  const int64_t low =
      s.window >= 0 ? std::clamp<int64_t>(p.past[batch] + query - s.window, 0, end) : 0;
  const int64_t at =
      batch * s.mask_strides[0] + head * s.mask_strides[1] + query * s.mask_strides[2];
  const float* mask = p.mask ? p.mask + at : nullptr;
  if (p.allowed) {
    for (int64_t t = low; t < end; ++t)
      mask_row[t] = p.allowed[at + t] ? 0 : -std::numeric_limits<float>::infinity();
    mask = mask_row;
  }
  return loops(isa_).softmax(scores, low, end, total, s.scale, s.softcap, mask);
}

void Attend::run_few(const AttendPointers& p, int64_t batch, int64_t kv, float* scratch) const {
  const AttendSizes& s = sizes_;
  const Loops& loop = loops(isa_);
  const int64_t queries = s.q_length * group_;
  const bool cached = p.present_k != nullptr;
  const int64_t line = batch * s.kv_heads + kv, rows = cached ? s.capacity : s.total;
  const float* k =
      cached ? p.present_k + line * room(true) * s.head : p.k + batch * s.k.batch + kv * s.k.head;
  const float* v = cached ? p.present_v + line * room(false) * s.v_head
                          : p.v + batch * s.v.batch + kv * s.v.head;
  const int64_t k_row = cached ? s.head : s.k.row, v_row = cached ? s.v_head : s.v.row;
  const auto q_of = [&](int64_t i) {
    return p.q + batch * s.q.batch + (kv * group_ + i % group_) * s.q.head + i / group_ * s.q.row;
  };
  const auto y_of = [&](int64_t i) {
    return p.y + batch * s.y.batch + (kv * group_ + i % group_) * s.y.head + i / group_ * s.y.row;
  };
  const int64_t reach = visible(p, batch, s.q_length - 1);
  for (int64_t first = 0; first < rows; first += kKeyChunk) {
    const int64_t last = std::min(rows, first + kKeyChunk), seen = std::min(last, reach);
    if (cached) append(p, true, batch, kv, first, last);
    for (int64_t i = 0; i < queries && seen > first; ++i)
      loop.scores(q_of(i), k + first * k_row, k_row, seen - first, s.head,
                  scratch + i * s.total + first);
  }
  float* mask_row = scratch + queries * s.total;
  float factors[kFewQueries * kMaxGroup];
  for (int64_t i = 0; i < queries; ++i) {
    factors[i] = softmax(p, batch, kv * group_ + i % group_, i / group_, s.total,
                         scratch + i * s.total, mask_row);
    std::memset(y_of(i), 0, sizeof(float) * static_cast<size_t>(s.v_head));
  }
  for (int64_t first = 0; first < rows; first += kKeyChunk) {
    const int64_t last = std::min(rows, first + kKeyChunk), seen = std::min(last, reach);
    if (cached) append(p, false, batch, kv, first, last);
    for (int64_t i = 0; i < queries && seen > first; ++i)
      loop.values(scratch + i * s.total + first, v + first * v_row, v_row, seen - first, s.v_head,
                  y_of(i));
  }
  for (int64_t i = 0; i < queries; ++i) loop.scale(y_of(i), s.v_head, factors[i]);
}

void Attend::run_many(const AttendPointers& p, int64_t batch, int64_t kv, float* scratch) const {
  const AttendSizes& s = sizes_;
  const bool cached = p.present_k != nullptr;
  const int64_t line = batch * s.kv_heads + kv;
  if (cached) {
    append(p, true, batch, kv, 0, s.capacity);
    append(p, false, batch, kv, 0, s.capacity);
  }
  const float* k =
      cached ? p.present_k + line * room(true) * s.head : p.k + batch * s.k.batch + kv * s.k.head;
  const float* v = cached ? p.present_v + line * room(false) * s.v_head
                          : p.v + batch * s.v.batch + kv * s.v.head;
  float* packed = scratch;
  float* scores = scratch + cpu::gemm_packed_floats(isa_, s.head, s.total);
  float* mask_row = scores + kQueryBlock * s.total;
  cpu::gemm_pack_serial(isa_, k, 1, cached ? s.head : s.k.row, s.head, s.total, packed);
  for (int64_t head = kv * group_; head < (kv + 1) * group_; ++head)
    for (int64_t first = 0; first < s.q_length; first += kQueryBlock) {
      const int64_t count = std::min(kQueryBlock, s.q_length - first);
      const int64_t total = std::max<int64_t>(1, visible(p, batch, first + count - 1));
      cpu::GemmBlock product{.a = p.q + batch * s.q.batch + head * s.q.head + first * s.q.row,
                             .a_row = s.q.row,
                             .c = scores,
                             .c_row = total,
                             .rows = count,
                             .columns = total,
                             .depth = s.head};
      cpu::gemm_set_packed(isa_, product, packed);
      cpu::gemm_serial(isa_, product);
      float factors[kQueryBlock];
      for (int64_t i = 0; i < count; ++i)
        factors[i] = softmax(p, batch, head, first + i, total, scores + i * total, mask_row);
      cpu::GemmBlock sums{.a = scores,
                          .a_row = total,
                          .c = p.y + batch * s.y.batch + head * s.y.head + first * s.y.row,
                          .c_row = s.y.row,
                          .rows = count,
                          .columns = s.v_head,
                          .depth = total};
      cpu::gemm_set_plain(isa_, sums, v, cached ? s.v_head : s.v.row);
      cpu::gemm_serial(isa_, sums);
      for (int64_t i = 0; i < count; ++i)
        loops(isa_).scale(sums.c + i * s.y.row, s.v_head, factors[i]);
    }
}

}  // namespace dais
