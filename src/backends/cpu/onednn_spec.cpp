#include "backends/cpu/onednn_spec.h"

#ifdef DAIS_ONEDNN

#include <algorithm>
#include <numeric>

#include "backends/cpu/isa.h"
#include "backends/cpu/onednn_packed.h"
#include "base/error.h"

namespace dais::onednn {
namespace {

bool is_byte(Data data) { return data == Data::s8 || data == Data::u8; }

bool is_empty(const Dims& dims) {
  return std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim <= 0; });
}

/// Byte products are summed pairwise in 16 bits, with saturation, where there is no VNNI.
std::string type_objection(Data src, Data weights) {
  if (is_byte(src) != is_byte(weights)) return "one operand is 8-bit and the other is not";
  if (!is_byte(src)) return {};
  if (cpu::isa() < Isa::avx512) return "8-bit sums are exact only with AVX-512 VNNI";
  if (weights == Data::u8) return "weights must be s8: subtract 128 from values and zero point";
  return {};
}

std::string window_objection(const Dims& in, const Window& window) {
  const size_t rank = in.size();
  DAIS_CHECK(rank >= 1 && window.kernel.size() == rank && window.strides.size() == rank &&
             window.dilations.size() == rank && window.pads_begin.size() == rank);
  if (rank > 3) return "more than three spatial dimensions";
  if (is_empty(in) || is_empty(window.kernel) || is_empty(window.strides) ||
      is_empty(window.dilations))
    return "a dimension, stride or dilation is not positive";
  return {};
}

std::string first_of(std::string one, std::string two) { return one.empty() ? two : one; }

std::vector<int> memory_order(size_t rank, bool channels_last) {
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (channels_last) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

Dims activation_dims(int64_t batch, int64_t channels, const Dims& spatial) {
  Dims dims{batch, channels};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}

Dims dense_dilates(const Dims& dilations) {
  Dims out = dilations;
  for (int64_t& dilate : out) --dilate;
  return out;
}

MemoryDesc bias_desc(const Spec& spec, int64_t channels) {
  if (!spec.epilogue->bias) return {};
  Dims dims{channels};
  if (spec.form == Form::matmul) {
    dims.assign(spec.dst_dims.size(), 1);
    dims.back() = channels;
  }
  return MemoryDesc::dense(dims, spec.epilogue->bias_data);
}

/// The parts that convolution and deconvolution describe alike.
template <typename Desc>
Spec window_spec(const Desc& desc, const Dims& out_spatial) {
  Spec spec;
  const Dims src_dims = activation_dims(desc.batch, desc.in_channels, desc.in_spatial);
  spec.src_dims = src_dims;
  spec.dst_dims = activation_dims(desc.batch, desc.out_channels, out_spatial);
  spec.dst_order = memory_order(src_dims.size(), desc.channels_last);
  spec.src = MemoryDesc::strided(src_dims, desc.src, strides_in_order(src_dims, spec.dst_order));
  spec.dst =
      MemoryDesc::strided(spec.dst_dims, desc.dst, strides_in_order(spec.dst_dims, spec.dst_order));
  spec.strides = desc.window.strides;
  spec.dilates = dense_dilates(desc.window.dilations);
  spec.pads_begin = desc.window.pads_begin;
  spec.pads_end = desc.window.pads_end;
  spec.epilogue = &desc.epilogue;
  spec.depthwise = desc.groups > 1 && desc.groups == desc.in_channels;

  Dims weights{desc.out_channels / desc.groups, desc.in_channels / desc.groups};
  if (desc.groups > 1) weights.insert(weights.begin(), desc.groups);
  weights.insert(weights.end(), desc.window.kernel.begin(), desc.window.kernel.end());
  spec.weights = desc.share ? packed_desc(*desc.share) : MemoryDesc::any(weights, desc.weights);

  std::vector<int> order = memory_order(weights.size(), false);
  const int first = desc.groups > 1 ? 1 : 0;
  if constexpr (std::is_same_v<Desc, DeconvDesc>) std::swap(order[first], order[first + 1]);
  spec.plain_weights = MemoryDesc::strided(weights, desc.weights, strides_in_order(weights, order));
  return spec;
}

/// Dims (batch..., rows, columns) of a matrix operand of a product with `batch_rank` batch dims.
Dims matrix_dims(const MatrixDesc& matrix, size_t batch_rank, int64_t rows, int64_t columns) {
  DAIS_CHECK(matrix.batch.empty() || matrix.batch.size() == batch_rank);
  Dims dims = matrix.batch.empty() ? Dims(batch_rank, 1) : matrix.batch;
  dims.push_back(rows);
  dims.push_back(columns);
  return dims;
}

Dims matrix_strides(const MatrixDesc& matrix, const Dims& dims) {
  if (!matrix.strides.empty()) {
    DAIS_CHECK(matrix.strides.size() == dims.size());
    return matrix.strides;
  }
  std::vector<int> order = memory_order(dims.size(), false);
  if (matrix.transposed) std::swap(order[order.size() - 2], order[order.size() - 1]);
  return strides_in_order(dims, order);
}

/// Two copies of the activations must not eat the gain, and operands of full size would have to be
/// copied too.
bool winograd_pays(const ConvDesc& desc) {
  constexpr int64_t enough_channels = 48;
  const Window& window = desc.window;
  const Dims ones{1, 1};
  const auto whole = [](const PostOp& op) {
    return op.kind == PostOp::Kind::sum || (op.reads_tensor() && !op.per_channel);
  };
  const auto& post_ops = desc.epilogue.post_ops;
  return desc.src == Data::f32 && desc.dst == Data::f32 && desc.groups == 1 &&
         window.kernel == Dims{3, 3} && window.strides == ones && window.dilations == ones &&
         desc.in_channels >= enough_channels && desc.out_channels >= enough_channels &&
         std::none_of(post_ops.begin(), post_ops.end(), whole);
}

}  // namespace

