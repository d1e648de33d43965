#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ir/call.h"
#include "runtime/plan.h"

namespace dais {

/// One step's share of a profiled run. Steps inside regions come before the step that ran them,
/// whose time is without theirs.
struct StepTime {
  const Plan* plan = nullptr;
  size_t step = 0;
  double seconds = 0;
  double start = 0;           ///< seconds on the steady clock
  double elapsed = 0;         ///< until it ended, with the steps of its regions
  double bytes = 0;           ///< of its inputs and outputs; a state that grows counts once
  std::vector<Type> in = {};  ///< what its inputs were; undefined where they were no tensors
};

/// A plan bound to concrete sizes, with its memory. Used by one thread at a time; any number of
/// sessions may share a plan. Binding to sizes seen before is cheap, running allocates nothing once
/// sizes have settled (but for values whose sizes only running tells).
class Session {
 public:
  explicit Session(std::shared_ptr<const Plan> plan);
  ~Session();
  Session(Session&&) noexcept;

  /// Gives the state of an input (a position in the graph's inputs) its memory, which then holds
  /// its value before and after each run; the tensor's elements are shared with the caller, who
  /// must not touch them during a run. Without this the first run with a value for the input makes
  /// memory. Throws `invalid_argument` when the input is no state of the plan.
  void bind_state(size_t input, Tensor memory);
  /// A state that grows (StateSlot::growing_axis) lies in a buffer of its own instead, which is
  /// made for `entries` along its growing axis and made larger when it is full. Others ignore this.
  void reserve_state(size_t input, int64_t entries);
  /// What a state holds now (a copy where it grows); absent before it has a value. A state that
  /// lies on the device (Slot::on_device of its input) is copied to the memory that bind_state
  /// gave, which holds an old value until then, or to new memory; runs leave its output out.
  Tensor state(size_t input) const;

  /// Runs the plan. The input of a state may be left out (an empty Datum): it goes on from what it
  /// holds; a given tensor is copied into the state first. The output of a state that grows is left
  /// out: state() gives it. When a run throws, states hold anything.
  /// `inputs` are in the order of the graph's inputs and must outlive the results
  /// that are views of them. Results stay valid until the next run or the end of the session.
  /// Throws `invalid_argument` naming the input when type or sizes do not fit.
  const std::vector<Datum>& run(std::span<const Datum> inputs,
                                std::vector<StepTime>* profile = nullptr);

  /// Begins to copy inputs of the next run to the device, beside the present one: the run that is
  /// given these tensors finds them there. Their elements must not change until then. Without a
  /// device nothing happens.
  void prefetch(std::span<const Datum> inputs);

  /// The plan that ran last: the given one, or one made of it for sizes that came repeatedly.
  const Plan& plan() const;
  size_t arena_bytes() const;
  /// Steps of the last binding that run on reference loops although their row was chosen.
  std::vector<size_t> refused_steps() const;
  /// What the sizes of the last binding have decided otherwise than the plan says, by step: a row
  /// that refused them, a library that knows no way for them.
  std::vector<std::pair<size_t, std::string>> notes() const;

 private:
  friend class RegionSessions;
  const std::vector<Datum>& run_profiled(std::span<const Datum> inputs,
                                         std::vector<StepTime>* profile);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dais
