#include "backends/cpu/onednn.h"

#include "backends/cpu/onednn_library.h"
#include "base/error.h"

// The parts of the contract that need no library, and all of it for a build without one.

namespace dais::onednn {

size_t data_bytes(Data data) {
  switch (data) {
    case Data::f32:
    case Data::s32: return 4;
    case Data::bf16:
    case Data::f16: return 2;
    case Data::s8:
    case Data::u8: return 1;
  }
  return 0;
}

PostOp PostOp::apply(Eltwise function, float alpha, float beta) {
  PostOp op;
  op.eltwise = function;
  op.alpha = alpha;
  op.beta = beta;
  return op;
}

PostOp PostOp::sum(float scale) {
  PostOp op;
  op.kind = Kind::sum;
  op.alpha = scale;
  return op;
}

PostOp PostOp::add(Data data, std::vector<int64_t> dims) {
  PostOp op;
  op.kind = Kind::add;
  op.data = data;
  op.dims = std::move(dims);
  return op;
}

PostOp PostOp::mul(Data data, std::vector<int64_t> dims) {
  PostOp op = add(data, std::move(dims));
  op.kind = Kind::mul;
  return op;
}

PostOp PostOp::add_per_channel(Data data) {
  PostOp op = add(data);
  op.per_channel = true;
  return op;
}

PostOp PostOp::mul_per_channel(Data data) {
  PostOp op = mul(data);
  op.per_channel = true;
  return op;
}

std::vector<int64_t> ConvDesc::out_spatial() const {
  std::vector<int64_t> out(in_spatial.size());
  for (size_t axis = 0; axis < out.size(); ++axis) {
    const int64_t reach = window.dilations[axis] * (window.kernel[axis] - 1) + 1;
    const int64_t room = in_spatial[axis] + window.pads_begin[axis] + window.pads_end[axis] - reach;
    out[axis] = room < 0 ? 0 : room / window.strides[axis] + 1;
  }
  return out;
}

std::vector<int32_t> zero_point_bias(const int8_t* weights, int64_t channels, int64_t per_channel,
                                     const int32_t* bias, int32_t zero_point) {
  std::vector<int32_t> out(static_cast<size_t>(channels));
  for (int64_t channel = 0; channel < channels; ++channel) {
    int64_t sum = 0;
    for (int64_t index = 0; index < per_channel; ++index)
      sum += weights[channel * per_channel + index];
    const int64_t base = bias ? bias[channel] : 0;
    // Modulo 2^32, as the 32-bit sums it is added to.
    out[static_cast<size_t>(channel)] = static_cast<int32_t>(base - zero_point * sum);
  }
  return out;
}

#ifndef DAIS_ONEDNN

namespace {
const std::string missing = "dais was built without oneDNN";
const std::string none;
}  // namespace

struct Packed::Body {};
Packed::~Packed() = default;
size_t Packed::bytes() const { return 0; }
const void* Packed::data() const { return nullptr; }

struct Primitive::Body {};
Primitive::~Primitive() = default;
const std::string& Primitive::implementation() const { return none; }
size_t Primitive::scratch_bytes() const { return 0; }
bool Primitive::packs() const { return false; }
std::shared_ptr<Packed> Primitive::pack(const void*) const { return nullptr; }
bool Primitive::repack(const void*, Packed&) const noexcept { return false; }
bool Primitive::accepts(const Packed&) const noexcept { return false; }
bool Primitive::run(const Tensors&) noexcept { return false; }

Created create(const ConvDesc&) { return {nullptr, missing}; }
Created create(const DeconvDesc&) { return {nullptr, missing}; }
Created create(const MatmulDesc&) { return {nullptr, missing}; }
struct WeightsGradient::Body {};
WeightsGradient::~WeightsGradient() = default;
const std::string& WeightsGradient::implementation() const { return none; }
size_t WeightsGradient::scratch_bytes() const { return 0; }
bool WeightsGradient::run(const void*, const void*, void*, void*) noexcept { return false; }
CreatedGradient create_weights_gradient(const ConvDesc&) { return {nullptr, missing}; }

std::string refusal(const ConvDesc&) { return missing; }
std::string refusal(const DeconvDesc&) { return missing; }
std::string refusal(const MatmulDesc&) { return missing; }
const std::string& unavailable() { return missing; }
const std::string& version() { return none; }

#endif

}  // namespace dais::onednn
