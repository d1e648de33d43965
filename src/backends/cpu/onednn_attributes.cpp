#include <bit>

#include "backends/cpu/onednn_spec.h"
#include "base/error.h"

#ifdef DAIS_ONEDNN

// Where the two generations of oneDNN differ most. 2.x has "output scales" with the meaning of
// Epilogue; 3.x scales the accumulator before the bias, so there the scales become the first
// post-op, which gives the same bits.

namespace dais::onednn {
namespace {

class Chain {
 public:
  Chain() {
    dnnl_post_ops_t made = nullptr;
    check(library().post_ops_create(&made), "dnnl_post_ops_create");
    ops_.reset(made);
  }

  void eltwise(dnnl_alg_kind_t kind, float alpha, float beta) {
#if DNNL_VERSION_MAJOR < 3
    check(library().post_ops_append_eltwise(ops_.get(), 1.0F, kind, alpha, beta),
          "dnnl_post_ops_append_eltwise");
#else
    check(library().post_ops_append_eltwise(ops_.get(), kind, alpha, beta),
          "dnnl_post_ops_append_eltwise");
#endif
    ++length_;
  }

  void sum(float scale) {
#if DNNL_VERSION_MAJOR < 3
    check(library().post_ops_append_sum(ops_.get(), scale), "dnnl_post_ops_append_sum");
#else
    check(library().post_ops_append_sum(ops_.get(), scale, 0, dnnl_data_type_undef),
          "dnnl_post_ops_append_sum");
#endif
    ++length_;
  }

  /// Returns the argument under which run() passes the operand.
  int binary(dnnl_alg_kind_t kind, const MemoryDesc& operand) {
    check(library().post_ops_append_binary(ops_.get(), kind, operand.raw()),
          "dnnl_post_ops_append_binary");
    return DNNL_ARG_ATTR_MULTIPLE_POST_OP(length_++) | DNNL_ARG_SRC_1;
  }

  const_dnnl_post_ops_t get() const { return ops_.get(); }

