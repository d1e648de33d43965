// The host's side of product.cu, shared by matrix products, convolutions and their gradients.
#include "ops/matmul/product_cuda.h"

#include <algorithm>
#include <cstring>

#include "ops/fused/fused.h"

namespace dais {
namespace {

constexpr int64_t kTile = 64;
constexpr int64_t kCoreTile = 128;

static_assert(sizeof(ProductProblem) == 16 + 32 + 96 + 24 + 8 + 72 + 24);

struct Prepared {
  ProductForm form;
  EpilogueText epilogue;
  std::shared_ptr<const cuda::Program> program;
  cuda::Function function;
  cuda::Function cores;  ///< null handle: none for this type and device
  ProductSource a, b;
  std::vector<ProductSource> operands;
  std::string program_detail;  ///< what sums are held in
  bool rounds = false;         ///< cores: elements are rounded to TF32
};

/// Whether an operand of the epilogue is linear in batch, row and column of the result.
std::optional<OperandSteps> steps_of(const Shape& operand, const Shape& out, size_t column_axes,
                                     bool per_row) {
  const size_t tail = column_axes + 1;
  if (per_row) return OperandSteps{0, operand.elements() == 1 ? 0 : 1, 0};
  if (operand.elements() == 1) return OperandSteps{0, 0, 0};
  if (out.rank() < tail || operand.rank() > out.rank()) return std::nullopt;
  const size_t lead = out.rank() - operand.rank();
  const auto size = [&](size_t axis) { return axis < lead ? 1 : operand[axis - lead]; };
  /// 0: all ones; 1: all of the result's; -1: neither.
  const auto kind = [&](size_t first, size_t last) {
    bool ones = true, whole = true;
    for (size_t axis = first; axis < last; ++axis) {
      ones = ones && size(axis) == 1;
      whole = whole && size(axis) == out[axis];
    }
    return ones ? 0 : whole ? 1 : -1;
  };
  const size_t row = out.rank() - tail;
  const int columns = kind(row + 1, out.rank()), rows = kind(row, row + 1), batch = kind(0, row);
  if (columns < 0 || rows < 0 || batch < 0) return std::nullopt;
  const int64_t column_count = columns ? out.elements(row + 1, out.rank()) : 1;
  const int64_t row_count = rows ? out[row] : 1;
  return OperandSteps{batch ? row_count * column_count : 0, rows ? column_count : 0,
                      columns ? 1 : 0};
}

class BoundProduct : public BoundKernel {
 public:
  BoundProduct(std::shared_ptr<const Prepared> made, const ProductCall& call,
               const std::vector<OperandSteps>& steps)
      : made_(std::move(made)), call_(call) {
    const ProductProblem& p = call.problem;
    cores_ = made_->cores.handle && p.rows > kTile / 2 && p.columns > kTile / 2;
    const int64_t tile = cores_ ? kCoreTile : kTile;
    blocks_ = cuda::ceil_div(p.rows, tile) * cuda::ceil_div(p.columns, tile) * call.batches;
    numbers_ = made_->epilogue.numbers;
    if (numbers_.empty()) numbers_.push_back(0);
    first_operand_ = numbers_.size();
    epilogue_ = numbers_;
    epilogue_.resize(numbers_.size() + std::max<size_t>(steps.size(), 1) * 4);
    for (size_t k = 0; k < steps.size(); ++k)
      for (size_t i = 0; i < 3; ++i) epilogue_[first_operand_ + k * 4 + 1 + i] = steps[k][i];
  }

