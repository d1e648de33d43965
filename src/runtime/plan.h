#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/isa.h"
#include "runtime/kernel.h"
#include "runtime/sizes.h"
#include "runtime/state.h"

namespace dais {

class DeviceMemory;
class Places;

/// A copy of a graph for these sizes of its inputs, rewritten with all that they tell.
using Specialize =
    std::function<std::unique_ptr<Graph>(const Graph& graph, std::span<const Shape> inputs)>;

struct PlanOptions {
  int threads = 0;  ///< 0: all usable cores
  Isa isa = Isa::plain;
  bool kernels = true;              ///< false: reference loops only
  bool keep_constants = false;      ///< also those that kernels have packed
  Specialize specialize = nullptr;  ///< null: plans stay as they are
  std::vector<StatePair> states = {};
  /// Runs what it has rows for; null: everything runs on the CPU.
  std::shared_ptr<Backend> backend = nullptr;
};

/// Where a step does its work.
enum class Place : uint8_t {
  host,
  device,
  upload,    ///< copies from host to device
  download,  ///< copies from device to host
};

/// One step of a plan.
struct Step {
  const Node* node = nullptr;
  Place place = Place::host;
  const KernelRow* row = nullptr;  ///< null: the reference (or the decomposition evaluated)
  std::shared_ptr<const Kernel> kernel;
  std::vector<std::pair<std::string, std::string>> refusals;  ///< row name, reason
  std::vector<int> in, out;                                   ///< slots; -1 where left out
  /// For each output the input whose memory it lies in, or -1; empty: none does.
  std::vector<int> overwrites;
  /// For each input the growing state (index in Plan::states) that it is, or -1; empty: none is.
  std::vector<int> growing;
  /// Sizes of every operand follow from the inputs' sizes, so memory and kernel are bound before
  /// the run. Otherwise the step finds its sizes while running.
  bool bound_early = false;
  std::vector<std::shared_ptr<const class Plan>> regions;
};

/// Where a value's elements live.
struct Slot {
  enum class Kind : uint8_t {
    constant,  ///< in the plan
    input,     ///< in the caller's tensor
    arena,     ///< at a planned offset
    view,      ///< the elements of another slot
    late,      ///< allocated by the step that makes it
  };
  const Value* value = nullptr;
  Kind kind = Kind::late;
  bool on_device = false;     ///< in the device's memory, not the CPU's
  size_t offset = 0;          ///< constant on the device: where in Plan::device_constants
  bool packed = false;        ///< one that kernels have in a form of their own, and nobody reads
  int root = -1;              ///< view: the slot whose memory it shares
  std::vector<int> sizes;     ///< entries of the size table; empty and !sized when unknown
  bool sized = false;         ///< the shape follows from the inputs' sizes
  int first = -1, last = -1;  ///< steps between which its memory (with all views) is needed
};

/// How a plan carries a state from run to run.
struct StateSlot {
  StatePair pair;
  bool in_place = false;  ///< the new value is written over the old; else it is copied there
  /// The new value is the old one continued along this axis, in a buffer that has room for more;
  /// -1: it is not. Then no dense array of it exists.
  int growing_axis = -1;
};

/// A graph made ready to run: kernels chosen and weights packed once, for any size of its symbolic
/// dimensions. Immutable; shared by sessions on any thread.
class Plan {
 public:
  /// Takes the graph over. Throws when a node has neither kernel, reference nor decomposition, and
  /// what check_states throws.
  static std::shared_ptr<const Plan> create(std::unique_ptr<Graph> graph,
                                            const PlanOptions& options);

  const Graph& graph() const { return *graph_; }
  const PlanOptions& options() const { return options_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Slot>& slots() const { return slots_; }
  const SizeTable& sizes() const { return sizes_; }
  const std::vector<int>& input_slots() const { return input_slots_; }
  const std::vector<int>& output_slots() const { return output_slots_; }
  /// In the order of the options' states.
  const std::vector<StateSlot>& states() const { return states_; }
  /// The constants that the device's steps read; null when there are none.
  const DeviceMemory* device_constants() const { return device_constants_.get(); }
  /// Ops that run on the CPU although the plan has a device, and why.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// Whether a plan for fixed sizes would know more: some step finds its sizes while running, and
  /// the sizes of inputs are open.
  bool specializable() const { return specializable_; }
  /// That plan, made once for all sessions; nullptr when it cannot be had. At most kSpecialized
  /// sizes get one.
  std::shared_ptr<const Plan> specialized(const std::vector<Shape>& inputs) const;

 private:
  static constexpr size_t kSpecialized = 8;
  friend class PlanBuilder;
  std::unique_ptr<Graph> graph_;
  PlanOptions options_;
  std::vector<Step> steps_;
  std::vector<Slot> slots_;
  SizeTable sizes_;
  std::vector<int> input_slots_, output_slots_;
  std::vector<StateSlot> states_;
  std::shared_ptr<const DeviceMemory> device_constants_;
  std::vector<std::string> warnings_;
  bool specializable_ = false;
  mutable std::mutex specialized_mutex_;
  mutable std::map<std::vector<std::vector<int64_t>>, std::shared_ptr<const Plan>> specialized_;
};

}  // namespace dais
