#pragma once

#include "backends/cpu/onednn_library.h"

#ifdef DAIS_ONEDNN

namespace dais::onednn {

enum class Form { conv, deconv, matmul };

/// A description in oneDNN's terms: what the three public structs have in common. Points into the
/// description it was made from.
struct Spec {
  Form form = Form::conv;
  MemoryDesc src, weights, plain_weights, bias, dst;
  bool packs = true;      ///< `weights` is a private format that `plain_weights` is copied into
  bool winograd = false;  ///< may be tried; after winograd_spec(): is used
  MemoryDesc caller_src, caller_dst;  ///< with Winograd: the caller's formats of src and dst
  bool depthwise = false;
  Dims strides, dilates, pads_begin, pads_end;  ///< not for matmul; a dilate of 0 is dense
  int32_t src_zero_point = 0, weights_zero_point = 0;
  Dims src_dims, dst_dims;
  std::vector<int> dst_order;  ///< dims of dst from outermost to innermost in memory
  int channel_axis = 1;
  const Epilogue* epilogue = nullptr;
};

/// A tensor that attributes make the primitive read.
struct Operand {
  int argument = 0;
  MemoryDesc desc;
  std::vector<float> values;  ///< when constant: scales, or bits of a zero point
  bool constant() const { return !values.empty(); }
};

struct Attributes {
  Attr attr;
  std::vector<Operand> operands;  ///< those of the caller's post-ops in order, then constant ones
};

/// Why no primitive should be asked for at all; empty when one may. DAIS_CHECKs that the vectors of
/// the description have the lengths they must have.
std::string objection(const ConvDesc& desc);
std::string objection(const DeconvDesc& desc);
std::string objection(const MatmulDesc& desc);

Spec spec_of(const ConvDesc& desc);
Spec spec_of(const DeconvDesc& desc);
Spec spec_of(const MatmulDesc& desc);

/// The same convolution by Winograd's transform, in the activation formats that oneDNN wants.
Spec winograd_spec(const Spec& spec);

Attributes attributes_of(const Spec& spec);

}  // namespace dais::onednn

#endif