std::string objection(const ConvDesc& desc) {
  const std::string why = first_of(window_objection(desc.in_spatial, desc.window),
                                   type_objection(desc.src, desc.weights));
  if (!why.empty()) return why;
  DAIS_CHECK(desc.window.pads_end.size() == desc.in_spatial.size());
  if (is_empty({desc.batch, desc.in_channels, desc.out_channels, desc.groups}) ||
      is_empty(desc.out_spatial()))
    return "an operand is empty";
  DAIS_CHECK(desc.in_channels % desc.groups == 0 && desc.out_channels % desc.groups == 0);
  return {};
}

std::string objection(const DeconvDesc& desc) {
  const std::string why = first_of(window_objection(desc.in_spatial, desc.window),
                                   type_objection(desc.src, desc.weights));
  if (!why.empty()) return why;
  DAIS_CHECK(desc.out_spatial.size() == desc.in_spatial.size());
  if (is_empty({desc.batch, desc.in_channels, desc.out_channels, desc.groups}) ||
      is_empty(desc.out_spatial))
    return "an operand is empty";
  DAIS_CHECK(desc.in_channels % desc.groups == 0 && desc.out_channels % desc.groups == 0);
  return {};
}

std::string objection(const MatmulDesc& desc) {
  const std::string why = type_objection(desc.a.data, desc.b.data);
  if (!why.empty()) return why;
  if (is_empty({desc.m, desc.n, desc.k}) || is_empty(desc.c.batch)) return "an operand is empty";
  if (desc.c.batch.size() + 2 > DNNL_MAX_NDIMS) return "more batch dimensions than oneDNN takes";
  return {};
}

Spec spec_of(const ConvDesc& desc) {
  Spec spec = window_spec(desc, desc.out_spatial());
  spec.form = Form::conv;
  spec.winograd = desc.allow_winograd && winograd_pays(desc);
  spec.src_zero_point = desc.src_zero_point;
  spec.bias = bias_desc(spec, desc.out_channels);
  return spec;
}

Spec winograd_spec(const Spec& spec) {
  Spec out = spec;
  out.caller_src = spec.src;
  out.caller_dst = spec.dst;
  out.src = MemoryDesc::any(spec.src_dims, Data::f32);
  out.dst = MemoryDesc::any(spec.dst_dims, Data::f32);
  return out;
}

Spec spec_of(const DeconvDesc& desc) {
  Spec spec = window_spec(desc, desc.out_spatial);
  spec.form = Form::deconv;
  const Window& window = desc.window;
  spec.pads_end.resize(desc.in_spatial.size());
  for (size_t axis = 0; axis < desc.in_spatial.size(); ++axis) {
    const int64_t reach = window.dilations[axis] * (window.kernel[axis] - 1) + 1;
    spec.pads_end[axis] = (desc.in_spatial[axis] - 1) * window.strides[axis] + reach -
                          desc.out_spatial[axis] - window.pads_begin[axis];
  }
  spec.bias = bias_desc(spec, desc.out_channels);
  return spec;
}

Spec spec_of(const MatmulDesc& desc) {
  Spec spec;
  spec.form = Form::matmul;
  spec.epilogue = &desc.epilogue;
  spec.src_zero_point = desc.a.zero_point;
  spec.weights_zero_point = desc.b.zero_point;
  spec.packs = desc.pack_b;
  const size_t batch_rank = desc.c.batch.size();
  const Dims a = matrix_dims(desc.a, batch_rank, desc.m, desc.k);
  const Dims b = matrix_dims(desc.b, batch_rank, desc.k, desc.n);
  spec.dst_dims = matrix_dims(desc.c, batch_rank, desc.m, desc.n);
  spec.dst_order = memory_order(spec.dst_dims.size(), false);
  spec.channel_axis = static_cast<int>(batch_rank) + 1;
  spec.src = MemoryDesc::strided(a, desc.a.data, matrix_strides(desc.a, a));
  spec.plain_weights = MemoryDesc::strided(b, desc.b.data, matrix_strides(desc.b, b));
  spec.dst = MemoryDesc::strided(spec.dst_dims, desc.c.data, matrix_strides(desc.c, spec.dst_dims));
  if (!desc.pack_b)
    spec.weights = spec.plain_weights;
  else
    spec.weights = desc.share ? packed_desc(*desc.share) : MemoryDesc::any(b, desc.b.data);
  spec.bias = bias_desc(spec, desc.n);
  return spec;
}

}  // namespace dais::onednn

#endif
