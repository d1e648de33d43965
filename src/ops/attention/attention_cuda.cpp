#include <cmath>
#include <limits>

#include "ops/attention/attention.h"
#include "ops/attention/attention_parts_cuda.h"
#include "ops/attention/grouped_cuda.h"
#include "ops/attention/linear_cuda.h"
#include "ops/strided.h"

namespace dais {
namespace {

/// [N, heads, length, size], or [N, length, heads * size].
struct Heads {
  int64_t examples, heads, length, size;
  AttentionRows rows;
};
Heads heads_of(const Shape& shape, int64_t heads) {
  if (shape.rank() == 4)
    return {shape[0],
            shape[1],
            shape[2],
            shape[3],
            {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3]}};
  const int64_t size = shape[2] / heads;
  return {shape[0], heads, shape[1], size, {shape[1] * shape[2], size, shape[2]}};
}

/// Whether keys and values go through a cache before they are used.
bool is_cached(const Node& node) { return node.has(4) || node.outs.size() > 1; }

int64_t past_of(const Node& node, const Sizes& sizes) { return node.has(4) ? sizes.in[4][2] : 0; }

AttentionProblem problem_of(const Node& node, const Sizes& sizes) {
  const auto& attrs = *node.as<Attention>();
  const Heads q = heads_of(sizes.in[0], attrs.q_num_heads);
  const Heads k = heads_of(sizes.in[1], attrs.kv_num_heads);
  const Heads v = heads_of(sizes.in[2], attrs.kv_num_heads);
  const int64_t past = past_of(node, sizes), keys = past + k.length;
  AttentionProblem p;
  p.q = q.rows;
  p.k = k.rows;
  p.v = v.rows;
  if (is_cached(node)) p.k = p.v = {k.heads * keys * k.size, keys * k.size, k.size};
  p.y = heads_of(sizes.out[0], attrs.q_num_heads).rows;
  p.queries = static_cast<int>(q.length);
  p.keys = static_cast<int>(keys);
  p.heads = static_cast<int>(q.heads);
  p.group = static_cast<int>(q.heads / std::max<int64_t>(k.heads, 1));
  p.causal = attrs.is_causal;
  p.causal_offset = attrs.is_causal ? static_cast<int>(past) : p.keys;
  p.scale = attrs.scale.value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(q.size))));
  p.softcap = attrs.softcap;
  if (node.has(3)) {
    const Shape& mask = sizes.in[3];
    const int64_t width = mask.rank() == 0 ? 1 : mask.back();
    const Strides steps =
        broadcast_strides(mask, Shape{q.examples, q.heads, q.length, std::max<int64_t>(width, 1)});
    p.mask_example = steps[0];
    p.mask_head = steps[1];
    p.mask_row = steps[2];
    p.mask_key = width == 1 ? 0 : 1;
    p.mask_keys = width == 1 ? p.keys : static_cast<int>(width);
  }
  return p;
}

/// One cache of keys or values, with its tail of new tokens.
AttentionCache cache_of(const Node& node, const Sizes& sizes, size_t input) {
  const Heads fresh = heads_of(sizes.in[input], node.as<Attention>()->kv_num_heads);
  AttentionCache c;
  c.rows = fresh.rows;
  c.heads = static_cast<int>(fresh.heads);
  c.length = static_cast<int>(fresh.length);
  c.past = c.past_capacity = static_cast<int>(past_of(node, sizes));
  c.capacity = c.past + c.length;
  return c;
}

int64_t cache_elements(const Node& node, const Sizes& sizes) {
  const Heads k = heads_of(sizes.in[1], node.as<Attention>()->kv_num_heads);
  return k.examples * k.heads * (past_of(node, sizes) + k.length) * k.size;
}

/// Scratch: the caches that are no outputs, then the examples' ends.
size_t scratch_bytes(const Node& node, const Sizes& sizes) {
  const auto cache =
      static_cast<size_t>(cache_elements(node, sizes)) * dtype_size(node.in[0]->type.dtype);
  const size_t rounded = (cache + 255) / 256 * 256;
  size_t out = is_cached(node) ? rounded * (3 - std::min<size_t>(node.outs.size(), 3)) : 0;
  if (node.has(6)) out += static_cast<size_t>(sizes.in[0][0]) * sizeof(int);
  return out;
}

