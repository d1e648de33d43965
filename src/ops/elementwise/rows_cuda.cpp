// The host's side of generated kernels with reductions. Bound by memory: each operand is read once,
// each result written once.
#include <algorithm>
#include <cstring>

#include "backends/cuda/launch.h"
#include "ops/elementwise/row_text_cuda.h"
#include "ops/strided.h"

namespace dais {
namespace {

constexpr size_t kMostOuter = 7;  // as in elementwise.cuh
constexpr int64_t kMostBlocks = int64_t{1} << 20;

struct Made {
  RowText text;
  std::shared_ptr<const cuda::Program> program;
  cuda::Function function;
  std::vector<std::shared_ptr<DeviceMemory>> constants;  ///< by operand; null: an input
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

/// The bytes of the kernel's RowSpace<operands>.
std::vector<std::byte> space_bytes(const Rows& rows, int64_t size) {
  const size_t operands = std::max<size_t>(rows.strides.size(), 1);
  constexpr size_t kStrides = 48;
  const size_t inner = kStrides + operands * kMostOuter * 8;
  std::vector<std::byte> out((inner + operands * 4 + 7) / 8 * 8);
  const auto put = [&](size_t at, auto value) {
    std::memcpy(out.data() + at, &value, sizeof value);
  };
  put(0, rows.count);
  put(8, static_cast<uint32_t>(size));
  put(12, static_cast<int32_t>(rows.sizes.size()));
  for (size_t axis = 0; axis < rows.sizes.size(); ++axis)
    put(16 + axis * 4, static_cast<uint32_t>(rows.sizes[axis]));
  for (size_t k = 0; k < rows.strides.size(); ++k) {
    for (size_t axis = 0; axis < rows.sizes.size(); ++axis)
      put(kStrides + (k * kMostOuter + axis) * 8, rows.strides[k][axis]);
    put(inner + k * 4, static_cast<int32_t>(rows.held[k]));
  }
  return out;
}

class BoundRows : public BoundKernel {
 public:
  BoundRows(std::shared_ptr<const Made> made, const Rows& rows)
      : made_(std::move(made)), space_(space_bytes(rows, made_->text.size)), rows_(rows.count) {
    numbers_ = made_->text.numbers;
    if (numbers_.empty()) numbers_.push_back(0);
    pointers_.resize(made_->text.operands.size() + made_->text.results.size());
    parameters_ = {space_.data(), numbers_.data()};
    for (void*& pointer : pointers_) parameters_.push_back(&pointer);
  }

  Fault run(const Arguments& arguments) noexcept override {
    if (rows_ == 0) return {};
    const auto& operands = made_->text.operands;
    for (size_t k = 0; k < operands.size(); ++k)
      pointers_[k] = operands[k].input >= 0
                         ? const_cast<void*>(arguments.in[static_cast<size_t>(operands[k].input)])
                         : made_->constants[k]->address();
    std::copy(arguments.out.begin(), arguments.out.end(),
              pointers_.begin() + static_cast<std::ptrdiff_t>(operands.size()));
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
      shapes.push_back(operand.input >= 0 ? sizes.in[static_cast<size_t>(operand.input)]
                                          : operand.constant.shape());
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
  made->constants.resize(made->text.operands.size());
  for (size_t k = 0; k < made->constants.size(); ++k)
    if (made->text.operands[k].input < 0)
      made->constants[k] = cuda::uploaded(query, made->text.operands[k].constant);
  return std::make_unique<RowsKernel>(std::move(made));
}

}  // namespace dais