 private:
  PostOps ops_;
  int length_ = 0;
};

void append_eltwise(Chain& chain, const PostOp& op) {
  constexpr float softplus_alpha = second_generation ? 0.0F : 1.0F;
  switch (op.eltwise) {
    case Eltwise::relu: return chain.eltwise(dnnl_eltwise_relu, op.alpha, 0);
    case Eltwise::clip: return chain.eltwise(dnnl_eltwise_clip, op.alpha, op.beta);
    case Eltwise::linear: return chain.eltwise(dnnl_eltwise_linear, op.alpha, op.beta);
    case Eltwise::tanh: return chain.eltwise(dnnl_eltwise_tanh, 0, 0);
    case Eltwise::logistic: return chain.eltwise(dnnl_eltwise_logistic, 0, 0);
    case Eltwise::gelu_erf: return chain.eltwise(dnnl_eltwise_gelu_erf, 0, 0);
    case Eltwise::gelu_tanh: return chain.eltwise(dnnl_eltwise_gelu_tanh, 0, 0);
    case Eltwise::swish: return chain.eltwise(dnnl_eltwise_swish, op.alpha, 0);
    case Eltwise::hard_sigmoid:
      chain.eltwise(dnnl_eltwise_linear, op.alpha, op.beta);
      return chain.eltwise(dnnl_eltwise_clip, 0, 1);
    case Eltwise::hard_swish: return chain.eltwise(dnnl_eltwise_hardswish, 1.0F / 6, 0.5F);
    case Eltwise::elu: return chain.eltwise(dnnl_eltwise_elu, op.alpha, 0);
    case Eltwise::soft_plus: return chain.eltwise(dnnl_eltwise_soft_relu, softplus_alpha, 0);
    case Eltwise::mish: return chain.eltwise(dnnl_eltwise_mish, 0, 0);
    case Eltwise::abs: return chain.eltwise(dnnl_eltwise_abs, 0, 0);
    case Eltwise::square: return chain.eltwise(dnnl_eltwise_square, 0, 0);
    case Eltwise::sqrt: return chain.eltwise(dnnl_eltwise_sqrt, 0, 0);
    case Eltwise::exp: return chain.eltwise(dnnl_eltwise_exp, 0, 0);
    case Eltwise::round: return chain.eltwise(dnnl_eltwise_round, 0, 0);
  }
}

MemoryDesc per_channel_desc(const Spec& spec, Data data) {
  Dims dims(spec.dst_dims.size(), 1);
  dims[spec.channel_axis] = spec.dst_dims[spec.channel_axis];
  return MemoryDesc::dense(dims, data);
}

MemoryDesc operand_desc(const Spec& spec, const PostOp& op) {
  if (op.per_channel) return per_channel_desc(spec, op.data);
  const Dims& dims = op.dims.empty() ? spec.dst_dims : op.dims;
  DAIS_CHECK(dims.size() == spec.dst_dims.size());
  return MemoryDesc::strided(dims, op.data, strides_in_order(dims, spec.dst_order));
}

void append_post_ops(const Spec& spec, Chain& chain, std::vector<Operand>& operands) {
  for (const PostOp& op : spec.epilogue->post_ops) {
    if (op.kind == PostOp::Kind::eltwise) {
      append_eltwise(chain, op);
    } else if (op.kind == PostOp::Kind::sum) {
      chain.sum(op.alpha);
    } else {
      const auto kind = op.kind == PostOp::Kind::add ? dnnl_binary_add : dnnl_binary_mul;
      MemoryDesc desc = operand_desc(spec, op);
      const int argument = chain.binary(kind, desc);
      operands.push_back({argument, std::move(desc), {}});
    }
  }
}

/// Constant operands follow those of the caller, so they wait in `late`.
void set_scales(const Spec& spec, dnnl_primitive_attr_t attr, Chain& chain,
                std::vector<Operand>& late) {
  const std::vector<float>& scales = spec.epilogue->scales;
  if (scales.empty()) return;
  DAIS_CHECK(scales.size() == 1 ||
             static_cast<int64_t>(scales.size()) == spec.dst_dims[spec.channel_axis]);
#if DNNL_VERSION_MAJOR < 3
  (void)chain, (void)late;
  const int mask = scales.size() == 1 ? 0 : 1 << spec.channel_axis;
  check(library().primitive_attr_set_output_scales(attr, static_cast<int64_t>(scales.size()), mask,
                                                   scales.data()),
        "dnnl_primitive_attr_set_output_scales");
#else
  (void)attr;
  if (scales.size() == 1) return chain.eltwise(dnnl_eltwise_linear, scales[0], 0);
  MemoryDesc desc = per_channel_desc(spec, Data::f32);
  const int argument = chain.binary(dnnl_binary_mul, desc);
  late.push_back({argument, std::move(desc), scales});
#endif
}

void set_zero_point(dnnl_primitive_attr_t attr, int argument, int32_t value,
                    std::vector<Operand>& late) {
  if (value == 0) return;
#if DNNL_VERSION_MAJOR < 3
  (void)late;
  check(library().primitive_attr_set_zero_points(attr, argument, 1, 0, &value),
        "dnnl_primitive_attr_set_zero_points");
#else
  check(library().primitive_attr_set_zero_points_mask(attr, argument, 0),
        "dnnl_primitive_attr_set_zero_points_mask");
  late.push_back({DNNL_ARG_ATTR_ZERO_POINTS | argument,
                  MemoryDesc::dense({1}, Data::s32),
                  {std::bit_cast<float>(value)}});
#endif
}

}  // namespace

Attributes attributes_of(const Spec& spec) {
  const Library& dnnl = library();
  Attributes out;
  dnnl_primitive_attr_t attr = nullptr;
  check(dnnl.primitive_attr_create(&attr), "dnnl_primitive_attr_create");
  out.attr.reset(attr);
  check(dnnl.primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user),
        "dnnl_primitive_attr_set_scratchpad_mode");

  std::vector<Operand> late;
  Chain chain;
  set_scales(spec, attr, chain, late);
  append_post_ops(spec, chain, out.operands);
  const int32_t zero_point = spec.epilogue->dst_zero_point;
  // A post-op keeps faster kernels than oneDNN's own zero point of dst does. Rounding follows the
  // addition: an odd zero point would turn ties the other way.
  if (zero_point % 2 != 0) chain.eltwise(dnnl_eltwise_round, 0, 0);
  if (zero_point != 0) chain.eltwise(dnnl_eltwise_linear, 1, static_cast<float>(zero_point));
  check(dnnl.primitive_attr_set_post_ops(attr, chain.get()), "dnnl_primitive_attr_set_post_ops");
  set_zero_point(attr, DNNL_ARG_SRC, spec.src_zero_point, late);
  set_zero_point(attr, DNNL_ARG_WEIGHTS, spec.weights_zero_point, late);
  for (Operand& operand : late) out.operands.push_back(std::move(operand));
  return out;
}

}  // namespace dais::onednn

#endif
