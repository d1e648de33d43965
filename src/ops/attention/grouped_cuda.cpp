// Grouped attention on the device: how many keys each example has is found there, new keys and
// values (rotated by their position) are put behind the cache's, then the kernels of attention run.
#include "ops/attention/grouped_cuda.h"

#include <algorithm>
#include <cmath>

#include "ops/attention/attention.h"
#include "ops/attention/attention_parts_cuda.h"

namespace dais {
namespace {

/// The sizes of one call.
struct Grouped {
  int64_t examples, length, heads, kv_heads, size, capacity, past_capacity, half;
  int64_t q_row;  ///< elements between tokens of the query's input
  bool joined;    ///< query, key and value side by side
};

Grouped grouped_of(const Node& node, const Sizes& sizes) {
  const auto& attrs = *node.as<GroupQueryAttention>();
  const Shape& q = sizes.in[0];
  const bool joined = !node.has(1);
  const int64_t parts = attrs.num_heads + (joined ? 2 * attrs.kv_num_heads : 0);
  return {.examples = q[0],
          .length = q[1],
          .heads = attrs.num_heads,
          .kv_heads = attrs.kv_num_heads,
          .size = q[2] / parts,
          .capacity = sizes.out[1][2],
          .past_capacity = node.has(3) ? sizes.in[3][2] : 0,
          .half = attrs.do_rotary ? sizes.in[7][1] : 0,
          .q_row = q[2],
          .joined = joined};
}

AttentionCache cache_of(const Node& node, const Grouped& g, bool query) {
  const int64_t heads = query ? g.heads : g.kv_heads;
  const int64_t row = query || g.joined ? g.q_row : g.kv_heads * g.size;
  AttentionCache c;
  c.rows = {g.length * row, g.size, row};
  c.heads = static_cast<int>(heads);
  c.length = static_cast<int>(g.length);
  c.past_capacity = static_cast<int>(g.past_capacity);
  c.capacity = static_cast<int>(g.capacity);
  c.half = static_cast<int>(g.half);
  c.interleaved = node.as<GroupQueryAttention>()->rotary_interleaved;
  return c;
}

size_t ends_bytes(const Grouped& g) {
  return (static_cast<size_t>(g.examples) * sizeof(int) + 255) / 256 * 256;
}

/// Scratch: the examples' ends, then the rotated queries.
size_t scratch_bytes(const Node& node, const Sizes& sizes) {
  const Grouped g = grouped_of(node, sizes);
  const auto queries = static_cast<size_t>(g.examples * g.length * g.heads * g.size);
  return ends_bytes(g) + (g.half > 0 ? queries * dtype_size(node.in[0]->type.dtype) : 0);
}

AttentionProblem problem_of(const Node& node, const Grouped& g) {
  const auto& attrs = *node.as<GroupQueryAttention>();
  AttentionProblem p;
  const int64_t row = g.heads * g.size;
  p.y = {g.length * row, g.size, row};
  p.q = g.half > 0 ? p.y : cache_of(node, g, true).rows;
  p.k = p.v = {g.kv_heads * g.capacity * g.size, g.capacity * g.size, g.size};
  p.queries = static_cast<int>(g.length);
  p.keys = static_cast<int>(g.capacity);
  p.heads = static_cast<int>(g.heads);
  p.group = static_cast<int>(g.heads / g.kv_heads);
  p.causal = 1;
  p.window = static_cast<int>(attrs.local_window_size);
  p.scale = attrs.scale != 0 ? attrs.scale
                             : static_cast<float>(1 / std::sqrt(static_cast<double>(g.size)));
  p.softcap = attrs.softcap;
  return p;
}

template <bool tiles>
void run(const cuda::RowCall& call) noexcept {
  const Node& node = call.node;
  const Grouped g = grouped_of(node, call.sizes);
  if (g.examples * g.length == 0) return;
  auto* scratch = static_cast<std::byte*>(call.arguments.scratch);
  void* const ends = scratch;
  const bool rotary = g.half > 0;
  const void* cosines = rotary ? call.in(7) : nullptr;
  const void* sines = rotary ? call.in(8) : nullptr;
  // No position may lie outside the tables.
  const int64_t most = rotary ? std::min(g.capacity, call.sizes.in[7][0]) : g.capacity;
  cuda::Grid one;
  one.threads = 256;
  call.launch(static_cast<size_t>(AttentionPart::set_ends), one, call.in(5), call.in(6), ends,
              static_cast<int>(g.examples), static_cast<int>(g.length), static_cast<int>(most),
              call.queue().faults(), call.queue().step());
  const size_t element = dtype_size(node.in[0]->type.dtype);
  const auto* q = static_cast<const std::byte*>(call.in(0));
  const void *k = call.in(1), *v = call.in(2);
  if (g.joined) {
    k = q + static_cast<size_t>(g.heads * g.size) * element;
    v = q + static_cast<size_t>((g.heads + g.kv_heads) * g.size) * element;
  }
  const AttentionCache cache = cache_of(node, g, false);
  const int64_t elements = g.examples * g.kv_heads * g.capacity * g.size;
  launch_append(call, cache, elements, node.has(3) ? call.in(3) : nullptr, k, call.out(1), cosines,
                sines, ends);
  launch_append(call, cache, elements, node.has(4) ? call.in(4) : nullptr, v, call.out(2), nullptr,
                nullptr, ends);
  const void* queries = q;
  if (rotary) {
    void* const turned = scratch + ends_bytes(g);
    const int64_t count = g.examples * g.length * g.heads * g.size;
    call.launch(static_cast<size_t>(AttentionPart::rotate), cuda::grid_of(count),
                static_cast<const void*>(q), turned, cosines, sines, static_cast<const void*>(ends),
                cuda::size32(count), cache_of(node, g, true));
    queries = turned;
  }
  AttentionProblem p = problem_of(node, g);
  p.ends = ends;
  launch_attention(call, p, g.examples, tiles, queries, call.out(1), call.out(2), nullptr, nullptr);
}

bool takes(const Node& node, const Sizes& sizes) {
  const auto& attrs = *node.as<GroupQueryAttention>();
  const int64_t parts = attrs.num_heads + (node.has(1) ? 0 : 2 * attrs.kv_num_heads);
  if (sizes.in[0].rank() != 3 || sizes.in[0][2] % parts != 0) return false;
  const Grouped g = grouped_of(node, sizes);
  const Shape fresh{g.examples, g.length, g.kv_heads * g.size};
  const Shape cache{g.examples, g.kv_heads, g.past_capacity, g.size};
  if (node.has(1) && !(sizes.in[1] == fresh && sizes.in[2] == fresh)) return false;
  if (node.has(3) && !(sizes.in[3] == cache && sizes.in[4] == cache)) return false;
  if (sizes.in[5].elements() != g.examples || sizes.in[6].elements() != 1) return false;
  if (attrs.do_rotary &&
      (sizes.in[7].rank() != 2 || !(sizes.in[8] == sizes.in[7]) || 2 * g.half > g.size))
    return false;
  return g.heads <= 65535 && g.examples <= 65535 &&
         g.examples * g.kv_heads * g.capacity * g.size < (int64_t{1} << 31);
}

/// The head's size when inference knows it, else 0.
int64_t head_size(const KernelQuery& query) {
  const auto& attrs = query.attrs<GroupQueryAttention>();
  if (!query.in(0).ranked() || query.in(0).shape->size() != 3) return 0;
  const auto row = query.in(0).shape->at(2).constant();
  const int64_t parts = attrs.num_heads + (query.node.has(1) ? 0 : 2 * attrs.kv_num_heads);
  return row && parts > 0 && *row % parts == 0 ? *row / parts : 0;
}

Verdict accepts(const KernelQuery& query) {
  const Node& node = query.node;
  for (const size_t i : {9, 10, 11})
    if (node.has(i)) return no("positions, a bias or sinks are given");
  if (query.attrs<GroupQueryAttention>().smooth_softmax) return no("a smooth softmax");
  if (node.has(3) != node.has(4)) return no("one of two caches");
  if (node.outs.size() != 3) return no("present outputs are left out");
  if (const Verdict floats = cuda::accepts_floats(query); !floats) return floats;
  for (const size_t i : {1, 2, 3, 4, 7, 8})
    if (node.has(i) && query.in_dtype(i) != query.in_dtype(0)) return no("element types differ");
  if (query.in_dtype(5) != query.in_dtype(6) ||
      (query.in_dtype(5) != DType::i32 && query.in_dtype(5) != DType::i64))
    return no("lengths of another type");
  const int64_t head = head_size(query);
  if (head == 0 || head > 256) return no("heads of unknown size, or of more than 256");
  // Shared memory without asking for more: 48 KiB.
  if (head > 128 && query.in_dtype(0) == DType::f32) return no("f32 heads of more than 128");
  return yes();
}

Verdict accepts_tiles(const KernelQuery& query) {
  if (const Verdict any = accepts(query); !any) return any;
  return accepts_attention_tiles(query, head_size(query));
}

template <bool tiles>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  AttentionText text =
      attention_text(query.in_dtype(0), head_size(query), true, query.in_dtype(5), tiles);
  return make_attention(query, std::move(text), run<tiles>, scratch_bytes, takes);
}

}  // namespace

void register_grouped_cuda(Kernels& kernels) {
  kernels.add({.name = "group_query_attention/cuda tiles",
               .op = &GroupQueryAttention::op,
               .accepts = accepts_tiles,
               .prepare = prepare<true>,
               .priority = 1});
  kernels.add({.name = "group_query_attention/cuda",
               .op = &GroupQueryAttention::op,
               .accepts = accepts,
               .prepare = prepare<false>});
}

}  // namespace dais
