#include "ops/matmul/nbits_cuda.h"

#include "backends/cuda/row.h"
#include "ops/matmul/matmul.h"

namespace dais {
namespace {

/// As in nbits.cu.
struct Packed {
  uint32_t rows, depth, columns, block, blocks, block_bytes, zero_bytes;
};

int64_t bytes_of(int64_t numbers, int64_t bits) { return cuda::ceil_div(numbers * bits, 8); }

/// Which of the kernel's ways of finding zero points a node needs; nothing: it has none.
std::optional<int> zeros_of(const KernelQuery& query) {
  if (!query.node.has(3)) return 0;
  if (query.in_dtype(3) == DType::u8) return 1;
  if (query.in_dtype(3) == query.in_dtype(0)) return 2;
  return std::nullopt;
}

Packed packed_of(const Node& node, const Sizes& sizes) {
  const auto& attrs = *node.as<MatMulNBits>();
  const int64_t blocks = cuda::ceil_div(attrs.depth, attrs.block_size);
  return {.rows = cuda::size32(sizes.in[0].elements() / attrs.depth),
          .depth = cuda::size32(attrs.depth),
          .columns = cuda::size32(attrs.columns),
          .block = cuda::size32(attrs.block_size),
          .blocks = cuda::size32(blocks),
          .block_bytes = cuda::size32(bytes_of(attrs.block_size, attrs.bits)),
          .zero_bytes = cuda::size32(bytes_of(blocks, attrs.bits))};
}

/// Whether weights, scales, zero points and bias hold what the kernel reads of them.
bool takes(const Node& node, const Sizes& sizes) {
  const auto& attrs = *node.as<MatMulNBits>();
  const Packed p = packed_of(node, sizes);
  const int64_t scales = attrs.columns * p.blocks;
  const bool bytes = node.has(3) && node.in[3]->type.dtype == DType::u8;
  const int64_t zeros = bytes ? attrs.columns * p.zero_bytes : scales;
  return sizes.in[1].elements() == scales * p.block_bytes && sizes.in[2].elements() == scales &&
         (!node.has(3) || sizes.in[3].elements() == zeros) &&
         (!node.has(5) || sizes.in[5].elements() == attrs.columns) &&
         sizes.in[0].back() == attrs.depth && cuda::ceil_div(p.rows, 8) <= 65535;
}

void run(const cuda::RowCall& call) noexcept {
  const Packed p = packed_of(call.node, call.sizes);
  cuda::Grid grid;
  grid.x = cuda::size32(cuda::ceil_div(p.columns, 8));
  grid.y = cuda::size32(cuda::ceil_div(p.rows, 8));
  grid.threads = 256;
  call.launch(0, grid, call.in(0), call.in(1), call.in(2), call.node.has(3) ? call.in(3) : nullptr,
              call.node.has(5) ? call.in(5) : nullptr, call.out(0), p);
}

Verdict accepts(const KernelQuery& query) {
  const auto& attrs = query.attrs<MatMulNBits>();
  if (query.node.has(4)) return no("blocks in an order of their own");
  if (attrs.block_size % 8 != 0) return no("blocks of no multiple of 8");
  if (query.in_dtype(2) != query.in_dtype(0) ||
      (query.node.has(5) && query.in_dtype(5) != query.in_dtype(0)))
    return no("scales or a bias of another element type");
  if (!zeros_of(query)) return no("zero points of another element type");
  return cuda::accepts_floats(query);
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(
      query, {.text = "nbits.cu",
              .options = {cuda::element_option(query.in_dtype(0)),
                          "-DBITS=" + std::to_string(query.attrs<MatMulNBits>().bits),
                          "-DZERO=" + std::to_string(*zeros_of(query))},
              .kernels = {"nbits_product"},
              .run = run,
              .takes = takes});
}

}  // namespace

void register_nbits_cuda(Kernels& kernels) {
  kernels.add({.name = "mat_mul_n_bits/cuda",
               .op = &MatMulNBits::op,
               .accepts = accepts,
               .prepare = prepare});
}

}  // namespace dais
