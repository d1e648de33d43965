// Convolution and transposed convolution on oneDNN, alone or with the elementwise steps behind
// them. Channels-last activations go straight to oneDNN. Row-major ones do for 1x1 windows, which
// are a plain product there; otherwise they are copied to channels-last scratch memory and back,
// since oneDNN's own row-major code is several times slower than the copies.

#include <algorithm>
#include <mutex>

#include "backends/cpu/onednn.h"
#include "base/threads.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_body.h"
#include "ops/conv/conv_loops.h"
#include "ops/conv/kernels_cpu.h"
#include "ops/conv/relayout_cpu.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/fused/fused.h"
#include "ops/window.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

using onednn::Data;
using onednn::Eltwise;
using onednn::PostOp;

std::optional<PostOp> function_of(const EpilogueStep& step) {
  const auto apply = [&](Eltwise function, float alpha = 0, float beta = 0) {
    return PostOp::apply(function, alpha, beta);
  };
  switch (step.kind) {
    case StepKind::relu: return apply(Eltwise::relu, step.alpha);
    case StepKind::clip: return apply(Eltwise::clip, step.alpha, step.beta);
    case StepKind::linear: return apply(Eltwise::linear, step.alpha, step.beta);
    case StepKind::hard_sigmoid: return apply(Eltwise::hard_sigmoid, step.alpha, step.beta);
    case StepKind::hard_swish: return apply(Eltwise::hard_swish);
    case StepKind::sigmoid: return apply(Eltwise::logistic);
    case StepKind::swish: return apply(Eltwise::swish, step.alpha);
    case StepKind::tanh: return apply(Eltwise::tanh);
    case StepKind::gelu: return apply(Eltwise::gelu_erf);
    case StepKind::gelu_tanh: return apply(Eltwise::gelu_tanh);
    case StepKind::elu: return apply(Eltwise::elu, step.alpha);
    case StepKind::softplus: return apply(Eltwise::soft_plus);
    case StepKind::mish: return apply(Eltwise::mish);
    default: return std::nullopt;
  }
}

/// Sizes of the activation in logical order: batch, channels, space.
std::vector<int64_t> logical_dims(const Shape& shape, bool channels_last) {
  const Activation sizes(shape, channels_last);
  std::vector<int64_t> out{sizes.batch, sizes.channels};
  out.insert(out.end(), sizes.space.begin(), sizes.space.end());
  return out;
}

/// The post-op of one step; nothing where oneDNN has none. `operand` is the run-time operand's
/// shape.
std::optional<PostOp> post_op_of(const EpilogueStep& step, const Shape* operand,
                                 bool channels_last) {
  if (const auto function = function_of(step)) return function;
  if (step.kind == StepKind::prelu) return std::nullopt;
  const bool add = step.kind == StepKind::add;
  if (step.operand < 0) return add ? PostOp::add_per_channel() : PostOp::mul_per_channel();
  const auto dims = operand ? logical_dims(*operand, channels_last) : std::vector<int64_t>{};
  return add ? PostOp::add(Data::f32, dims) : PostOp::mul(Data::f32, dims);
}

/// Functions that oneDNN makes of a step, for functions that it knows once only (below).
std::vector<StepKind> functions_behind(StepKind kind) {
  if (kind == StepKind::hard_sigmoid) return {StepKind::linear, StepKind::clip};
  return {kind};
}

/// The steps as oneDNN can take them; nothing when it cannot. Its 2.x keeps the parameters of each
/// function once per kernel, so that a second use with others would take the first one's: a second
/// linear function becomes a product and a sum per channel.
std::optional<std::vector<EpilogueStep>> onednn_steps(const ConvBody& body) {
  std::vector<EpilogueStep> out;
  std::vector<StepKind> used;
  const Dims& shape = *body.out_type().shape;
  const auto& channels = shape[channel_axis(shape.size(), conv_channels_last(*body.conv))];
  for (const EpilogueStep& step : body.steps) {
    if (!post_op_of(step, nullptr, true)) return std::nullopt;
    if (!function_of(step)) {
      out.push_back(step);
      continue;
    }
    bool again = false;
    for (const StepKind kind : functions_behind(step.kind)) {
      again |= std::find(used.begin(), used.end(), kind) != used.end();
      used.push_back(kind);
    }
    if (!again) {
      out.push_back(step);
      continue;
    }
    if (step.kind != StepKind::linear || !channels.is_constant()) return std::nullopt;
    const auto count = static_cast<size_t>(*channels.constant());
    const auto per_channel = [&](StepKind kind, float value) {
      EpilogueStep made{.kind = kind};
      made.channels.assign(count, value);
      out.push_back(std::move(made));
    };
    if (step.alpha != 1) per_channel(StepKind::mul, step.alpha);
    if (step.beta != 0) per_channel(StepKind::add, step.beta);
  }
  return out;
}

