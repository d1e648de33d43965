#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dais/precision.h"
#include "ir/tensor.h"

namespace dais {

/// How far a model is prepared before it runs.
enum class Optimize {
  off,       ///< the graph as it is, on reference loops: the yardstick
  portable,  ///< rewrites whose result is still plain ONNX, then tuned kernels
  full,      ///< also layout and fusion for this machine
};

/// One input or output of a model.
struct ValueInfo {
  std::string name;
  std::string type;                ///< as text: "f32[N,3,224,224]", "seq(f32[...])"
  DType dtype = DType::undefined;  ///< of tensors
  /// Sizes of a tensor, -1 where open; nullopt when not even the rank is fixed.
  std::optional<std::vector<int64_t>> shape;
};

struct ExecutableOptions {
  Optimize optimize = Optimize::full;
  int threads = 0;  ///< 0: all cores that this process may use
  /// "cpu"; "gpu" or "gpu:1"; "auto" (a GPU when there is a usable one); "emulated" (a GPU's
  /// kernels on the CPU, for tests). Ignored where `optimize` is off. Inputs and outputs lie in the
  /// CPU's memory all the same.
  std::string device = "cpu";
  /// How far products of f32 may round on a GPU.
  MatmulPrecision matmul_precision = MatmulPrecision::highest;
  /// Inputs that the file gives a default value: named here, they become real inputs.
  std::set<std::string> overrides = {};
  /// States, input name to output name: what the output gives is what the input takes in the next
  /// run (a counter, a weight, a cache). Sessions keep them without copies where the graph allows.
  std::map<std::string, std::string> states = {};
};

class Executable;
class Graph;
class InferenceSession;

/// A model as it stands in its file. Cheap to copy; copies share the (memory-mapped) weights.
/// All functions may be called from any thread.
class Model {
 public:
  /// Reads an ONNX file. Throws Error: `not_found`, `invalid_model` (a broken file) or
  /// `unsupported` (one message that lists every operator that is not there).
  static Model load(const std::filesystem::path& path);
  /// The same from memory, which is copied where needed; external data is refused.
  static Model parse(std::span<const uint8_t> bytes);

  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;

  /// Optimises, chooses kernels and packs weights, for all sizes of open dimensions. Throws Error:
  /// `unavailable` with the remedy when the device cannot be used, `exhausted` when it is full,
  /// naming who holds its memory.
  Executable compile(const ExecutableOptions& options = {}) const&;
  /// The same for a model that is not needed afterwards, as in Model::load(path).compile(): weights
  /// that kernels pack are not held in both forms, unless a copy of the model lives.
  Executable compile(const ExecutableOptions& options = {}) &&;

 private:
  struct Body;
  explicit Model(std::shared_ptr<Body> body);
  static Executable compile(const Body& body, std::unique_ptr<Graph> graph,
                            const ExecutableOptions& options);
  std::shared_ptr<Body> body_;
};

/// A model ready to run. Immutable and cheap to copy; any number of sessions on any threads share
/// one, with a single copy of the weights.
class Executable {
 public:
  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  /// Where it runs: "CPU", "GPU 0, NVIDIA H200", or "CPU" with the reason when "auto" found no GPU.
  const std::string& device() const;
  /// What runs on the CPU although it has a device, one sentence for each operator, with the
  /// reason.
  const std::vector<std::string>& warnings() const;
  InferenceSession session() const;

 private:
  friend class Model;
  friend class InferenceSession;
  struct Body;
  explicit Executable(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
};

/// Runs an Executable: holds inputs, outputs and working memory. One thread at a time.
class InferenceSession {
 public:
  ~InferenceSession();
  InferenceSession(InferenceSession&&) noexcept;
  InferenceSession& operator=(InferenceSession&&) noexcept;

  /// Sets an input, which stays set for later runs. The elements are not copied: a view's memory
  /// must stay alive and may be rewritten between runs. Throws `invalid_argument` for an unknown
  /// name (with the nearest one).
  void set(std::string_view name, Datum value);
  /// Begins to copy inputs of the next run to the device, beside the present one: called before
  /// run(), it works while that computes. The next run finds them there when these tensors are
  /// set() for it; their elements must not change until then. Without a device nothing happens.
  /// Throws `invalid_argument` for an unknown name.
  void prefetch(const std::map<std::string, Tensor>& next);
  /// Gives a state its memory: it holds the value before and after each run, and is shared with the
  /// caller. Without this the first value that is set makes memory.
  void bind_state(std::string_view input, Tensor memory);
  /// A cache that each run continues along one axis (past and present keys) is kept in a buffer
  /// with room for more, and nothing of it is copied; its output is left out of the results. This
  /// makes the buffer for so many entries from the start; other states ignore it.
  void reserve_state(std::string_view input, int64_t entries);
  /// What a state holds (a copy where it grows). Throws `invalid_argument` for an input that is no
  /// state or has no value.
  Tensor state(std::string_view input) const;
  /// Throws `invalid_argument` naming the input when one is missing or does not fit. Inputs that
  /// are states count for one run only: later runs go on from what the outputs gave.
  void run();
  /// An output of the last run, without a copy: valid until the next run or the end of the
  /// session. Throws `invalid_argument` for an unknown name or a value that is no tensor.
  const Tensor& get(std::string_view name) const;
  /// The same for any kind of value (sequences, maps, empty optionals).
  const Datum& value(std::string_view name) const;

 private:
  friend class Executable;
  struct Body;
  explicit InferenceSession(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace dais
