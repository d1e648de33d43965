#include "ops/parts.h"

#include "ops/cast/cast.h"

namespace dais {

Value* add_scalar(Graph& graph, double value, DType dtype) {
  Tensor tensor(dtype, Shape{});
  visit_dtype<NumericTypes>(dtype,
                            [&]<typename T>() { tensor.data<T>()[0] = number_cast<T>(value); });
  return graph.add_constant(std::move(tensor));
}

DType wide_type(const Value& x) {
  return dtype_bits(x.type.dtype) < 32 ? DType::f32 : x.type.dtype;
}

Value* as_type(Graph& graph, Value* x, DType dtype) {
  return x->type.dtype == dtype ? x : graph.add(Cast{.to = dtype}, {x});
}

}  // namespace dais