/// Where a tensor is found in a run.
struct Operand {
  int input = -1;               ///< of the node, or...
  const void* fixed = nullptr;  ///< ...constant memory
  std::optional<Relayout> relayout = {};
  size_t scratch_at = 0;
};

/// Weights that arrive at run time are packed anew in each run.
struct Weights {
  int input = -1;
  std::shared_ptr<onednn::Packed> packed;
};

class BoundConv : public BoundKernel {
 public:
  BoundConv(std::unique_ptr<onednn::Primitive> primitive, Weights weights, const ConvLoops& loops)
      : primitive_(std::move(primitive)), weights_(std::move(weights)), loops_(loops) {}

  size_t add_scratch(size_t bytes) {
    const size_t at = scratch_bytes_;
    scratch_bytes_ += aligned(bytes);
    return at;
  }

  size_t scratch_bytes() const override { return scratch_bytes_; }

  Fault run(const Arguments& arguments) noexcept override {
    auto* scratch = static_cast<std::byte*>(arguments.scratch);
    onednn::Tensors tensors;
    tensors.src = fetch(x, arguments, scratch);
    for (size_t i = 0; i < post.size(); ++i) post_[i] = fetch(post[i], arguments, scratch);
    tensors.post = post_;
    if (weights_.input >= 0 &&
        !primitive_->repack(arguments.in[static_cast<size_t>(weights_.input)], *weights_.packed))
      return {"oneDNN could not pack the weights", 0};
    tensors.packed = weights_.packed.get();
    tensors.bias = fetch(bias, arguments, scratch);
    tensors.scratch = scratch + primitive_at;
    tensors.dst = y ? static_cast<void*>(scratch + y_at) : arguments.out[0];
    if (!primitive_->run(tensors)) return {"oneDNN failed", 0};
    if (y)
      y->run(loops_, static_cast<const float*>(tensors.dst), static_cast<float*>(arguments.out[0]));
    return {};
  }

  Operand x, bias;
  std::vector<Operand> post;
  std::optional<Relayout> y;  ///< back to row-major
  size_t y_at = 0, primitive_at = 0;

  void seal() { post_.resize(post.size()); }

 private:
  const void* fetch(const Operand& operand, const Arguments& arguments, std::byte* scratch) const {
    if (operand.input < 0) return operand.fixed;
    const void* found = arguments.in[static_cast<size_t>(operand.input)];
    if (!operand.relayout) return found;
    auto* copy = reinterpret_cast<float*>(scratch + operand.scratch_at);
    operand.relayout->run(loops_, static_cast<const float*>(found), copy);
    return copy;
  }

  std::unique_ptr<onednn::Primitive> primitive_;
  Weights weights_;
  const ConvLoops& loops_;
  size_t scratch_bytes_ = 0;
  std::vector<const void*> post_;
};

/// Window of a bound convolution in oneDNN's terms.
bool fill(onednn::Window& out, const Window& window, const Activation& x, const Activation& y,
          const Node& conv) {
  out.kernel = window.kernel;
  out.strides = window.strides;
  out.dilations = window.dilations;
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    int64_t begin, end;
    if (const auto* transposed = conv.as<ConvTranspose>()) {
      begin = *transposed_axis(*transposed, window, axis, Dim(x.space[axis])).pad_begin.constant();
      end = 0;
    } else {
      begin = window.pad_begin(axis, x.space[axis], y.space[axis]);
      end =
          (y.space[axis] - 1) * window.strides[axis] + window.extent(axis) - x.space[axis] - begin;
    }
    if (begin < 0) return false;
    out.pads_begin.push_back(begin);
    out.pads_end.push_back(end);
  }
  return true;
}

