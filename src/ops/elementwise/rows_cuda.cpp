// The host's side of generated kernels with reductions. Bound by memory: each operand is read once,
// each result written once.
#include <algorithm>

#include "ops/elementwise/generated_cuda.h"
#include "ops/elementwise/row_text_cuda.h"
#include "ops/strided.h"

namespace dais {
namespace {

constexpr int64_t kMostBlocks = int64_t{1} << 20;

struct Made {
  RowText text;
  std::shared_ptr<const cuda::Program> program;
  cuda::Function function;
  TextInputs inputs;
};

/// The axes of the rows, the last one first, merged where all operands walk them evenly.
struct Rows {
  int64_t count = 1;
  std::vector<int64_t> sizes;
  std::vector<std::vector<int64_t>> strides;  ///< by operand
  std::vector<bool> held;                     ///< by operand: whether it follows a row
};

Rows rows_of(const Shape& shape, size_t axes, const std::vector<Strides>& operands) {
  Rows out;
  out.strides.resize(operands.size());
  const size_t outer = shape.rank() - axes;
  for (size_t axis = outer; axis-- > 0;) {
    out.count *= shape[axis];
    if (shape[axis] == 1) continue;
    bool even = !out.sizes.empty();
    for (size_t k = 0; k < operands.size() && even; ++k)
      even = operands[k][axis] == out.strides[k].back() * out.sizes.back();
    if (even) {
      out.sizes.back() *= shape[axis];
      continue;
    }
    out.sizes.push_back(shape[axis]);
    for (size_t k = 0; k < operands.size(); ++k) out.strides[k].push_back(operands[k][axis]);
  }
  return out;
}

std::vector<std::byte> space_of(const Rows& rows, int64_t size) {
  const std::vector<std::span<const int64_t>> strides(rows.strides.begin(), rows.strides.end());
  const std::vector<int32_t> held(rows.held.begin(), rows.held.end());
  return space_bytes(rows.count, size, rows.sizes, strides, held);
}

class BoundRows : public BoundKernel {
 public:
  BoundRows(std::shared_ptr<const Made> made, const Rows& rows)
      : made_(std::move(made)), space_(space_of(rows, made_->text.size)), rows_(rows.count) {
    numbers_ = made_->text.numbers;
    if (numbers_.empty()) numbers_.push_back(0);
    pointers_.resize(made_->text.operands.size() + made_->text.results.size());
    parameters_ = {space_.data(), numbers_.data()};
    for (void*& pointer : pointers_) parameters_.push_back(&pointer);
  }

  Fault run(const Arguments& arguments) noexcept override {
    if (rows_ == 0) return {};
    made_->inputs.collect(arguments, pointers_);
    cuda::Grid grid;
    grid.threads = made_->text.threads;
    grid.x = static_cast<unsigned>(std::min(rows_, kMostBlocks));
    cuda::launch_raw(*static_cast<cuda::CudaQueue*>(arguments.queue), made_->function, grid,
                     parameters_.data());
    return {};
  }

 private:
  std::shared_ptr<const Made> made_;
  std::vector<std::byte> space_;
  int64_t rows_;
  std::vector<int64_t> numbers_;
  std::vector<void*> pointers_, parameters_;
};

class RowsKernel : public Kernel {
 public:
  explicit RowsKernel(std::shared_ptr<const Made> made) : made_(std::move(made)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const auto& operands = made_->text.operands;
    std::vector<Shape> shapes;
    Shape shape;
    for (const TextOperand& operand : operands) {
      shapes.push_back(shape_of(operand, sizes));
      shape = broadcast(shape, shapes.back());
    }
    constexpr int64_t kMostRows = int64_t{1} << 31;
    const size_t axes = made_->text.axes;
    if (shape.rank() < axes ||
        shape.elements(shape.rank() - axes, shape.rank()) != made_->text.size)
      return nullptr;
    std::vector<Strides> strides;
    for (const Shape& operand : shapes) strides.push_back(broadcast_strides(operand, shape));
    Rows rows = rows_of(shape, axes, strides);
    if (rows.sizes.size() > kMostOuter || rows.count >= kMostRows) return nullptr;
    for (const Shape& operand : shapes) {
      const size_t tail = std::min(axes, operand.rank());
      rows.held.push_back(made_->text.size == 1 ||
                          operand.elements(operand.rank() - tail, operand.rank()) != 1);
    }
    return std::make_unique<BoundRows>(made_, rows);
  }
  std::string detail() const override {
    return std::to_string(made_->text.operands.size()) + " read, " +
           std::to_string(made_->text.results.size()) + " written, rows of " +
           std::to_string(made_->text.size) + " in registers";
  }

 private:
  std::shared_ptr<const Made> made_;
};

}  // namespace

Verdict accepts_row_text(const KernelQuery& query) {
  const RowText text = row_text(query.node);
  return text.reason.empty() ? yes() : no(text.reason);
}

std::unique_ptr<Kernel> prepare_row_text(const KernelQuery& query) {
  auto made = std::make_shared<Made>();
  made->text = row_text(query.node);
  made->program = cuda::device_of(query).program({"rows", made->text.text});
  made->function = made->program->function("rows");
  made->inputs = TextInputs(query, made->text.operands);
  return std::make_unique<RowsKernel>(std::move(made));
}

}  // namespace dais
