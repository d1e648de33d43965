// Products by cuBLASLt, whose matrices lie column by column: our y = a * b is its y' = b' * a'.
#include "ops/matmul/library_cuda.h"

#include <algorithm>

#include "ops/elementwise/elementwise.h"
#include "ops/fused/fused.h"
#include "ops/matmul/blas_cuda.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/matmul_cuda.h"
#include "ops/matmul/product_cuda.h"

namespace dais {
namespace {

using cuda::BlasEpilogue;

std::optional<cuda::DataKind> kind_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return cuda::DataKind::f32;
    case DType::f16: return cuda::DataKind::f16;
    case DType::bf16: return cuda::DataKind::bf16;
    default: return std::nullopt;
  }
}

/// A product with at most a bias along columns and an activation.
struct Plain {
  const Value* bias = nullptr;
  BlasEpilogue epilogue = BlasEpilogue::none;
  float alpha = 1;
  bool trans_a = false, trans_b = false;
};

bool along_columns(const Value* value, const Value* result) {
  if (!value->type.ranked() || !result->type.ranked() || result->type.shape->empty()) return false;
  const Dims& dims = *value->type.shape;
  return !dims.empty() && dims.back() == result->type.shape->back() &&
         std::all_of(dims.begin(), dims.end() - 1, [](const Dim& d) { return d.is(1); }) &&
         value->type.dtype == result->type.dtype;
}

/// The next node behind the product as part of it; false: it is none.
bool take(const Node& node, const Value* before, Plain& plain) {
  const auto call = scalar_call(node);
  if (!call || std::count(node.in.begin(), node.in.end(), before) != 1) return false;
  if (call->function == Scalar::add && !plain.bias && plain.epilogue == BlasEpilogue::none) {
    const Value* other = node.in[node.in[0] == before ? 1 : 0];
    if (!along_columns(other, before)) return false;
    plain.bias = other;
    return true;
  }
  const bool first = plain.epilogue == BlasEpilogue::none;
  if (call->function == Scalar::relu && first)
    plain.epilogue = BlasEpilogue::relu;
  else if (call->function == Scalar::gelu_tanh && first)
    plain.epilogue = BlasEpilogue::gelu;
  else
    return false;
  return true;
}

std::optional<Plain> plain_of(const Node& node) {
  const Node& product = product_of(node);
  Plain out;
  if (const auto* gemm = product.as<Gemm>()) {
    out.alpha = gemm->alpha;
    out.trans_a = gemm->trans_a;
    out.trans_b = gemm->trans_b;
    if (product.has(2) && gemm->beta != 0) {
      if (gemm->beta != 1 || !along_columns(product.in[2], product.outs[0])) return std::nullopt;
      out.bias = product.in[2];
    }
  } else if (!product.as<MatMul>()) {
    return std::nullopt;
  }
  if (!node.as<Fused>()) return out;
  const Graph& body = *node.regions[0];
  const Value* current = product.outs[0];
  for (const auto& inner : body.nodes()) {
    if (inner.get() == &product) continue;
    if (!(inner->outs[0]->type == current->type) || !take(*inner, current, out))
      return std::nullopt;
    current = inner->outs[0];
  }
  if (body.outputs.size() != 1 || body.outputs[0] != current) return std::nullopt;
  return out;
}

struct Made {
  std::shared_ptr<cuda::Device> device;
  Plain plain;
  cuda::DataKind kind = cuda::DataKind::f32;
  MatmulPrecision precision = MatmulPrecision::highest;  ///< of f32
  ProductSource a, b, bias;
  std::unique_ptr<Kernel> own;  ///< for sizes that the library refuses
};

cuda::BlasCompute compute_of(MatmulPrecision precision) {
  switch (precision) {
    case MatmulPrecision::high: return cuda::BlasCompute::f32_fast_tf32;
    case MatmulPrecision::medium: return cuda::BlasCompute::f32_fast_bf16;
    default: return cuda::BlasCompute::f32;
  }
}

class BoundLibrary : public BoundKernel {
 public:
  BoundLibrary(std::shared_ptr<const Made> made, std::unique_ptr<BlasCall> call)
      : made_(std::move(made)), call_(std::move(call)) {}
  size_t scratch_bytes() const override { return call_->workspace_bytes(); }