template <bool tiles>
void run(const cuda::RowCall& call) noexcept {
  const Node& node = call.node;
  AttentionProblem p = problem_of(node, call.sizes);
  const int64_t examples = call.sizes.in[0][0];
  if (call.sizes.out[0].elements() == 0 && node.outs.size() == 1) return;
  const void *k = call.in(1), *v = call.in(2);
  auto* scratch = static_cast<std::byte*>(call.arguments.scratch);
  if (is_cached(node)) {
    const int64_t elements = cache_elements(node, call.sizes);
    const size_t bytes = static_cast<size_t>(elements) * dtype_size(node.in[0]->type.dtype);
    const auto join = [&](size_t input) -> const void* {
      void* to = node.outs.size() > input ? call.out(input) : scratch;
      if (to == scratch) scratch += (bytes + 255) / 256 * 256;
      launch_append(call, cache_of(node, call.sizes, input), elements,
                    node.has(4) ? call.in(input + 3) : nullptr, call.in(input), to, nullptr,
                    nullptr, nullptr);
      return to;
    };
    k = join(1);
    v = join(2);
  }
  if (node.has(6)) {
    cuda::Grid one;
    one.threads = 256;
    p.ends = scratch;
    call.launch(static_cast<size_t>(AttentionPart::set_ends), one, call.in(6),
                static_cast<const void*>(nullptr), static_cast<void*>(scratch),
                static_cast<int>(examples), 0, p.keys, call.queue().faults(), call.queue().step());
  }
  if (call.sizes.out[0].elements() == 0) return;
  const bool boolean = node.has(3) && node.in[3]->type.dtype == DType::boolean;
  const void* mask = node.has(3) ? call.in(3) : nullptr;
  launch_attention(call, p, examples, tiles, call.in(0), k, v, boolean ? nullptr : mask,
                   boolean ? mask : nullptr);
}

bool takes(const Node& node, const Sizes& sizes) {
  const auto& attrs = *node.as<Attention>();
  const Heads q = heads_of(sizes.in[0], attrs.q_num_heads);
  const Heads k = heads_of(sizes.in[1], attrs.kv_num_heads);
  const Heads v = heads_of(sizes.in[2], attrs.kv_num_heads);
  const int64_t past = past_of(node, sizes), keys = past + k.length;
  if (node.has(3) && sizes.in[3].rank() > 4) return false;
  // A mask of one key where there are more would be continued, not repeated.
  if (node.has(3) && (sizes.in[3].rank() == 0 || (sizes.in[3].back() == 1 && keys != 1)))
    return false;
  const Shape cache{k.examples, k.heads, past, k.size};
  if (node.has(4) && !(sizes.in[4] == cache && sizes.in[5] == cache)) return false;
  if (node.has(6) && sizes.in[6].elements() != q.examples) return false;
  if (v.heads != k.heads || v.length != k.length || v.examples != k.examples) return false;
  return q.heads <= 65535 && q.examples <= 65535 && k.heads > 0 && q.heads % k.heads == 0 &&
         cache_elements(node, sizes) < (int64_t{1} << 31);
}

/// The head's size when inference knows it, else 0.
int64_t head_size(const KernelQuery& query) {
  if (!query.in(0).ranked()) return 0;
  const Dims& shape = *query.in(0).shape;
  const auto last = shape.back().constant();
  if (!last) return 0;
  if (shape.size() == 4) return *last;
  const int64_t heads = query.attrs<Attention>().q_num_heads;
  return shape.size() == 3 && heads > 0 ? *last / heads : 0;
}

/// The values' head must be of the same size.
bool same_head(const KernelQuery& query) {
  const auto size = [&](size_t i) -> std::optional<int64_t> {
    if (!query.in(i).ranked()) return std::nullopt;
    const Dims& shape = *query.in(i).shape;
    const auto last = shape.back().constant();
    const int64_t heads = query.attrs<Attention>().kv_num_heads;
    if (!last || shape.size() == 4) return last;
    return heads > 0 ? std::optional(*last / heads) : std::nullopt;
  };
  return size(1) == size(2) && size(2) == head_size(query);
}

Verdict accepts(const KernelQuery& query) {
  if (query.node.has(4) != query.node.has(5)) return no("one of two caches");
  if (query.node.has(4) && query.node.has(6)) return no("a cache and lengths");
  if (query.node.has(6) && query.in_dtype(6) != DType::i64) return no("lengths of another type");
  if (query.node.outs.size() > 3) return no("the scores are wanted");
  if (const Verdict floats = cuda::accepts_floats(query); !floats) return floats;
  for (const size_t i : {1, 2, 4, 5})
    if (query.node.has(i) && query.in_dtype(i) != query.in_dtype(0))
      return no("element types differ");
  if (query.node.has(3) && query.in_dtype(3) != DType::boolean &&
      query.in_dtype(3) != query.in_dtype(0))
    return no("a mask of another element type");
  const int64_t head = head_size(query);
  if (head == 0 || head > 256 || !same_head(query))
    return no("heads of unknown or different size, or of more than 256");
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
  const bool cached = is_cached(query.node) || query.node.has(6);
  AttentionText text =
      attention_text(query.in_dtype(0), head_size(query), cached, DType::i64, tiles);
  return make_attention(query, std::move(text), run<tiles>, scratch_bytes, takes);
}

}  // namespace

namespace ops {
void register_attention_cuda(Kernels& kernels) {
  kernels.add({.name = "attention/cuda tiles",
               .op = &Attention::op,
               .accepts = accepts_tiles,
               .prepare = prepare<true>,
               .priority = 1});
  kernels.add({.name = "attention/cuda",
               .op = &Attention::op,
               .accepts = accepts,
               .prepare = prepare<false>});
  register_grouped_cuda(kernels);
  register_linear_cuda(kernels);
}
}  // namespace ops
}  // namespace dais
