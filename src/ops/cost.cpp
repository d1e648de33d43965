#include "ops/cost.h"

namespace dais {
namespace {

double bytes_of(const Value& value) {
  const auto shape = value.type.static_shape();
  if (!shape || value.type.dtype == DType::undefined) return 0;
  return static_cast<double>(shape->elements()) * static_cast<double>(dtype_size(value.type.dtype));
}

}  // namespace

Cost cost_of_taking(const Node& node) {
  Cost out;
  for (const Value* value : node.outs) out.bytes += 2 * bytes_of(*value);
  for (size_t i = 1; i < node.in.size(); ++i)
    if (node.in[i]) out.bytes += bytes_of(*node.in[i]);
  return out;
}

}  // namespace dais