  Fault run(const Arguments& arguments) noexcept override {
    if (blocks_ == 0) return {};
    for (size_t k = 0; k < made_->operands.size(); ++k)
      epilogue_[first_operand_ + k * 4] =
          static_cast<int64_t>(reinterpret_cast<intptr_t>(made_->operands[k].address(arguments)));
    const void* a = made_->a.address(arguments);
    const void* b = made_->b.address(arguments);
    void* y = arguments.out[0];
    if (cores_) call_.problem.packs = packs(a, b);
    cuda::Grid grid;
    grid.x = static_cast<unsigned>(blocks_);
    grid.threads = 256;
    void* parameters[] = {&call_.problem, epilogue_.data(), &a, &b, &y};
    cuda::launch_raw(*static_cast<cuda::CudaQueue*>(arguments.queue),
                     cores_ ? made_->cores : made_->function, grid, parameters);
    return {};
  }

 private:
  /// Which operands can be loaded eight at a time: 1 for A, 2 for B.
  int32_t packs(const void* a, const void* b) const noexcept {
    const ProductProblem& p = call_.problem;
    if (made_->form.mode != ProductMode::matrices) return 0;
    const auto whole = [](const void* address, const int64_t(&batch)[6]) {
      bool out = reinterpret_cast<uintptr_t>(address) % 16 == 0;
      for (const int64_t step : batch) out = out && step % 8 == 0;
      return out;
    };
    const bool left = p.a_column == 1 && p.depth % 8 == 0 && p.a_row % 8 == 0;
    const bool right = p.b_column == 1 && p.columns % 8 == 0 && p.b_row % 8 == 0;
    return (left && whole(a, p.a_batch) ? 1 : 0) | (right && whole(b, p.b_batch) ? 2 : 0);
  }

  std::shared_ptr<const Prepared> made_;
  ProductCall call_;
  bool cores_ = false;
  int64_t blocks_ = 0;
  size_t first_operand_ = 0;
  std::vector<int64_t> numbers_, epilogue_;
};

class ProductKernel : public Kernel {
 public:
  explicit ProductKernel(std::shared_ptr<const Prepared> made) : made_(std::move(made)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const auto call = made_->form.call(made_->a.shape(sizes), made_->b.shape(sizes), sizes.out[0]);
    constexpr int64_t kMostBlocks = int64_t{1} << 31;
    if (!call) return nullptr;
    const ProductProblem& p = call->problem;
    if (cuda::ceil_div(p.rows, kTile) * cuda::ceil_div(p.columns, kTile) * call->batches >=
        kMostBlocks)
      return nullptr;
    std::vector<OperandSteps> steps;
    for (size_t k = 0; k < made_->operands.size(); ++k) {
      const bool per_row = made_->form.mode != ProductMode::matrices &&
                           static_cast<int>(k) == made_->epilogue.addend;
      const auto found =
          steps_of(made_->operands[k].shape(sizes), sizes.out[0], made_->form.column_axes, per_row);
      if (!found) return nullptr;
      steps.push_back(*found);
    }
    return std::make_unique<BoundProduct>(made_, *call, steps);
  }
  std::string detail() const override {
    if (made_->rounds)
      return "more than 32 rows and columns: 128 x 128 tiles on tensor cores, " +
             cuda::precision_text(MatmulPrecision::high);
    if (made_->cores.handle) return "128 x 128 tiles on tensor cores, sums in float";
    return "64 x 64 tiles, sums in " + made_->program_detail;
  }

