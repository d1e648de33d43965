#include "ir/call.h"

namespace dais {

const Tensor& Call::in(size_t i) const {
  if (!has(i)) fail("input " + std::to_string(i) + " is missing");
  if (in_[i].kind != Datum::Kind::tensor) fail("input " + std::to_string(i) + " is not a tensor");
  return in_[i].tensor;
}

Tensor& Call::out(size_t i, DType dtype, const Shape& shape) {
  DAIS_CHECK(i < out_.size());
  Datum& slot = out_[i];
  const bool planned = slot.kind == Datum::Kind::tensor && slot.tensor.dtype() == dtype &&
                       slot.tensor.shape() == shape;
  if (!planned) slot = Datum(Tensor(dtype, shape));
  return slot.tensor;
}

void Call::set(size_t i, Datum value) {
  if (i < out_.size()) out_[i] = std::move(value);
}

std::vector<Datum> Call::run_region(size_t region, std::vector<Datum> inputs) {
  DAIS_CHECK(regions_ != nullptr);
  return regions_->run(region, std::move(inputs));
}

void Call::fail(const std::string& problem, const std::string& remedy) const {
  throw Error(Code::invalid_argument, std::string(node.op->name) + ": " + problem, node.where(),
              remedy);
}

}  // namespace dais
