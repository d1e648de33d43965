// Matrix products on the engine's own f32 loops, alone or with the elementwise steps behind them.
// A constant B is packed once. Other operands are read where they lie; a B that many rows use is
// packed into scratch memory on each run, since walking its columns would cost more. 16-bit
// operands are widened, their results rounded once.

#include <algorithm>

#include "backends/cpu/convert.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/turn_matrix.h"
#include "base/file.h"
#include "base/threads.h"
#include "ops/fused/fused.h"
#include "ops/matmul/half_cpu.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/nbits_cpu.h"
#include "ops/matmul/product.h"
#include "ops/matmul/product_body_cpu.h"
#include "ops/wide.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

using cpu::GemmBlock;
using cpu::GemmStep;

constexpr size_t kMaxSteps = 8;

bool is_half(DType dtype) { return dtype != DType::f32; }
cpu::Half half_of(DType dtype) { return dtype == DType::f16 ? cpu::Half::f16 : cpu::Half::bf16; }

/// What all bindings of one node share.
struct Prepared {
  ProductBody body;
  Isa isa = Isa::plain;
  std::shared_ptr<cpu::PageMemory> packed;  ///< constant B
  const Tensor* packed_from = nullptr;      ///< only to be recognised: it may be gone
  Tensor packed_shape;                      ///< without elements
  std::vector<float> a_values, b_values;    ///< constants of other forms, as f32
};

/// Sizes of one binding.
ProductShape shape_of(const ProductBody& body, const Shape& a, const Shape& b) {
  if (!body.is_gemm()) return product_shape(a, b);
  ProductShape out;
  out.gemm.rows = a[body.trans_a ? 1 : 0];
  out.gemm.depth = a[body.trans_a ? 0 : 1];
  out.gemm.columns = b[body.trans_b ? 0 : 1];
  out.gemm.a_row = out.gemm.depth;
  out.gemm.b_row = out.gemm.columns;
  out.out = Shape{out.gemm.rows, out.gemm.columns};
  out.a_offset = {0};
  out.b_offset = {0};
  return out;
}

class BoundProduct : public BoundKernel {
 public:
  BoundProduct(const Prepared& prepared, const Shape& a, const Shape& b)
      : prepared_(prepared), body_(prepared.body), shape_(shape_of(body_, a, b)) {
    const GemmShape& g = shape_.gemm;
    block_.rows = g.rows;
    block_.columns = g.columns;
    block_.depth = g.depth;
    block_.a_row = g.depth;
    block_.c_row = g.columns;
    a_count_ = a.elements();
    b_count_ = b.elements();
    batches_ = static_cast<int64_t>(shape_.a_offset.size());
    parts_ = std::min<int64_t>(batches_, team_size());
    // Small batches of large products share the pool within each product instead.
    if (parts_ < team_size() &&
        2.0 * static_cast<double>(g.rows * g.columns) * static_cast<double>(g.depth) > 1e6)
      parts_ = 1;
    plan_scratch();
  }

  size_t scratch_bytes() const override {
    return sizeof(float) *
           static_cast<size_t>(a_scratch_ + b_scratch_ + c_scratch_ + parts_ * pack_scratch_);
  }

  Fault run(const Arguments& arguments) noexcept override {
    auto* scratch = static_cast<float*>(arguments.scratch);
    const float* a = load_a(arguments, scratch);
    scratch += a_scratch_;
    const float* b = load_b(arguments, scratch);
    scratch += b_scratch_;
    float* c = c_scratch_ > 0 ? scratch : static_cast<float*>(arguments.out[0]);
    scratch += c_scratch_;
    GemmStep steps[kMaxSteps];
    load_steps(arguments, steps);
    const auto one = [&](int64_t batch, float* pack, bool alone) {
      run_batch(batch, a, b, c, steps, pack, alone);
    };
    if (parts_ == 1) {
      for (int64_t i = 0; i < batches_; ++i) one(i, scratch, false);
    } else {
      parallel_for(parts_, 1, [&](int64_t first, int64_t last) {
        for (int64_t part = first; part < last; ++part)
          for (int64_t i = batches_ * part / parts_; i < batches_ * (part + 1) / parts_; ++i)
            one(i, scratch + part * pack_scratch_, true);
      });
    }
    if (c_scratch_ > 0)
      cpu::narrow(prepared_.isa, half_of(body_.dtype), c, static_cast<uint16_t*>(arguments.out[0]),
                  c_scratch_);
    return {};
  }

