#include "ops/attention/linear_cuda.h"

#include <cmath>

#include "backends/cuda/row.h"
#include "ops/attention/attention.h"

namespace dais {
namespace {

enum : size_t { kQuery, kKey, kValue, kPast, kDecay, kBeta, kErase };
constexpr int64_t kWarps = 8, kColumns = 32, kMostRows = 32;

/// As in linear.cu.
struct LinearSizes {
  uint32_t length, q_heads, kv_heads, dk, dv, decay_width, beta_width;
  float scale;
};

LinearSizes sizes_of(const Node& node, const Sizes& sizes) {
  const auto& attrs = *node.as<LinearAttention>();
  const int64_t dk = sizes.in[kQuery][2] / attrs.q_num_heads;
  const auto width = [&](size_t i) { return node.has(i) ? cuda::size32(sizes.in[i][2]) : 0; };
  return {.length = cuda::size32(sizes.in[kQuery][1]),
          .q_heads = cuda::size32(attrs.q_num_heads),
          .kv_heads = cuda::size32(attrs.kv_num_heads),
          .dk = cuda::size32(dk),
          .dv = cuda::size32(sizes.in[kValue][2] / attrs.kv_num_heads),
          .decay_width = width(kDecay),
          .beta_width = width(kBeta),
          .scale = attrs.scale != 0 ? attrs.scale
                                    : static_cast<float>(1 / std::sqrt(static_cast<double>(dk)))};
}

void run(const cuda::RowCall& call) noexcept {
  const LinearSizes sizes = sizes_of(call.node, call.sizes);
  cuda::Grid grid;
  grid.x = static_cast<unsigned>(cuda::ceil_div(sizes.dv, kColumns));
  grid.y = static_cast<unsigned>(call.sizes.in[kQuery][0]) * sizes.kv_heads;
  grid.threads = kColumns;
  grid.threads_y = kWarps;
  if (grid.x > 0 && grid.y > 0)
    call.launch(0, grid, call.in(kQuery), call.in(kKey), call.in(kValue), call.in(kPast),
                call.in(kDecay), call.in(kBeta), call.in(kErase), call.out(0), call.out(1), sizes);
}

/// What does not fit together is left to the CPU, which says so.
bool takes(const Node& node, const Sizes& sizes) {
  const auto& attrs = *node.as<LinearAttention>();
  const Shape &q = sizes.in[kQuery], &k = sizes.in[kKey], &v = sizes.in[kValue];
  const int64_t heads = attrs.kv_num_heads;
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3 || q[0] * heads > 65535) return false;
  const int64_t dk = q[2] / attrs.q_num_heads, dv = v[2] / heads;
  const auto like_query = [&](const Shape& shape, int64_t width) {
    return shape == Shape{q[0], q[1], width};
  };
  const auto gate = [&](size_t i, int64_t one, int64_t other) {
    return !node.has(i) || like_query(sizes.in[i], one) || like_query(sizes.in[i], other);
  };
  return q[2] == attrs.q_num_heads * dk && like_query(k, heads * dk) && like_query(v, heads * dv) &&
         gate(kDecay, heads, heads * dk) && gate(kBeta, heads, 1) &&
         gate(kErase, heads * dk, heads * dk) &&
         (!node.has(kPast) || sizes.in[kPast] == Shape{q[0], heads, dk, dv});
}

/// Rows of the state; nothing: they are not fixed.
std::optional<int64_t> state_rows(const KernelQuery& query) {
  const auto& shape = query.in(kQuery).shape;
  const auto width = shape && shape->size() == 3 ? shape->back().constant() : std::nullopt;
  return width ? std::optional(*width / query.attrs<LinearAttention>().q_num_heads) : std::nullopt;
}

Verdict accepts(const KernelQuery& query) {
  for (size_t i = 1; i < query.node.in.size(); ++i)
    if (i != kPast && query.node.has(i) && query.in_dtype(i) != query.in_dtype(0))
      return no("inputs of different types");
  if (query.node.has(kPast) && !cuda::float_name(query.in_dtype(kPast)))
    return no("a state of type " + std::string(dtype_name(query.in_dtype(kPast))));
  const auto rows = state_rows(query);
  if (!rows || *rows < 1 || *rows > kWarps * kMostRows)
    return no("heads of unknown size, or of more than 256");
  return cuda::accepts_floats(query);
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const DType state = query.in_dtype(query.node.has(kPast) ? kPast : kQuery);
  return cuda::make_text_kernel(
      query, {.text = "linear.cu",
              .options = {cuda::element_option(query.in_dtype(0)),
                          std::string("-DSTATE=") + cuda::float_name(state),
                          "-DROWS=" + std::to_string(cuda::ceil_div(*state_rows(query), kWarps))},
              .kernels = {"linear_attention"},
              .run = run,
              .takes = takes});
}

}  // namespace

void register_linear_cuda(Kernels& kernels) {
  kernels.add({.name = "linear_attention/cuda",
               .op = &LinearAttention::op,
               .accepts = accepts,
               .prepare = prepare});
}

}  // namespace dais
