// bf16 products on the tile unit, alone or with a bias behind them. Both factors are read where
// they lie and brought into tiles on each run, so weights may change from run to run; constant ones
// are left to the rows that pack them once.

#include "ops/matmul/half_cpu.h"

#include <algorithm>
#include <optional>

#include "backends/cpu/half_gemm.h"
#include "base/threads.h"
#include "ops/elementwise/elementwise.h"
#include "ops/fused/fused.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/product.h"

namespace dais {
namespace {

using cpu::HalfBlock;

/// A product and what it reads, as inputs of the node.
struct HalfProduct {
  int a = -1, b = -1, bias = -1;
  bool trans_a = false, trans_b = false, gemm = false;
};

bool is_half(const Value* value) { return value && value->type.dtype == DType::bf16; }

bool is_column(const Value* bias, const Value* out) {
  if (!is_half(bias) || !bias->type.ranked()) return false;
  const Dims& dims = *bias->type.shape;
  return dims.size() == 1 && dims[0] == out->type.shape->back();
}

/// The bias that an addition behind the product adds; null: it is something else.
const Value* added_bias(const Node& add, const Value* product) {
  if (!add.as<Add>()) return nullptr;
  const Value* other = add.in[0] == product ? add.in[1] : add.in[0];
  return other != product && is_column(other, product) ? other : nullptr;
}

std::optional<HalfProduct> find(const Node& node, std::string& reason) {
  const auto refuse = [&](const char* why) {
    reason = why;
    return std::nullopt;
  };
  const Graph* graph = node.as<Fused>() ? node.regions[0].get() : nullptr;
  if (graph && graph->size() != 2) return refuse("more than a bias behind the product");
  const Node& product = graph ? *graph->nodes().front() : node;
  const auto* gemm = product.as<Gemm>();
  if (!gemm && !product.as<MatMul>()) return refuse("no product");
  const Values& inputs = graph ? graph->inputs : node.in;
  const Value* out = product.outs[0];
  for (const Value* factor : {product.in[0], product.in[1]})
    if (!is_half(factor) || !factor->type.ranked() || factor->type.shape->size() < 2)
      return refuse("factors that are no bf16 matrices");
  const auto place = [&](const Value* value) {
    const auto found = std::find(inputs.begin(), inputs.end(), value);
    return found == inputs.end() || value->constant() ? -1
                                                      : static_cast<int>(found - inputs.begin());
  };
  HalfProduct made{.a = place(product.in[0]), .b = place(product.in[1]), .gemm = gemm != nullptr};
  if (made.a < 0 || made.b < 0) return refuse("a constant factor");
  const Value* bias = nullptr;
  if (gemm) {
    made.trans_a = gemm->trans_a;
    made.trans_b = gemm->trans_b;
    if (gemm->alpha != 1) return refuse("a scaled product");
    if (product.has(2)) bias = product.in[2];
    if (bias && (gemm->beta != 1 || !is_column(bias, out))) return refuse("an addend of its own");
  }
  if (graph) {
    if (bias || graph->outputs.size() != 1) return refuse("more than a bias behind the product");
    bias = added_bias(*graph->nodes().back(), out);
    if (!bias || graph->outputs[0] != graph->nodes().back()->outs[0])
      return refuse("something else than a bias behind the product");
  }
  if (bias && (made.bias = place(bias)) < 0) return refuse("a constant bias");
  return made;
}

class BoundHalfProduct : public BoundKernel {
 public:
  BoundHalfProduct(const HalfProduct& product, const Shape& a, const Shape& b) : product_(product) {
    if (product.gemm) {
      block_.rows = a[product.trans_a ? 1 : 0];
      block_.depth = a[product.trans_a ? 0 : 1];
      block_.columns = b[product.trans_b ? 0 : 1];
      shape_.a_offset = shape_.b_offset = {0};
    } else {
      shape_ = product_shape(a, b);
      block_.rows = shape_.gemm.rows;
      block_.depth = shape_.gemm.depth;
      block_.columns = shape_.gemm.columns;
    }
    block_.a.turned = product.trans_a;
    block_.a.line = product.trans_a ? block_.rows : block_.depth;
    block_.b.turned = product.trans_b;
    block_.b.line = product.trans_b ? block_.depth : block_.columns;
    block_.c_row = block_.columns;
    join_batches(b);
  }

  bool possible() const { return block_.rows > 0 && block_.columns > 0 && block_.depth > 0; }

  Fault run(const Arguments& arguments) noexcept override {
    const auto* a = static_cast<const uint16_t*>(arguments.in[static_cast<size_t>(product_.a)]);
    const auto* b = static_cast<const uint16_t*>(arguments.in[static_cast<size_t>(product_.b)]);
    auto* c = static_cast<uint16_t*>(arguments.out[0]);
    HalfBlock block = block_;
    if (product_.bias >= 0)
      block.bias = static_cast<const uint16_t*>(arguments.in[static_cast<size_t>(product_.bias)]);
    const auto one = [&](int64_t i, bool alone) {
      HalfBlock part = block;
      part.a.data = a + shape_.a_offset[static_cast<size_t>(i)];
      part.b.data = b + shape_.b_offset[static_cast<size_t>(i)];
      part.c = c + i * part.rows * part.columns;
      (alone ? cpu::half_gemm_serial : cpu::half_gemm)(part);
    };
    const int64_t batches = std::ssize(shape_.a_offset);
    if (batches < team_size()) {
      for (int64_t i = 0; i < batches; ++i) one(i, false);
      return {};
    }
    parallel_for(batches, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) one(i, true);
    });
    return {};
  }

 private:
  /// A batch of matrices times one and the same is one product of many rows.
  void join_batches(const Shape& b) {
    if (product_.gemm || b.rank() != 2 || shape_.a_offset.empty()) return;
    block_.rows *= std::ssize(shape_.a_offset);
    shape_.a_offset = shape_.b_offset = {0};
  }

  HalfProduct product_;
  ProductShape shape_;
  HalfBlock block_;
};

class HalfKernel : public Kernel {
 public:
  explicit HalfKernel(const HalfProduct& product) : product_(product) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    auto bound =
        std::make_unique<BoundHalfProduct>(product_, sizes.in[static_cast<size_t>(product_.a)],
                                           sizes.in[static_cast<size_t>(product_.b)]);
    if (!bound->possible()) return nullptr;
    return bound;
  }

 private:
  HalfProduct product_;
};

Verdict accepts(const KernelQuery& query) {
  std::string reason;
  return find(query.node, reason) ? yes() : no(reason);
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  std::string reason;
  return std::make_unique<HalfKernel>(*find(query.node, reason));
}

}  // namespace

void register_half_products(Kernels& kernels) {
  for (const Op* op : {&MatMul::op, &Gemm::op, &Fused::op})
    kernels.add({.name = op == &Fused::op ? "fused/half_product" : "half_product",
                 .op = op,
                 .isa = Isa::amx,
                 .accepts = accepts,
                 .prepare = prepare,
                 .priority = 10});
}

}  // namespace dais