 private:
  void plan_scratch() {
    const bool half = is_half(body_.dtype);
    if (body_.trans_a || (half && prepared_.a_values.empty()))
      a_scratch_ = body_.trans_a && half ? 2 * a_count_ : a_count_;
    if (!prepared_.packed && half && prepared_.b_values.empty()) b_scratch_ = b_count_;
    if (half) c_scratch_ = shape_.out.elements();
    if (prepared_.packed) return;
    const GemmShape& g = shape_.gemm;
    const bool wide = g.columns > 2 * cpu::gemm_panel_columns(prepared_.isa);
    if (body_.trans_b || (g.rows >= 32 && wide))
      pack_scratch_ = cpu::gemm_packed_floats(prepared_.isa, g.depth, g.columns);
  }

  const float* load_a(const Arguments& arguments, float* scratch) const {
    const float* a = prepared_.a_values.data();
    if (prepared_.a_values.empty()) {
      const void* given =
          body_.a >= 0 ? arguments.in[static_cast<size_t>(body_.a)] : body_.a_constant->raw();
      a = static_cast<const float*>(given);
      if (is_half(body_.dtype)) {
        float* to = body_.trans_a ? scratch + a_count_ : scratch;
        cpu::widen(prepared_.isa, half_of(body_.dtype), static_cast<const uint16_t*>(given), to,
                   a_count_);
        a = to;
      }
    }
    if (!body_.trans_a) return a;
    cpu::turn_matrix(prepared_.isa, shape_.gemm.depth, shape_.gemm.rows, a, scratch);
    return scratch;
  }

  const float* load_b(const Arguments& arguments, float* scratch) const {
    if (prepared_.packed) return nullptr;
    if (!prepared_.b_values.empty()) return prepared_.b_values.data();
    const void* given =
        body_.b >= 0 ? arguments.in[static_cast<size_t>(body_.b)] : body_.b_constant->raw();
    if (!is_half(body_.dtype)) return static_cast<const float*>(given);
    cpu::widen(prepared_.isa, half_of(body_.dtype), static_cast<const uint16_t*>(given), scratch,
               b_count_);
    return scratch;
  }

  void load_steps(const Arguments& arguments, GemmStep* steps) const {
    for (size_t i = 0; i < body_.steps.size(); ++i) {
      const ProductStep& step = body_.steps[i];
      GemmStep& to = steps[i];
      to = {.kind = step.kind, .value = step.value, .high = step.high};
      if (step.operand >= 0)
        to.operand = static_cast<const float*>(arguments.in[static_cast<size_t>(step.operand)]);
      else if (step.constant)
        to.operand = static_cast<const float*>(step.constant.raw());
      const bool number = step.kind == GemmStep::Kind::scale || step.kind == GemmStep::Kind::shift;
      if (number && to.operand) to.value = *to.operand;
      if (step.kind == GemmStep::Kind::tensor || step.kind == GemmStep::Kind::scale_tensor)
        to.row = block_.columns;
    }
  }

