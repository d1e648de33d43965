#include "runtime/kernel.h"

#include <algorithm>

namespace dais {
namespace {

class BoundSimple : public BoundKernel {
 public:
  BoundSimple(const Node& node, SimpleRun run, const Sizes& sizes)
      : node_(node),
        run_(run),
        in_(sizes.in.begin(), sizes.in.end()),
        out_(sizes.out.begin(), sizes.out.end()) {}
  Fault run(const Arguments& arguments) noexcept override {
    return run_(node_, Sizes{in_, out_}, arguments);
  }

 private:
  const Node& node_;
  SimpleRun run_;
  std::vector<Shape> in_, out_;
};

class Noted : public BoundKernel {
 public:
  Noted(std::unique_ptr<BoundKernel> kernel, std::string note)
      : kernel_(std::move(kernel)), note_(std::move(note)) {}
  size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  std::string note() const override { return note_; }
  Fault run(const Arguments& arguments) noexcept override { return kernel_->run(arguments); }

 private:
  std::unique_ptr<BoundKernel> kernel_;
  std::string note_;
};

}  // namespace

std::unique_ptr<BoundKernel> with_note(std::unique_ptr<BoundKernel> kernel, std::string note) {
  if (!kernel) return nullptr;
  return std::make_unique<Noted>(std::move(kernel), std::move(note));
}

bool Kernel::packs(const Tensor&) const { return false; }

std::unique_ptr<BoundKernel> SimpleKernel::bind(const Sizes& sizes) const {
  return std::make_unique<BoundSimple>(node_, run_, sizes);
}

void Kernels::add(const KernelRow& row) {
  DAIS_CHECK(row.op && row.accepts && row.prepare);
  owned_.push_back(std::make_unique<KernelRow>(row));
  auto& rows = by_op_[row.op];
  rows.push_back(owned_.back().get());
  std::stable_sort(rows.begin(), rows.end(), [](const KernelRow* a, const KernelRow* b) {
    return a->priority != b->priority ? a->priority > b->priority : a->isa > b->isa;
  });
}

const std::vector<const KernelRow*>& Kernels::rows(const Op& op) const {
  static const std::vector<const KernelRow*> none;
  auto found = by_op_.find(&op);
  return found == by_op_.end() ? none : found->second;
}

void register_all_cpu_kernels(Kernels& kernels);

const Kernels& cpu_kernels() {
  static const Kernels kernels = [] {
    Kernels all;
    register_all_cpu_kernels(all);
    return all;
  }();
  return kernels;
}

}  // namespace dais
