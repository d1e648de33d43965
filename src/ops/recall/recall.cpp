#include "ops/recall/recall.h"

#include <cstring>

#include "ir/call.h"
#include "ir/inference.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  c.set(0, c.dtype(0), c.shape(0));
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  Tensor& y = c.out(0, x.shape());
  if (x.bytes() > 0) std::memcpy(y.raw(), x.raw(), x.bytes());
}

Values gradient(Graph&, const Node&, std::span<Value* const> dy) { return {dy[0]}; }

}  // namespace

const Op Recall::op{
    .name = "recall",
    .attrs = &AttrsOf<Recall>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{.type = "Recall", .domain = "dais"}},
    .pure = false,
    .view = true,
};

namespace ops {
void define_recall(OpRegistry& registry) { registry.add(Recall::op); }
}  // namespace ops
}  // namespace dais
