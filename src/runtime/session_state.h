#pragma once

#include <optional>

#include "runtime/backend.h"
#include "runtime/inputs_ahead.h"
#include "runtime/memory_plan.h"
#include "runtime/session.h"

namespace dais {

/// Kernels bound for recently seen sizes of one step, newest first.
class BoundCache {
 public:
  struct Entry {
    size_t hash = 0;
    std::vector<int64_t> key;
    std::unique_ptr<BoundKernel> kernel;  ///< null: the row refused these sizes
  };
  static size_t hash_of(const std::vector<int64_t>& key);
  Entry* find(const std::vector<int64_t>& key, size_t hash);
  Entry& add(const std::vector<int64_t>& key, size_t hash, std::unique_ptr<BoundKernel> kernel);

 private:
  static constexpr size_t kLimit = 16;
  std::vector<std::unique_ptr<Entry>> entries_;
};

struct BoundStep {
  BoundKernel* kernel = nullptr;  ///< null: reference
  BoundCache cache;
  std::vector<std::unique_ptr<Session>> regions;
};

/// The planned buffers of one place, side by side in one piece of its memory.
struct Arena {
  std::vector<int> slots;
  std::vector<size_t> wanted, capacities;  ///< bytes per slot: needed, booked
  MemoryPlan plan;
  Tensor host;
  std::shared_ptr<DeviceMemory> device;
  bool placed = false;

  size_t bytes() const { return device ? device->bytes() : host.bytes(); }
  std::byte* base() {
    return device ? static_cast<std::byte*>(device->address())
                  : (host ? host.storage<std::byte>() : nullptr);
  }
};

/// Neighbouring steps of the device, put there as one piece once sizes and addresses have settled.
struct Segment {
  size_t first = 0, last = 0;  ///< steps, the last one included
  std::unique_ptr<Recording> recording;
};

/// Where a growing state lies.
struct Growth {
  Tensor buffer;
  int64_t room = 0;     ///< entries along the growing axis that the buffer is laid out for
  int64_t reserve = 0;  ///< wished for
};

/// A state whose sizes change without a row that could let it grow: two buffers take turns as the
/// input's and the output's memory, so that nothing is copied.
struct Turn {
  size_t state = 0;
  size_t slot = 0;            ///< root of the output
  std::vector<size_t> views;  ///< of that slot
  bool given = false;         ///< the state has memory of the caller's, which is copied to
  Tensor held, spare;         ///< bytes
};

struct Session::State {
  explicit State(std::shared_ptr<const Plan> shared);
  ~State();
  /// From now on each run's outputs get memory of their own, which whoever holds them keeps alive.
  void hand_over_outputs();

  /// The session for just these sizes, once they have come several times in a row; else null.
  Session* specialized(std::span<const Datum> inputs);
  void bind(std::span<const Datum> inputs);
  void run_step(size_t at);
  /// Runs the step, or the segment that begins with it. Gives the next step.
  size_t run_steps(size_t at);
  void time_step(size_t at);
  void describe(const Step& step, StepTime& time) const;
  void collect_outputs();
  size_t state_index(size_t input) const;
  /// The inputs with those of states filled in.
  std::span<const Datum> with_states(std::span<const Datum> inputs);
  void commit_states();
  /// The caller keeps a state's memory: its new values are copied there.
  void keep_memory(size_t at);
  void start_growing(size_t at, const Tensor& from);
  Tensor dense_state(size_t at) const;
  size_t arena_bytes() const { return host_arena_.bytes() + device_arena_.bytes(); }
  /// A new copy on the device, or of what lies there.
  Tensor on_device(const Tensor& from);
  Tensor on_host(const Tensor& from);
  /// Whether a state lies on the device; then its tensor in `states` is a view of memory there.
  bool resident(size_t state) const;
  void bind_resident(size_t state, Tensor memory);
  Tensor fetch_resident(size_t state);
  /// Waits for the device; throws what its kernels found wrong.
  void wait();
  void settle();
  /// The same at the end of a run.
  void finish_device();
  /// Before the first step: recordings whose addresses no longer hold go.
  void notice_moves();

