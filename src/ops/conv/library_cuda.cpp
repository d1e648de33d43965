// Convolutions by cuDNN: the convolution, its bias, a residual and one activation as one graph.
#include "ops/conv/library_cuda.h"

#include <algorithm>

#include "ops/conv/conv.h"
#include "ops/conv/dnn_graph_cuda.h"
#include "ops/elementwise/elementwise.h"
#include "ops/fused/fused.h"
#include "ops/matmul/product_cuda.h"
#include "ops/window.h"

namespace dais {
namespace {

using cuda::DnnPointwise;

enum : int64_t { kX, kW, kBias, kResidual, kY };

std::optional<cuda::DnnData> data_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return cuda::DnnData::f32;
    case DType::f16: return cuda::DnnData::f16;
    case DType::bf16: return cuda::DnnData::bf16;
    default: return std::nullopt;
  }
}

struct Follow {
  const Value* residual = nullptr;              ///< of the convolution's type; null: none
  DnnPointwise activation = DnnPointwise::add;  ///< add: none
};

std::optional<DnnPointwise> activation_of(Scalar function) {
  switch (function) {
    case Scalar::relu: return DnnPointwise::relu;
    case Scalar::sigmoid: return DnnPointwise::sigmoid;
    case Scalar::tanh: return DnnPointwise::tanh;
    default: return std::nullopt;
  }
}

/// The other side of a sum with `current`, where it comes from outside and needs no expansion.
const Value* residual_of(const Graph& body, const Node& sum, const Value* current) {
  if (sum.in.size() != 2 || (sum.in[0] == current) == (sum.in[1] == current)) return nullptr;
  const Value* other = sum.in[0] == current ? sum.in[1] : sum.in[0];
  const bool outside =
      std::find(body.inputs.begin(), body.inputs.end(), other) != body.inputs.end();
  return outside && other->type == current->type ? other : nullptr;
}

/// What stands behind a convolution, when it is at most a residual and one activation of cuDNN's.
std::optional<Follow> follow_of(const Node& node) {
  Follow out;
  if (!node.as<Fused>()) return out;
  const Graph& body = *node.regions[0];
  const Value* current = product_of(node).outs[0];
  for (const auto& inner : body.nodes()) {
    if (inner.get() == &product_of(node)) continue;
    const auto call = scalar_call(*inner);
    if (!call || out.activation != DnnPointwise::add || !(inner->outs[0]->type == current->type))
      return std::nullopt;
    if (call->function == Scalar::add && !out.residual) {
      out.residual = residual_of(body, *inner, current);
      if (!out.residual) return std::nullopt;
    } else {
      const auto activation = activation_of(call->function);
      if (!activation || inner->in.size() != 1 || inner->in[0] != current) return std::nullopt;
      out.activation = *activation;
    }
    current = inner->outs[0];
  }
  if (body.outputs.size() != 1 || body.outputs[0] != current) return std::nullopt;
  return out;
}

struct Made {
  std::shared_ptr<cuda::Device> device;
  const Conv* attrs = nullptr;
  cuda::DnnData type = cuda::DnnData::f32;
  DnnPointwise activation = DnnPointwise::add;
  bool biased = false, adds = false;
  MatmulPrecision precision = MatmulPrecision::highest;  ///< of f32
  ProductSource x, w, bias, residual;
  std::unique_ptr<Kernel> own;  ///< for sizes that the library has no engine for
};

class BoundLibraryConv : public BoundKernel {
 public:
  BoundLibraryConv(std::shared_ptr<const Made> made, std::unique_ptr<cuda::DnnPlan> plan)
      : made_(std::move(made)), plan_(std::move(plan)) {
    ids_ = {kX, kW};
    if (made_->biased) ids_.push_back(kBias);
    if (made_->adds) ids_.push_back(kResidual);
    ids_.push_back(kY);
    pointers_.resize(ids_.size());
  }
  size_t scratch_bytes() const override { return plan_->workspace_bytes(); }

  Fault run(const Arguments& arguments) noexcept override {
    auto& queue = *static_cast<cuda::CudaQueue*>(arguments.queue);
    try {
      pointers_[0] = const_cast<void*>(made_->x.address(arguments));
      pointers_[1] = const_cast<void*>(made_->w.address(arguments));
      size_t next = 2;
      if (made_->biased) pointers_[next++] = const_cast<void*>(made_->bias.address(arguments));
      if (made_->adds) pointers_[next++] = const_cast<void*>(made_->residual.address(arguments));
      pointers_.back() = arguments.out[0];
      const cuda::DnnStatus status = plan_->run(ids_, pointers_, arguments.scratch, queue.stream());
      if (status == cuda::DnnStatus::success) return {};
      const char* text = made_->device->tables().cudnn.api.get_error_string(status);
      const bool lost =
          static_cast<int>(status) >= static_cast<int>(cuda::DnnStatus::execution_failed);
      throw Error(lost ? Code::unavailable : Code::internal, std::string("cuDNN: ") + text, "GPU");
    } catch (...) {
      queue.fail(std::current_exception());
    }
    return {};
  }

 private:
  std::shared_ptr<const Made> made_;
  std::unique_ptr<cuda::DnnPlan> plan_;
  std::vector<int64_t> ids_;
  std::vector<void*> pointers_;
};