  Fault run(const Arguments& arguments) noexcept override {
    call_->run(*static_cast<cuda::CudaQueue*>(arguments.queue),
               {.a = made_->b.address(arguments),
                .b = made_->a.address(arguments),
                .d = arguments.out[0],
                .bias = made_->plain.bias ? made_->bias.address(arguments) : nullptr,
                .workspace = arguments.scratch});
    return {};
  }

 private:
  std::shared_ptr<const Made> made_;
  std::unique_ptr<BlasCall> call_;
};

class LibraryKernel : public Kernel {
 public:
  explicit LibraryKernel(std::shared_ptr<const Made> made) : made_(std::move(made)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape &a = made_->a.shape(sizes), &b = made_->b.shape(sizes);
    if (sizes.out[0].elements() == 0 || a.elements() == 0) return made_->own->bind(sizes);
    auto call = BlasCall::find(*made_->device, problem(a, b));
    if (!call) return with_note(made_->own->bind(sizes), std::string(kBlasKnowsNoWay));
    return std::make_unique<BoundLibrary>(made_, std::move(call));
  }
  std::string detail() const override { return cuda::precision_text(made_->precision); }

 private:
  /// Rows of all batches are one matrix when B is one; else the batches step together.
  BlasProblem problem(const Shape& a, const Shape& b) const {
    const Plain& plain = made_->plain;
    const size_t ra = a.rank(), rb = b.rank();
    const bool one = rb == 2;
    const int64_t depth = plain.trans_a ? a[ra - 2] : a[ra - 1];
    const int64_t columns = plain.trans_b ? b[rb - 2] : b[rb - 1];
    int64_t rows = plain.trans_a ? a[ra - 1] : a[ra - 2];
    if (one) rows = a.elements() / depth;
    // A row-major matrix of `down` x `across` is column-major turned.
    const auto matrix = [&](int64_t across, int64_t down, bool turned) {
      return BlasMatrix{made_->kind, turned ? down : across, turned ? across : down};
    };
    return {.compute = compute_of(made_->precision),
            .a = matrix(columns, depth, plain.trans_b),
            .b = matrix(depth, rows, plain.trans_a),
            .d = matrix(columns, rows, false),
            .turn_a = plain.trans_b,
            .turn_b = plain.trans_a,
            .batches = one ? 1 : b.elements(0, rb - 2),
            .alpha = plain.alpha,
            .epilogue = plain.epilogue,
            .bias = plain.bias != nullptr};
  }

  std::shared_ptr<const Made> made_;
};

}  // namespace

Verdict accepts_library_product(const KernelQuery& query) {
  const auto& report = cuda::device_of(query).tables().cublaslt.report;
  if (!report.usable()) return no("cuBLASLt " + report.problem);
  const Node& product = product_of(query.node);
  if (!product.as<MatMul>() && !product.as<Gemm>()) return no("holds no matrix product");
  if (!kind_of(product.outs[0]->type.dtype)) return no("element type");
  if (!plain_of(query.node)) return no("what follows is more than a bias and an activation");
  if (!product.in[0]->type.ranked() || !product.in[1]->type.ranked())
    return no("a rank is unknown");
  const Dims &a = *product.in[0]->type.shape, &b = *product.in[1]->type.shape;
  if (a.size() < 2 || b.size() < 2) return no("an operand is a vector");
  const bool batched = a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
  if (b.size() != 2 && !batched) return no("batches repeat in an uneven way");
  return accepts_matmul_cuda(query);
}

std::unique_ptr<Kernel> prepare_library_product(const KernelQuery& query) {
  auto made = std::make_shared<Made>();
  cuda::Device& device = cuda::device_of(query);
  made->own = prepare_matmul_cuda(query);
  made->device = device.shared_from_this();
  if (!device.cublaslt()) return std::move(made->own);
  const Node& product = product_of(query.node);
  made->plain = *plain_of(query.node);
  made->kind = *kind_of(product.outs[0]->type.dtype);
  if (made->kind == cuda::DataKind::f32) made->precision = cuda::precision_of(query);
  made->a = product_source(query, product.in[0]);
  made->b = product_source(query, product.in[1]);
  if (made->plain.bias) made->bias = product_source(query, made->plain.bias);
  return std::make_unique<LibraryKernel>(std::move(made));
}

}  // namespace dais