  std::shared_ptr<const Plan> plan;
  std::vector<Datum> data;      ///< by slot
  std::vector<void*> pointers;  ///< by slot
  std::vector<Shape> shapes;    ///< by slot, where sized
  std::vector<BoundStep> steps;
  std::vector<Datum> results;
  std::vector<Tensor> states;   ///< by the plan's states; one that grows: a view of its buffer
  std::vector<Growth> growths;  ///< the same
  std::vector<StepTime>* profile = nullptr;
  std::unique_ptr<Queue> queue;        ///< null: the plan has no device
  std::shared_ptr<InputsAhead> ahead;  ///< null: nothing was prefetched
  Session* active = nullptr;           ///< the specialised session that ran last; null: this one

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
  void place_arena(Arena& arena);
  void make_arena(Arena& arena, int64_t total);
  std::shared_ptr<DeviceMemory> allocate_activations(size_t bytes);
  size_t device_arena_bytes(std::span<const int64_t> symbols) const;
  std::string batch_that_fits(size_t bytes) const;
  void find_segments();
  void fill_resident(size_t state, const Tensor& from);
  void commit_residents();
  void point_slots();
  void point(size_t i);
  void place_handed();
  void find_turns();
  void place_turns();
  bool take_turn(size_t at);
  void place_outputs();
  void set_shape(size_t i);
  void mark_changed(size_t slot);
  void index_slots();
  Arena& arena_of(size_t slot) {
    return plan->slots()[slot].on_device ? device_arena_ : host_arena_;
  }
  void bind_steps();
  void bind_step(size_t at);
  BoundKernel* bound_kernel(size_t at, const Sizes& sizes);
  void run_host(size_t at);
  void run_bound(const Step& step, BoundKernel& kernel);
  void run_device(size_t at);
  void run_away(size_t at);
  Arguments arguments(const Step& step);
  void run_reference(size_t at);
  void run_decomposed(const Step& step);
  void run_late(size_t at);
  bool run_late_kernel(size_t at);
  void publish(const Step& step, std::vector<Datum>& outputs);
  [[noreturn]] void raise(const Step& step, const Fault& fault) const;

  bool bound_ = false;
  std::vector<Shape> input_shapes_;
  std::vector<int64_t> symbols_, sizes_, sizes_before_;
  std::vector<std::vector<int>> slots_of_size_;  ///< by entry of the size table
  std::vector<std::vector<int>> steps_of_slot_;  ///< those bound early that use a slot
  std::vector<int> arena_place_;                 ///< by slot: its place in its arena's list, or -1
  /// Slots whose shape (or room) differs from the last binding, each once.
  std::vector<int> changed_;
  std::vector<char> is_changed_, is_due_;  ///< by slot; by step, only while binding
  bool shapes_current_ = false;
  bool moved_ = false;  ///< an arena was laid out anew
  Arena host_arena_, device_arena_;
  std::shared_ptr<DeviceMemory> device_scratch_;
  std::vector<Segment> segments_;
  std::vector<int> segment_at_;  ///< by step: the segment that begins there, or -1
  std::vector<const void*> recorded_inputs_;
  int settled_runs_ = 0;      ///< runs since sizes or addresses changed
  bool downloading_ = false;  ///< what the device was asked for has not been waited for
  bool hands_over_ = false;
  std::vector<int> handed_slots_;  ///< of the arena's, those that leave with each run
  std::vector<int> handed_views_;  ///< of those
  std::vector<Turn> turns_;
  std::vector<int> input_views_;                 ///< slots that are views of inputs
  std::vector<std::pair<int, int>> late_views_;  ///< root, view
  std::vector<Specialized> specialized_;
  std::vector<Shape> recent_;
  int recent_runs_ = 0;
  Tensor scratch_;
  std::vector<Shape> in_sizes_, out_sizes_;
  std::vector<const void*> in_pointers_;
  std::vector<void*> out_pointers_;
  std::vector<Datum> in_data_, out_data_;
  std::vector<Datum> inputs_;         ///< of a run with states
  std::vector<Tensor> bound_memory_;  ///< the caller's, of states that lie on the device
  std::vector<int64_t> bound_rooms_, step_rooms_;
  /// By input and axis: the symbol that it names, and the size that it must have; or -1.
  std::vector<std::vector<int>> axis_symbols_;
  std::vector<std::vector<int64_t>> axis_sizes_;
  std::vector<char> known_;
  std::vector<int64_t> key_;
};

}  // namespace dais
