#include "ops/all_reduce/all_reduce.h"

#include <cstring>

#include "base/ranks.h"
#include "ir/call.h"
#include "ir/graph.h"
#include "ir/inference.h"
#include "ops/all_reduce/means.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  c.require(c.dtype(0) == DType::f32 || c.dtype(0) == DType::f64,
            "only floating-point numbers have a mean over ranks");
  c.set(0, c.dtype(0), c.shape(0));
}

/// Other element types than f32 have one rank, whose mean is the value itself.
Tensor& copied(Call& c) {
  const Tensor& x = c.in(0);
  c.require(x.dtype() == DType::f32 || rank_group().size() == 1, "ranks exchange f32 only");
  Tensor& y = c.out(0, x.shape());
  if (x.bytes() > 0) std::memcpy(y.raw(), x.raw(), x.bytes());
  return y;
}

void reference(Call& c) {
  Tensor& y = copied(c);
  if (y.dtype() != DType::f32) return;
  start_mean(y.data<float>());
  finish_mean(y.data<float>());
}

void reference_start(Call& c) {
  Tensor& y = copied(c);
  if (y.dtype() == DType::f32) start_mean(y.data<float>());
}

/// The memory that the sum arrives in is the input's, whatever becomes of the output.
void reference_finish(Call& c) {
  const Tensor& x = c.in(0);
  if (x.dtype() == DType::f32) rank_group().finish(x.storage<float>());
  Tensor& y = copied(c);
  if (y.dtype() == DType::f32) scale_sum(y.data<float>());
}

/// Each rank has the gradient by its own copy of the mean; their mean is that of x.
Values gradient(Graph& g, const Node&, std::span<Value* const> dy) {
  return {g.add(AllReduce{}, {dy[0]})};
}

}  // namespace

const Op AllReduce::op{
    .name = "all_reduce",
    .attrs = &AttrsOf<AllReduce>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{.type = "AllReduce", .domain = "dais"}},
    .pure = false,
};
const Op AllReduceStart::op{
    .name = "all_reduce_start",
    .attrs = &AttrsOf<AllReduceStart>::info,
    .infer = infer,
    .reference = reference_start,
    .onnx = {{.type = "AllReduceStart", .domain = "dais"}},
    .pure = false,
};
const Op AllReduceFinish::op{
    .name = "all_reduce_finish",
    .attrs = &AttrsOf<AllReduceFinish>::info,
    .infer = infer,
    .reference = reference_finish,
    .onnx = {{.type = "AllReduceFinish", .domain = "dais"}},
    .pure = false,
};

namespace ops {
void define_all_reduce(OpRegistry& registry) {
  registry.add(AllReduce::op);
  registry.add(AllReduceStart::op);
  registry.add(AllReduceFinish::op);
}
}  // namespace ops
}  // namespace dais
