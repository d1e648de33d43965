#pragma once

#include <optional>

#include "runtime/memory_plan.h"
#include "runtime/session.h"

namespace dais {

/// Kernels bound for recently seen sizes of one step, newest first.
class BoundCache {
 public:
  struct Entry {
    std::vector<int64_t> key;
    std::unique_ptr<BoundKernel> kernel;  ///< null: the row refused these sizes
  };
  Entry* find(const std::vector<int64_t>& key);
  Entry& add(std::vector<int64_t> key, std::unique_ptr<BoundKernel> kernel);

 private:
  static constexpr size_t kLimit = 16;
  std::vector<std::unique_ptr<Entry>> entries_;
};

struct BoundStep {
  BoundKernel* kernel = nullptr;  ///< null: reference
  BoundCache cache;
  std::vector<std::unique_ptr<Session>> regions;
};

/// Where a growing state lies.
struct Growth {
  Tensor buffer;
  int64_t room = 0;     ///< entries along the growing axis that the buffer is laid out for
  int64_t reserve = 0;  ///< wished for
};

struct Session::State {
  explicit State(std::shared_ptr<const Plan> shared);
  /// From now on each run's outputs get memory of their own, which whoever holds them keeps alive.
  void hand_over_outputs();

  /// The session for just these sizes, once they have come several times in a row; else null.
  Session* specialized(std::span<const Datum> inputs);
  void bind(std::span<const Datum> inputs);
  void run_step(size_t at);
  void time_step(size_t at);
  void describe(const Step& step, StepTime& time) const;
  void collect_outputs();
  size_t state_index(size_t input) const;
  /// The inputs with those of states filled in.
  std::span<const Datum> with_states(std::span<const Datum> inputs);
  void commit_states();
  void start_growing(size_t at, const Tensor& from);
  Tensor dense_state(size_t at) const;
  size_t arena_bytes() const { return arena_.bytes(); }

  std::shared_ptr<const Plan> plan;
  std::vector<Datum> data;      ///< by slot
  std::vector<void*> pointers;  ///< by slot
  std::vector<Shape> shapes;    ///< by slot, where sized
  std::vector<char> changed;    ///< by slot: shape differs from the last binding
  std::vector<BoundStep> steps;
  std::vector<Datum> results;
  std::vector<Tensor> states;   ///< by the plan's states; one that grows: a view of its buffer
  std::vector<Growth> growths;  ///< the same
  std::vector<StepTime>* profile = nullptr;
  Session* active = nullptr;  ///< the specialised session that ran last; null: this one

 private:
  struct Specialized {
    std::vector<Shape> inputs;
    std::unique_ptr<Session> session;  ///< null: cannot be had
  };
  static constexpr int kPatience = 2;
  static constexpr size_t kSpecialized = 4;
  void make_room(size_t at, int64_t entries);
  void make_rooms();
  void copy_growing(size_t at, const Shape& shape, const void* from, int64_t from_room, void* to,
                    int64_t to_room) const;
  void densify(const Step& step);
  void undensify(const Step& step);
  void check_inputs(std::span<const Datum> inputs);
  void update_shapes();
  void check_expressions();
  void place_arena();
  void point_slots();
  void point(size_t slot);
  void place_handed();
  void bind_step(size_t at);
  BoundKernel* bound_kernel(size_t at, const Sizes& sizes);
  void run_bound(const Step& step, BoundKernel& kernel);
  void run_reference(size_t at);
  void run_decomposed(const Step& step);
  void run_late(size_t at);
  bool run_late_kernel(size_t at);
  void publish(const Step& step, std::vector<Datum>& outputs);
  [[noreturn]] void raise(const Step& step, const Fault& fault) const;

  bool bound_ = false;
  std::vector<Shape> input_shapes_;
  std::vector<int64_t> symbols_, sizes_;
  std::vector<size_t> capacities_;  ///< bytes booked per arena slot
  MemoryPlan memory_;
  std::vector<int> arena_slots_;
  bool hands_over_ = false;
  std::vector<int> handed_slots_;                ///< of the arena's, those that leave with each run
  std::vector<int> handed_views_;                ///< of those
  std::vector<int> input_views_;                 ///< slots that are views of inputs
  std::vector<std::pair<int, int>> late_views_;  ///< root, view
  std::vector<Specialized> specialized_;
  std::vector<Shape> recent_;
  int recent_runs_ = 0;
  Tensor arena_, scratch_;
  std::vector<Shape> in_sizes_, out_sizes_;
  std::vector<const void*> in_pointers_;
  std::vector<void*> out_pointers_;
  std::vector<Datum> in_data_, out_data_;
  std::vector<Datum> inputs_;  ///< of a run with states
  std::vector<int64_t> bound_rooms_, step_rooms_;
  std::vector<std::vector<int>> axis_symbols_;  ///< by input and axis: the symbol that it names
  std::vector<int64_t> key_;
};

}  // namespace dais
