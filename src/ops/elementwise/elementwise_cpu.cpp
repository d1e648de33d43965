// Rows of the elementwise family, of Cast, and of fused chains of them: one tile program each.
#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/elementwise_internal.h"
#include "ops/elementwise/program_cpu.h"
#include "ops/fused/fused.h"

namespace dais {
namespace {

class TileKernel : public Kernel {
 public:
  TileKernel(TileProgram program, const TileLoops& loops)
      : program_(std::move(program)), loops_(loops) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    return bind_tiles(program_, loops_, sizes);
  }
  std::string detail() const override {
    return std::to_string(program_.steps.size()) + " passes per tile";
  }

 private:
  TileProgram program_;
  const TileLoops& loops_;
};

Verdict accepts(const KernelQuery& query) {
  auto compiled = compile_tiles(query.node);
  return compiled.program ? yes() : no(std::move(compiled.reason));
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<TileKernel>(*compile_tiles(query.node).program, tile_loops(query.isa));
}

}  // namespace

namespace ops {
void register_elementwise_cpu(Kernels& kernels) {
  const auto add = [&](std::string_view name, const Op& op, int priority) {
    kernels.add({.name = name,
                 .op = &op,
                 .accepts = accepts,
                 .prepare = prepare,
                 .overwrites = any_over_any,
                 .priority = priority});
  };
  for (const auto& row : elementwise_rows()) add("elementwise/loops", *row.op, 0);
  add("cast/loops", Cast::op, 0);
  // Behind rows that know what the body starts with.
  add("fused/loops", Fused::op, -10);
}
}  // namespace ops
}  // namespace dais