/// A single spatial axis is one of two, as the library has no engines for it.
std::vector<int64_t> two_axes(std::vector<int64_t> sizes, size_t spatial, int64_t filler) {
  if (spatial == 1) sizes.insert(sizes.end() - 1, filler);
  return sizes;
}

class LibraryConvKernel : public Kernel {
 public:
  explicit LibraryConvKernel(std::shared_ptr<const Made> made) : made_(std::move(made)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape &x = made_->x.shape(sizes), &w = made_->w.shape(sizes), &y = sizes.out[0];
    const bool expands = made_->adds && !(made_->residual.shape(sizes) == y);
    if (x.elements() == 0 || y.elements() == 0 || expands) return made_->own->bind(sizes);
    const auto conv = describe(x, w, y);
    std::string problem = "the window does not fit";
    auto plan = conv ? cuda::DnnPlan::make(*made_->device, *conv, problem) : nullptr;
    if (!plan)
      return with_note(made_->own->bind(sizes),
                       "cuDNN: " + problem + ": a kernel of dais runs for these sizes");
    return std::make_unique<BoundLibraryConv>(made_, std::move(plan));
  }
  /// An engine on tensor cores may round to TF32 where any rounding is allowed.
  std::string detail() const override {
    const bool any = made_->precision != MatmulPrecision::highest;
    return cuda::precision_text(any ? MatmulPrecision::high : MatmulPrecision::highest);
  }

 private:
  std::optional<cuda::DnnConv> describe(const Shape& x, const Shape& w, const Shape& y) const {
    const Conv& attrs = *made_->attrs;
    Window window;
    const std::vector<int64_t> kernel(w.begin() + 2, w.end());
    if (!fill_window(window, kernel, attrs.strides, attrs.dilations, attrs.pads, attrs.auto_pad,
                     false)
             .empty())
      return std::nullopt;
    const size_t spatial = x.rank() - 2;
    cuda::DnnConv out;
    out.x = {kX, made_->type, two_axes(x.vector(), spatial, 1)};
    out.w = {kW, made_->type, two_axes(w.vector(), spatial, 1)};
    out.y = {kY, made_->type, two_axes(y.vector(), spatial, 1)};
    if (made_->biased) {
      std::vector<int64_t> bias(std::max<size_t>(spatial, 2) + 2, 1);
      bias[1] = w[0];
      out.bias = {kBias, made_->type, bias};
    }
    if (made_->adds) out.residual = {kResidual, made_->type, out.y.sizes};
    for (size_t axis = 0; axis < spatial; ++axis) {
      const int64_t begin = window.pad_begin(axis, x[2 + axis], y[2 + axis]);
      const int64_t covered = (y[2 + axis] - 1) * window.strides[axis] + window.extent(axis);
      out.pad_begin.push_back(begin);
      out.pad_end.push_back(std::max<int64_t>(0, covered - x[2 + axis] - begin));
    }
    out.strides = two_axes(window.strides, spatial, 1);
    out.dilations = two_axes(window.dilations, spatial, 1);
    out.pad_begin = two_axes(out.pad_begin, spatial, 0);
    out.pad_end = two_axes(out.pad_end, spatial, 0);
    out.activation = made_->activation;
    out.exact = made_->type == cuda::DnnData::f32 && made_->precision == MatmulPrecision::highest;
    return out;
  }

  std::shared_ptr<const Made> made_;
};

}  // namespace

Verdict accepts_library_conv(const KernelQuery& query) {
  const auto& report = cuda::device_of(query).tables().cudnn.report;
  if (!report.usable()) return no("cuDNN " + report.problem);
  const Node& product = product_of(query.node);
  if (!product.as<Conv>()) return no("holds no convolution");
  if (!data_of(product.outs[0]->type.dtype)) return no("element type");
  if (!follow_of(query.node)) return no("what follows is more than a residual and an activation");
  for (size_t i = 0; i < product.in.size(); ++i)
    if (product.has(i) && product.in[i]->type.dtype != product.outs[0]->type.dtype)
      return no("element types differ");
  return yes();
}

std::unique_ptr<Kernel> prepare_library_conv(const KernelQuery& query,
                                             std::unique_ptr<Kernel> own) {
  cuda::Device& device = cuda::device_of(query);
  if (!device.cudnn()) return own;
  auto made = std::make_shared<Made>();
  const Node& product = product_of(query.node);
  made->device = device.shared_from_this();
  made->attrs = product.as<Conv>();
  made->type = *data_of(product.outs[0]->type.dtype);
  const Follow follow = *follow_of(query.node);
  made->activation = follow.activation;
  made->adds = follow.residual != nullptr;
  made->biased = product.has(2);
  if (made->type == cuda::DnnData::f32) made->precision = cuda::precision_of(query);
  made->x = product_source(query, product.in[0]);
  made->w = product_source(query, product.in[1]);
  if (made->biased) made->bias = product_source(query, product.in[2]);
  if (made->adds) made->residual = product_source(query, follow.residual);
  made->own = std::move(own);
  return std::make_unique<LibraryConvKernel>(std::move(made));
}

}  // namespace dais
