#include "ops/attention/attention_parts_cuda.h"

namespace dais {
namespace {

constexpr auto at(AttentionPart part) { return static_cast<size_t>(part); }

}  // namespace

AttentionText attention_text(DType element, int64_t head, bool cached, DType index, bool tiles) {
  AttentionText out;
  out.options = {std::string("-DELEMENT=") + cuda::float_name(element),
                 "-DHEAD=" + std::to_string(head)};
  out.kernels = {"attention_rows"};
  // Where there are no caches their places are taken by a kernel that is there.
  for (const char* name : {"append", "rotate", "set_ends"})
    out.kernels.push_back(cached ? name : "attention_rows");
  if (cached) {
    out.options.emplace_back("-DCACHED");
    out.options.emplace_back(index == DType::i32 ? "-DINDEX=int32" : "-DINDEX=int64");
  }
  if (tiles) {
    out.options.emplace_back("-DTILES");
    out.kernels.push_back("attention_tiles");
  }
  return out;
}

std::unique_ptr<Kernel> make_attention(const KernelQuery& query, AttentionText text,
                                       void (*run)(const cuda::RowCall&) noexcept,
                                       size_t (*scratch_bytes)(const Node&, const Sizes&),
                                       bool (*takes)(const Node&, const Sizes&)) {
  return cuda::make_text_kernel(query, {.text = "attention.cu",
                                        .options = std::move(text.options),
                                        .kernels = std::move(text.kernels),
                                        .run = run,
                                        .scratch_bytes = scratch_bytes,
                                        .takes = takes});
}

Verdict accepts_attention_tiles(const KernelQuery& query, int64_t head) {
  if (query.in_dtype(0) == DType::f32) return no("f32");
  if (head % 16 != 0 || head > 128) return no("heads of " + std::to_string(head) + " elements");
  const int needed = query.in_dtype(0) == DType::bf16 ? 80 : 75;
  if (cuda::device_of(query).info().arch < needed)
    return no("the device lacks the matrix instruction");
  return yes();
}

void launch_attention(const cuda::RowCall& call, const AttentionProblem& problem, int64_t examples,
                      bool tiles, const void* q, const void* k, const void* v, const void* added,
                      const void* seen) noexcept {
  cuda::Grid grid;
  grid.threads = tiles ? 128 : 256;
  grid.x = cuda::size32(cuda::ceil_div(problem.queries, tiles ? 64 : 8));
  grid.y = cuda::size32(problem.heads);
  grid.z = cuda::size32(examples);
  call.launch(at(tiles ? AttentionPart::tiles : AttentionPart::rows), grid, q, k, v, added, seen,
              call.out(0), problem);
}

void launch_append(const cuda::RowCall& call, const AttentionCache& cache, int64_t elements,
                   const void* before, const void* fresh, void* to, const void* cosines,
                   const void* sines, const void* ends) noexcept {
  if (elements == 0) return;
  call.launch(at(AttentionPart::append), cuda::grid_of(elements), before, fresh, to, cosines, sines,
              ends, cuda::size32(elements), cache);
}

}  // namespace dais
