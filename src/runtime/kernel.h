#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/isa.h"
#include "ir/graph.h"

namespace dais {

class Backend;
class Queue;

/// Yes, or no with a reason that `explain` prints.
struct Verdict {
  bool accepted = false;
  std::string reason;
  explicit operator bool() const { return accepted; }
};
inline Verdict yes() { return {true, {}}; }
inline Verdict no(std::string reason) { return {false, std::move(reason)}; }

/// What a row may look at when asked whether it takes a node: types (sizes may be symbolic),
/// attributes and constants of the node, and the machine.
struct KernelQuery {
  const Node& node;
  Isa isa = Isa::plain;
  int threads = 1;
  const Backend* backend = nullptr;  ///< the device whose rows are asked; null: the CPU

  const Type& in(size_t i) const { return node.in[i]->type; }
  DType in_dtype(size_t i) const { return node.has(i) ? in(i).dtype : DType::undefined; }
  DType out_dtype(size_t i = 0) const { return node.outs[i]->type.dtype; }
  const Tensor* constant(size_t i) const { return node.has(i) ? node.in[i]->constant() : nullptr; }
  template <typename Struct>
  const Struct& attrs() const {
    return *static_cast<const Struct*>(node.attrs.data());
  }
};

/// Concrete sizes of one binding. Left-out inputs have a rank-0 shape.
struct Sizes {
  std::span<const Shape> in, out;
  /// For each output the input whose memory it lies in, or -1; empty: each has its own.
  std::span<const int> overwrites = {};
  /// For each input how many entries its growing axis is laid out for, or 0 when it is dense;
  /// empty: all are dense. An output that grows lies in its input's buffer.
  std::span<const int64_t> room = {};
};

/// Pointers of one run, in the node's order; nullptr for what is left out.
struct Arguments {
  std::span<const void* const> in;
  std::span<void* const> out;
  void* scratch = nullptr;  ///< scratch_bytes() of the bound kernel, 64-byte aligned
  /// Rows of a device: where their work goes; all pointers are the device's. Null on the CPU.
  Queue* queue = nullptr;
};

/// What a kernel found wrong in its data while running (an index outside its tensor).
struct Fault {
  const char* problem = nullptr;  ///< null: all went well
  int64_t index = 0;
};

/// A kernel for fixed sizes, owned by one session; used by one thread at a time.
class BoundKernel {
 public:
  virtual ~BoundKernel() = default;
  virtual size_t scratch_bytes() const { return 0; }
  /// What these sizes have decided although Kernel::detail says otherwise; empty: nothing.
  virtual std::string note() const { return {}; }
  /// Neither allocates nor throws.
  virtual Fault run(const Arguments& arguments) noexcept = 0;
};

/// The same kernel with such a note; null stays null.
std::unique_ptr<BoundKernel> with_note(std::unique_ptr<BoundKernel> kernel, std::string note);

/// A kernel prepared for one node: packed weights and all that holds for every size. Immutable,
/// shared by plans and sessions on any thread. Refers to the node, which the plan keeps alive.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Fixes sizes. nullptr: not for these sizes (the reference runs instead).
  virtual std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const = 0;
  /// Whether this constant of the node (or of its body) is in the kernel for good: no run reads it
  /// and `bind` takes all sizes. Its elements may be gone once `prepare` has returned.
  virtual bool packs(const Tensor& constant) const;
  /// What was chosen inside, e.g. oneDNN's implementation; printed by `explain`.
  virtual std::string detail() const { return {}; }
};

/// One way of running an op. Rows of one op are tried by falling priority, then falling
/// instruction set; the first that accepts runs.
struct KernelRow {
  std::string_view name;  ///< "softmax/avx512"
  const Op* op = nullptr;
  Isa isa = Isa::plain;  ///< needed; rows above the machine's level are skipped
  Verdict (*accepts)(const KernelQuery&) = nullptr;
  std::unique_ptr<Kernel> (*prepare)(const KernelQuery&) = nullptr;
  /// Whether an output may lie in the memory of an input of the same type that nobody else needs
  /// any more. Null: never.
  bool (*overwrites)(const Node&, size_t output, size_t input) = nullptr;
  /// Whether an output may be an input continued along `axis`, both in one buffer that has room for
  /// more than either (Sizes::room). Null: never.
  bool (*grows)(const Node&, size_t output, size_t input, size_t axis) = nullptr;
  int priority = 0;
};

/// `overwrites` of rows that read input 0 no further than they have written output 0.
inline bool first_over_first(const Node&, size_t output, size_t input) {
  return output == 0 && input == 0;
}
/// `overwrites` of rows that read element i of all inputs before they write element i of any
/// output.
inline bool any_over_any(const Node&, size_t, size_t) { return true; }

/// The rows of one backend.
class Kernels {
 public:
  void add(const KernelRow& row);
  /// In the order in which they are to be tried.
  const std::vector<const KernelRow*>& rows(const Op& op) const;

 private:
  std::vector<std::unique_ptr<KernelRow>> owned_;
  std::unordered_map<const Op*, std::vector<const KernelRow*>> by_op_;
};

/// The CPU rows of this build.
const Kernels& cpu_kernels();

/// A kernel that needs nothing prepared: a function of node, sizes and pointers.
using SimpleRun = Fault (*)(const Node&, const Sizes&, const Arguments&) noexcept;

class SimpleKernel : public Kernel {
 public:
  SimpleKernel(const Node& node, SimpleRun run) : node_(node), run_(run) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override;

 private:
  const Node& node_;
  SimpleRun run_;
};

/// `prepare` of a row around a plain function: .prepare = simple<run_softmax_avx2>.
template <SimpleRun run>
std::unique_ptr<Kernel> simple(const KernelQuery& query) {
  return std::make_unique<SimpleKernel>(query.node, run);
}

}  // namespace dais
