// The host's side of nms.cu.
#include "backends/cuda/launch.h"
#include "ops/nms/nms.h"

namespace dais {
namespace {

constexpr int64_t kMostBatch = 65535;  ///< of a grid's second dimension

struct Prepared {
  std::shared_ptr<const cuda::Program> program;
  cuda::Function function;
};

class BoundChoice : public BoundKernel {
 public:
  BoundChoice(std::shared_ptr<const Prepared> made, const Shape& scores, int64_t most)
      : made_(std::move(made)), count_(static_cast<int>(scores[2])), most_(static_cast<int>(most)) {
    grid_.x = static_cast<unsigned>(scores[1]);
    grid_.y = static_cast<unsigned>(scores[0]);
    grid_.threads = 256;
    grid_.shared_bytes = static_cast<unsigned>(scores[2] * 4);
  }
  Fault run(const Arguments& arguments) noexcept override {
    const auto in = [&](size_t i) {
      return i < arguments.in.size() ? arguments.in[i] : static_cast<const void*>(nullptr);
    };
    cuda::launch(arguments, made_->function, grid_, in(0), in(1), in(2), in(3), arguments.out[0],
                 count_, most_);
    return {};
  }

 private:
  std::shared_ptr<const Prepared> made_;
  int count_, most_;
  cuda::Grid grid_;
};

class ChoiceKernel : public Kernel {
 public:
  explicit ChoiceKernel(std::shared_ptr<const Prepared> made) : made_(std::move(made)) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape &boxes = sizes.in[0], &scores = sizes.in[1];
    const bool fit = boxes[0] == scores[0] && boxes[1] == scores[2] && boxes[2] == 4;
    if (!fit || scores[0] > kMostBatch) return nullptr;
    return std::make_unique<BoundChoice>(made_, scores, sizes.out[0][2]);
  }

 private:
  std::shared_ptr<const Prepared> made_;
};

/// How many boxes there are; nothing: that is not fixed.
std::optional<int64_t> count_of(const KernelQuery& query) {
  const auto& shape = query.in(1).shape;
  return shape && shape->size() == 3 ? shape->back().constant() : std::nullopt;
}

Verdict accepts(const KernelQuery& query) {
  for (size_t i = 0; i < query.node.in.size(); ++i)
    if (query.node.has(i) && query.in_dtype(i) != DType::f32) return no("element type");
  if (!query.in(0).ranked() || query.in(0).shape->size() != 3) return no("a rank is unknown");
  const auto count = count_of(query);
  if (!count) return no("the number of boxes is not fixed");
  // A part of shared memory is the kernel's own.
  if (*count * 4 > cuda::device_of(query).info().max_shared_bytes - 1024)
    return no("more boxes than shared memory holds");
  return yes();
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  auto made = std::make_shared<Prepared>();
  const bool center = query.attrs<ChooseBoxes>().center_point_box;
  made->program = cuda::program_of(query, "nms.cu", {center ? "-DCENTER=1" : "-DCENTER=0"});
  made->function = made->program->function("nms", static_cast<int>(*count_of(query) * 4));
  return std::make_unique<ChoiceKernel>(std::move(made));
}

}  // namespace

namespace ops {
void register_nms_cuda(Kernels& kernels) {
  kernels.add({.name = "nms/cuda", .op = &ChooseBoxes::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