 private:
  std::shared_ptr<const Prepared> made_;
};

/// Symbolic twin of steps_of, for what can be said before sizes are known.
bool may_follow(const Dims& operand, const Dims& out, size_t column_axes) {
  if (std::all_of(operand.begin(), operand.end(), [](const Dim& d) { return d.is(1); }))
    return true;
  if (operand.size() > out.size() || out.size() < column_axes + 1) return false;
  const size_t lead = out.size() - operand.size();
  const auto part = [&](size_t first, size_t last) {
    bool ones = true, whole = true;
    for (size_t axis = first; axis < last; ++axis) {
      const Dim size = axis < lead ? Dim(1) : operand[axis - lead];
      ones = ones && size.is(1);
      whole = whole && size == out[axis];
    }
    return ones || whole;
  };
  const size_t row = out.size() - column_axes - 1;
  return part(0, row) && part(row, row + 1) && part(row + 1, out.size());
}

}  // namespace

ProductSource product_source(const KernelQuery& query, const Value* value) {
  ProductSource out;
  const Node& node = query.node;
  const Values& inputs = node.as<Fused>() ? node.regions[0]->inputs : node.in;
  const auto found = std::find(inputs.begin(), inputs.end(), value);
  if (found != inputs.end()) {
    out.input = static_cast<int>(found - inputs.begin());
  } else {
    out.tensor = *value->constant();
    out.memory = cuda::uploaded(query, out.tensor);
  }
  return out;
}

const Node& product_of(const Node& node) {
  return node.as<Fused>() ? *node.regions[0]->nodes().front() : node;
}

Verdict accepts_product(const KernelQuery& query, const ProductForm& form) {
  const Node& product = product_of(query.node);
  const Type& type = product.outs[0]->type;
  if (product.in[0]->type.dtype != product.in[1]->type.dtype ||
      product.in[0]->type.dtype != type.dtype)
    return no("element types differ");
  if (!product.in[0]->type.ranked() || !product.in[1]->type.ranked() || !type.ranked())
    return no("a rank is unknown");
  const EpilogueText epilogue = epilogue_text(query.node, product);
  if (!epilogue.reason.empty()) return no(epilogue.reason);
  const bool fused = query.node.as<Fused>() != nullptr;
  if (fused && !(query.node.outs[0]->type.shape == type.shape)) return no("sizes change");
  for (size_t k = 0; k < epilogue.operands.size(); ++k) {
    if (form.mode != ProductMode::matrices && static_cast<int>(k) == epilogue.addend) continue;
    const TextOperand& operand = epilogue.operands[k];
    Dims dims;
    if (operand.input < 0) {
      dims.assign(operand.constant.shape().begin(), operand.constant.shape().end());
    } else {
      const Value* value = query.node.in[static_cast<size_t>(operand.input)];
      if (!value->type.ranked()) return no("a rank is unknown");
      dims = *value->type.shape;
    }
    if (!may_follow(dims, *type.shape, form.column_axes))
      return no("an operand behind it repeats in an uneven way");
  }
  return yes();
}

std::unique_ptr<Kernel> prepare_product(const KernelQuery& query, const ProductForm& form) {
  auto made = std::make_shared<Prepared>();
  const Node& product = product_of(query.node);
  made->form = form;
  made->epilogue = epilogue_text(query.node, product);
  made->program_detail = lane_text(product.outs[0]->type.dtype);
  const std::string mode = std::to_string(static_cast<int>(form.mode));
  const int arch = cuda::device_of(query).info().arch;
  const DType dtype = product.outs[0]->type.dtype;
  made->rounds =
      dtype == DType::f32 && arch >= 80 && cuda::precision_of(query) != MatmulPrecision::highest;
  const bool cores =
      (dtype == DType::f16 && arch >= 75) || (dtype == DType::bf16 && arch >= 80) || made->rounds;
  std::string text = made->epilogue.text + "#define MODE " + mode + "\n";
  text += cuda::text("product.cu");
  if (cores) text += cuda::text("product_cores.cu");
  made->program = cuda::device_of(query).program({"product.cu", std::move(text)});
  made->function = made->program->function("product");
  if (cores) made->cores = made->program->function("product_cores");
  made->a = product_source(query, product.in[form.a]);
  made->b = product_source(query, product.in[form.b]);
  for (const TextOperand& operand : made->epilogue.operands) {
    ProductSource source{operand.input, operand.constant, nullptr};
    if (source.input < 0) source.memory = cuda::uploaded(query, source.tensor);
    made->operands.push_back(std::move(source));
  }
  return std::make_unique<ProductKernel>(std::move(made));
}

}  // namespace dais
