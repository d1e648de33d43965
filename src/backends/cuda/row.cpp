#include "backends/cuda/row.h"

#include <algorithm>

#include "base/error.h"

namespace dais::cuda {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 31;

bool small(std::span<const Shape> shapes) {
  return std::all_of(shapes.begin(), shapes.end(),
                     [](const Shape& shape) { return shape.elements() < kMostElements; });
}

struct Made {
  const Node& node;
  TextRow row;
  std::shared_ptr<const Program> program;
  std::vector<Function> functions;
};

class BoundRow : public BoundKernel {
 public:
  BoundRow(std::shared_ptr<const Made> made, const Sizes& sizes)
      : made_(std::move(made)),
        in_(sizes.in.begin(), sizes.in.end()),
        out_(sizes.out.begin(), sizes.out.end()) {
    if (made_->row.scratch_bytes) scratch_ = made_->row.scratch_bytes(made_->node, this->sizes());
  }
  size_t scratch_bytes() const override { return scratch_; }
  Fault run(const Arguments& arguments) noexcept override {
    const Sizes now = sizes();
    made_->row.run({made_->node, now, arguments, made_->functions});
    return {};
  }

 private:
  Sizes sizes() const { return {.in = in_, .out = out_}; }

  std::shared_ptr<const Made> made_;
  std::vector<Shape> in_, out_;
  size_t scratch_ = 0;
};

class RowKernel : public Kernel {
 public:
  explicit RowKernel(std::shared_ptr<const Made> made) : made_(std::move(made)) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    if (!small(sizes.in) || !small(sizes.out)) return nullptr;
    if (made_->row.takes && !made_->row.takes(made_->node, sizes)) return nullptr;
    return std::make_unique<BoundRow>(made_, sizes);
  }
  std::string detail() const override {
    std::string text(made_->row.text);
    for (const std::string& option : made_->row.options) text += " " + option;
    return text;
  }

 private:
  std::shared_ptr<const Made> made_;
};

}  // namespace

std::unique_ptr<Kernel> make_text_kernel(const KernelQuery& query, const TextRow& row) {
  auto made =
      std::make_shared<Made>(Made{query.node, row, program_of(query, row.text, row.options), {}});
  for (const char* name : row.kernels) made->functions.push_back(made->program->function(name));
  return std::make_unique<RowKernel>(std::move(made));
}

const char* float_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "float";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    default: return nullptr;
  }
}

std::string element_option(DType dtype) { return std::string("-DELEMENT=") + float_name(dtype); }

Verdict accepts_floats(const KernelQuery& query, size_t input) {
  const DType dtype = query.in_dtype(input);
  if (!float_name(dtype)) return no("element type " + std::string(dtype_name(dtype)));
  return query.in(input).ranked() ? yes() : no("the rank is unknown");
}

std::string word_option(size_t bytes) {
  switch (bytes) {
    case 1: return "-DWORD=uint8";
    case 2: return "-DWORD=uint16";
    case 4: return "-DWORD=uint32";
    case 8: return "-DWORD=uint2";
    default: DAIS_CHECK(bytes == 16); return "-DWORD=uint4";
  }
}

Grid grid_of(int64_t elements) {
  constexpr int64_t kThreads = 256, kMostBlocks = 1 << 20;
  Grid grid;
  grid.threads =
      static_cast<unsigned>(std::clamp<int64_t>(ceil_div(elements, 32) * 32, 32, kThreads));
  grid.x = static_cast<unsigned>(std::min(ceil_div(elements, grid.threads), kMostBlocks));
  return grid;
}

void launch_lines(const RowCall& call, int64_t outer, int64_t size, int64_t inner) noexcept {
  if (inner != 1)
    return call.launch(1, grid_of(outer * inner), call.in(0), call.out(0), size32(outer),
                       size32(size), size32(inner));
  Grid grid;
  grid.x = size32(outer);
  grid.threads = row_threads(size);
  call.launch(0, grid, call.in(0), call.out(0), size32(size));
}

unsigned row_threads(int64_t elements, unsigned most) {
  return static_cast<unsigned>(std::clamp<int64_t>(ceil_div(elements, 32) * 32, 32, most));
}

}  // namespace dais::cuda