class ConvKernel : public Kernel {
 public:
  explicit ConvKernel(const KernelQuery& query)
      : body_(*find_conv_body(query.node).body), loops_(conv_loops(query.isa)) {
    body_.steps = *onednn_steps(body_);
  }

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape& w = weight_shape(sizes);
    const bool channels_last = conv_channels_last(*body_.conv);
    const bool relayout = !channels_last && !plain_product(w);
    auto primitive = create(sizes, channels_last, channels_last || relayout);
    if (!primitive) return nullptr;
    const size_t scratch = primitive->scratch_bytes();
    Weights weights{body_.w, packed_for(*primitive, w)};
    auto bound = std::make_unique<BoundConv>(std::move(primitive), std::move(weights), loops_);
    bound->primitive_at = bound->add_scratch(scratch);
    bound->x = operand_of(body_.x, sizes, relayout, *bound);
    if (relayout) {
      bound->y = to_row_major(sizes.out[0]);
      bound->y_at = bound->add_scratch(bound->y->bytes());
    }
    bound->bias.input = body_.bias;
    if (body_.bias_constant()) bound->bias.fixed = body_.bias_constant()->raw();
    for (const EpilogueStep& step : body_.steps) {
      if (step.operand >= 0)
        bound->post.push_back(operand_of(step.operand, sizes, relayout, *bound));
      else if (!step.channels.empty())
        bound->post.push_back({.fixed = step.channels.data()});
    }
    bound->seal();
    return bound;
  }

  std::string detail() const override {
    const std::lock_guard lock(mutex_);
    return implementation_;
  }

 private:
  const Shape& weight_shape(const Sizes& sizes) const {
    return body_.weights() ? body_.weights()->shape() : sizes.in[static_cast<size_t>(body_.w)];
  }

  /// oneDNN runs row-major 1x1 windows of one group as a product.
  bool plain_product(const Shape& w) const {
    return body_.conv->as<Conv>() && conv_group(*body_.conv) == 1 && w.elements(2, w.rank()) == 1;
  }

  static Operand operand_of(int input, const Sizes& sizes, bool relayout, BoundConv& bound) {
    Operand out{.input = input};
    const Relayout copy = to_channels_last(sizes.in[static_cast<size_t>(input)]);
    if (!relayout || copy.rows == 1 || copy.columns == 1) return out;
    out.relayout = copy;
    out.scratch_at = bound.add_scratch(copy.bytes());
    return out;
  }

  /// `outer`: the node's activations are channels-last; `inner`: the primitive's are.
  std::unique_ptr<onednn::Primitive> create(const Sizes& sizes, bool outer, bool inner) const {
    const Node& conv = *body_.conv;
    const Activation x(sizes.in[static_cast<size_t>(body_.x)], outer), y(sizes.out[0], outer);
    const Window window = conv_window(conv, weight_shape(sizes));
    onednn::Epilogue epilogue;
    epilogue.bias = body_.has_bias();
    for (const EpilogueStep& step : body_.steps) {
      const Shape* operand =
          step.operand >= 0 ? &sizes.in[static_cast<size_t>(step.operand)] : nullptr;
      epilogue.post_ops.push_back(*post_op_of(step, operand, outer));
    }
    const auto complete = [&](auto& desc) {
      fill_sizes(desc, x, y, conv_group(conv));
      desc.channels_last = inner;
      desc.epilogue = std::move(epilogue);
      return fill(desc.window, window, x, y, conv);
    };
    onednn::Created made;
    if (conv.as<Conv>()) {
      onednn::ConvDesc desc;
      if (complete(desc)) made = onednn::create(desc);
    } else {
      onednn::DeconvDesc desc;
      desc.out_spatial = y.space;
      if (complete(desc)) made = onednn::create(desc);
    }
    const std::lock_guard lock(mutex_);
    implementation_ = made ? made.primitive->implementation() : made.reason;
    return std::move(made.primitive);
  }

  /// Constant weights are packed once per format; run-time ones get memory of their own.
  std::shared_ptr<onednn::Packed> packed_for(const onednn::Primitive& primitive,
                                             const Shape& w) const {
    if (!body_.weights()) {
      const std::vector<float> empty(static_cast<size_t>(w.elements()), 0.0F);
      return primitive.pack(empty.data());
    }
    const std::lock_guard lock(mutex_);
    for (const auto& packed : packed_)
      if (primitive.accepts(*packed)) return packed;
    packed_.push_back(primitive.pack(body_.weights()->raw()));
    return packed_.back();
  }

  ConvBody body_;
  const ConvLoops& loops_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<onednn::Packed>> packed_;
  mutable std::string implementation_;
};

}  // namespace

Verdict accepts_onednn_conv(const KernelQuery& query) {
  if (!onednn::unavailable().empty()) return no(onednn::unavailable());
  const FoundBody found = find_conv_body(query.node);
  if (!found.body) return no(found.reason);
  return onednn_steps(*found.body) ? yes() : no("oneDNN has no such step");
}

std::unique_ptr<Kernel> prepare_onednn_conv(const KernelQuery& query) {
  return std::make_unique<ConvKernel>(query);
}

namespace ops {
void register_conv_cpu(Kernels& kernels) {
  register_tiles(kernels);
  register_winograd(kernels);
  register_planes(kernels);
  register_conv_backward(kernels);
  register_half_conv(kernels);
  const auto add = [&](std::string_view name, const Op& op, Isa isa, int priority) {
    kernels.add({.name = name,
                 .op = &op,
                 .isa = isa,
                 .accepts = accepts_onednn_conv,
                 .prepare = prepare_onednn_conv,
                 .priority = priority});
  };
  add("conv/onednn", Conv::op, Isa::avx2, 0);
  add("conv_transpose/onednn", ConvTranspose::op, Isa::avx2, 0);
  add("fused/onednn_conv", Fused::op, Isa::avx2, 0);
}
}  // namespace ops
}  // namespace dais
