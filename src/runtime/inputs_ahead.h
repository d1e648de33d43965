#pragma once

#include <future>
#include <span>
#include <vector>

#include "ir/call.h"
#include "runtime/backend.h"

namespace dais {

/// Copies what the next run will read to a device while the present one computes there: by a queue
/// and a thread of its own. Two sets of memory take turns, one of which a run may still read.
class InputsAhead {
 public:
  explicit InputsAhead(Backend& backend) : queue_(backend.open_queue()) {}
  ~InputsAhead();
  InputsAhead(const InputsAhead&) = delete;

  /// Begins to copy the tensors, which stay alive until they are delivered or the next but one
  /// start. Not while a run that reads what the last start but one copied is under way. Where the
  /// device has no room for them nothing is copied.
  void start(std::span<const Datum> inputs);
  /// Copies to `to`, in the order of `queue`, what was copied of the `bytes` at `from`, once;
  /// false: they were not among what was started. Throws what copying met.
  bool deliver(Queue& queue, void* to, const void* from, size_t bytes);

 private:
  struct Piece {
    Tensor from;
    std::shared_ptr<DeviceMemory> memory;
  };
  struct Set {
    std::vector<Piece> pieces;
    std::future<void> done;
  };
  void settle(Set& set) noexcept;

  std::unique_ptr<Queue> queue_;
  Set sets_[2];
  size_t starts_ = 0;
};

}  // namespace dais
