#include <cmath>
#include <limits>

#include "backends/cuda/row.h"
#include "ops/attention/attention.h"
#include "ops/strided.h"

namespace dais {
namespace {

enum : size_t { kRows, kTiles };

/// As in attention.cu.
struct Rows {
  int64_t example = 0, head = 0, row = 0;
};
struct Problem {
  Rows q, k, v, y;
  int64_t mask_example = 0, mask_head = 0, mask_row = 0, mask_key = 0;
  int queries = 0, keys = 0, heads = 0, group = 1;
  int mask_keys = 0;
  int causal_offset = 0;
  float scale = 1, softcap = 0;
};

/// [N, heads, length, size], or [N, length, heads * size].
struct Heads {
  int64_t examples, heads, length, size;
  Rows rows;
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

Problem problem_of(const Node& node, const Sizes& sizes) {
  const auto& attrs = *node.as<Attention>();
  const Heads q = heads_of(sizes.in[0], attrs.q_num_heads);
  const Heads k = heads_of(sizes.in[1], attrs.kv_num_heads);
  const Heads v = heads_of(sizes.in[2], attrs.kv_num_heads);
  Problem p;
  p.q = q.rows;
  p.k = k.rows;
  p.v = v.rows;
  p.y = heads_of(sizes.out[0], attrs.q_num_heads).rows;
  p.queries = static_cast<int>(q.length);
  p.keys = static_cast<int>(k.length);
  p.heads = static_cast<int>(q.heads);
  p.group = static_cast<int>(q.heads / std::max<int64_t>(k.heads, 1));
  p.causal_offset = attrs.is_causal ? 0 : p.keys;
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

template <bool tiles>
void run(const cuda::RowCall& call) noexcept {
  const Problem p = problem_of(call.node, call.sizes);
  const int64_t examples = call.sizes.in[0][0];
  if (call.sizes.out[0].elements() == 0) return;
  const bool boolean = call.node.has(3) && call.node.in[3]->type.dtype == DType::boolean;
  const void* mask = call.in(3);
  const void* added = boolean ? nullptr : mask;
  const void* seen = boolean ? mask : nullptr;
  cuda::Grid grid;
  grid.threads = tiles ? 128 : 256;
  grid.x = cuda::size32(cuda::ceil_div(p.queries, tiles ? 64 : 8));
  grid.y = cuda::size32(p.heads);
  grid.z = cuda::size32(examples);
  call.launch(tiles ? kTiles : kRows, grid, call.in(0), call.in(1), call.in(2), added, seen,
              call.out(0), p);
}

bool takes(const Node& node, const Sizes& sizes) {
  const auto& attrs = *node.as<Attention>();
  const Heads q = heads_of(sizes.in[0], attrs.q_num_heads);
  const Heads k = heads_of(sizes.in[1], attrs.kv_num_heads);
  if (node.has(3) && sizes.in[3].rank() > 4) return false;
  // A mask of one key where there are more would be continued, not repeated.
  if (node.has(3) && (sizes.in[3].rank() == 0 || (sizes.in[3].back() == 1 && k.length != 1)))
    return false;
  return q.heads <= 65535 && q.examples <= 65535 && k.heads > 0 && q.heads % k.heads == 0;
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
  for (size_t i = 4; i < query.node.in.size(); ++i)
    if (query.node.has(i)) return no("a cache or lengths of its own");
  if (query.node.outs.size() > 1) return no("more outputs than Y");
  if (const Verdict floats = cuda::accepts_floats(query); !floats) return floats;
  for (size_t i = 1; i < 3; ++i)
    if (query.in_dtype(i) != query.in_dtype(0)) return no("element types differ");
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

/// What the matrix instruction takes: 16-bit heads of a multiple of 16, and a device that has it.
Verdict accepts_tiles(const KernelQuery& query) {
  if (const Verdict any = accepts(query); !any) return any;
  const int64_t head = head_size(query);
  if (query.in_dtype(0) == DType::f32) return no("f32");
  if (head % 16 != 0 || head > 128) return no("heads of " + std::to_string(head) + " elements");
  const int needed = query.in_dtype(0) == DType::bf16 ? 80 : 75;
  if (cuda::device_of(query).info().arch < needed)
    return no("the device lacks the matrix instruction");
  return yes();
}

template <bool tiles>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  std::vector<std::string> options = {cuda::element_option(query.in_dtype(0)),
                                      "-DHEAD=" + std::to_string(head_size(query))};
  std::vector<const char*> kernels = {"attention_rows"};
  if (tiles) {
    options.push_back("-DTILES");
    kernels.push_back("attention_tiles");
  }
  return cuda::make_text_kernel(query, {.text = "attention.cu",
                                        .options = options,
                                        .kernels = kernels,
                                        .run = run<tiles>,
                                        .takes = takes});
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
}
}  // namespace ops
}  // namespace dais
