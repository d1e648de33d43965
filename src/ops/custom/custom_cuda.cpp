#include <algorithm>

#include "backends/cuda/launch.h"
#include "ops/custom/custom.h"
#include "ops/custom/kernel_cuda.h"

namespace dais {
namespace {

struct Made {
  const CustomSpec* spec = nullptr;
  std::vector<float> values;
  std::shared_ptr<const cuda::Program> program;
  cuda::Function function;
};

std::vector<Dims> dims_of(const Sizes& sizes) {
  std::vector<Dims> out;
  for (const Shape& shape : sizes.in) out.emplace_back(shape.begin(), shape.end());
  return out;
}

class BoundCustom : public BoundKernel {
 public:
  BoundCustom(std::shared_ptr<const Made> made, const Sizes& sizes) : made_(std::move(made)) {
    const CustomSpec& spec = *made_->spec;
    const auto dims = dims_of(sizes);
    const auto size_of = [&](const std::string& expression) {
      const auto size = custom_size(spec, expression, dims).constant();
      if (!size)
        throw Error(Code::invalid_argument,
                    "custom operator '" + spec.name + "': '" + expression +
                        "' uses what is no size of its inputs",
                    spec.file);
      return *size;
    };
    const int64_t blocks = size_of(spec.blocks);
    if (blocks < 0 || blocks >= int64_t{1} << 31)
      throw Error(
          Code::invalid_argument,
          "custom operator '" + spec.name + "' asks for " + std::to_string(blocks) + " blocks",
          spec.file);
    grid_.x = static_cast<unsigned>(blocks);
    grid_.threads = static_cast<unsigned>(spec.threads);
    for (const std::string& argument : spec.arguments) {
      Scalar scalar{};
      bool attribute = false;
      for (size_t i = 0; i < spec.attributes.size(); ++i)
        if (spec.attributes[i].name == argument) {
          scalar.real = made_->values[i];
          attribute = true;
        }
      if (!attribute) scalar.whole = size_of(argument);
      scalars_.push_back(scalar);
    }
    addresses_.resize(sizes.in.size() + sizes.out.size());
    for (void*& address : addresses_) parameters_.push_back(&address);
    for (Scalar& scalar : scalars_) parameters_.push_back(&scalar);
  }

  Fault run(const Arguments& arguments) noexcept override {
    std::copy(arguments.out.begin(), arguments.out.end(),
              std::transform(arguments.in.begin(), arguments.in.end(), addresses_.begin(),
                             [](const void* address) { return const_cast<void*>(address); }));
    cuda::launch_raw(*static_cast<cuda::CudaQueue*>(arguments.queue), made_->function, grid_,
                     parameters_.data());
    return {};
  }

 private:
  union Scalar {
    int64_t whole;
    float real;
  };
  std::shared_ptr<const Made> made_;
  cuda::Grid grid_;
  std::vector<Scalar> scalars_;
  std::vector<void*> addresses_, parameters_;
};

class CustomKernel : public Kernel {
 public:
  explicit CustomKernel(std::shared_ptr<const Made> made) : made_(std::move(made)) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    return std::make_unique<BoundCustom>(made_, sizes);
  }
  std::string detail() const override { return made_->spec->file; }

 private:
  std::shared_ptr<const Made> made_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_custom(const KernelQuery& query) {
  auto made = std::make_shared<Made>();
  const auto& attrs = query.attrs<Custom>();
  made->spec = custom_spec(attrs.name);
  made->values = attrs.values;
  made->program = cuda::device_of(query).program({made->spec->file, made->spec->text});
  made->function = made->program->function(made->spec->kernel.c_str());
  return std::make_unique<CustomKernel>(std::move(made));
}

namespace ops {
void register_custom_cuda(Kernels& kernels) {
  kernels.add({.name = "custom/cuda",
               .op = &Custom::op,
               .accepts = [](const KernelQuery&) { return yes(); },
               .prepare = prepare_custom});
}
}  // namespace ops
}  // namespace dais