  void run_batch(int64_t batch, const float* a, const float* b, float* c, const GemmStep* steps,
                 float* pack, bool alone) const {
    GemmBlock block = block_;
    const auto at = static_cast<size_t>(batch);
    block.a = a + shape_.a_offset[at];
    block.c = c + batch * block.rows * block.columns;
    GemmStep moved[kMaxSteps];
    block.step_count = std::ssize(body_.steps);
    for (int64_t i = 0; i < block.step_count; ++i) {
      moved[i] = steps[i];
      if (moved[i].row > 0) moved[i].operand += batch * block.rows * block.columns;
    }
    block.steps = moved;
    if (prepared_.packed) {
      cpu::gemm_set_packed(prepared_.isa, block, prepared_.packed->as<float>());
    } else if (pack_scratch_ > 0) {
      const float* from = b + shape_.b_offset[at];
      const int64_t row = body_.trans_b ? 1 : block.columns;
      const int64_t column = body_.trans_b ? block.depth : 1;
      (alone ? cpu::gemm_pack_serial : cpu::gemm_pack)(prepared_.isa, from, row, column,
                                                       block.depth, block.columns, pack);
      cpu::gemm_set_packed(prepared_.isa, block, pack);
    } else {
      cpu::gemm_set_plain(prepared_.isa, block, b + shape_.b_offset[at], block.columns);
    }
    (alone ? cpu::gemm_serial : cpu::gemm)(prepared_.isa, block);
  }

  const Prepared& prepared_;
  const ProductBody& body_;
  ProductShape shape_;
  GemmBlock block_;
  int64_t a_count_ = 0, b_count_ = 0, batches_ = 1, parts_ = 1;
  int64_t a_scratch_ = 0, b_scratch_ = 0, c_scratch_ = 0, pack_scratch_ = 0;  ///< floats
};

class ProductKernel : public Kernel {
 public:
  ProductKernel(ProductBody body, Isa isa) {
    prepared_.body = std::move(body);
    prepared_.isa = isa;
    const Tensor* b = prepared_.body.b_constant;
    if (b && b->rank() == 2)
      pack(*b);
    else if (b && is_half(b->dtype()))
      prepared_.b_values = to_wide<float>(*b);
    const Tensor* a = prepared_.body.a_constant;
    if (a && is_half(a->dtype())) prepared_.a_values = to_wide<float>(*a);
  }

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const ProductBody& body = prepared_.body;
    const Shape& a = body.a >= 0 ? sizes.in[static_cast<size_t>(body.a)] : body.a_constant->shape();
    const Shape& b = body.b >= 0 ? sizes.in[static_cast<size_t>(body.b)] : body.b_constant->shape();
    return std::make_unique<BoundProduct>(prepared_, a, b);
  }

  bool packs(const Tensor& constant) const override { return &constant == prepared_.packed_from; }

  std::string detail() const override {
    const std::string steps = std::to_string(prepared_.body.steps.size());
    return std::string(prepared_.packed ? "packed" : "plain") + ", " + steps + " steps";
  }

 private:
  void pack(const Tensor& b) {
    const bool turned = prepared_.body.trans_b;
    const int64_t depth = b.shape()[turned ? 1 : 0], columns = b.shape()[turned ? 0 : 1];
    const WideView<float> values(b);
    prepared_.packed = std::make_shared<cpu::PageMemory>(
        sizeof(float) *
        static_cast<size_t>(cpu::gemm_packed_floats(prepared_.isa, depth, columns)));
    cpu::gemm_pack(prepared_.isa, values.data(), turned ? 1 : columns, turned ? depth : 1, depth,
                   columns, prepared_.packed->as<float>());
    MappedFile::release(b.raw(), b.bytes());
    prepared_.packed_from = &b;
    prepared_.packed_shape = Tensor::view(b.dtype(), b.shape(), nullptr);
    prepared_.body.b_constant = &prepared_.packed_shape;
  }

  Prepared prepared_;
};

Verdict accepts(const KernelQuery& query) {
  const FoundProduct found = find_product(query.node);
  return found.body ? yes() : no(found.reason);
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<ProductKernel>(*find_product(query.node).body, query.isa);
}

}  // namespace

namespace ops {
void register_matmul_cpu(Kernels& kernels) {
  for (const Op* op : {&MatMul::op, &Gemm::op, &Fused::op})
    kernels.add({.name = op == &Fused::op ? "fused/product" : "product",
                 .op = op,
                 .accepts = accepts,
                 .prepare = prepare});
  register_nbits_rows(kernels);
  register_half_products(kernels);
}
}  // namespace ops
}  // namespace dais
