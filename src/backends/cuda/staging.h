#pragma once

#include <vector>

#include "backends/cuda/stream.h"

namespace dais::cuda {

/// Page-locked memory through which a stream's copies go, so that they run beside the CPU and
/// kernels. Belongs to one queue.
class Staging {
 public:
  explicit Staging(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~Staging();
  Staging(const Staging&) = delete;

  /// `from` may change when the call returns.
  void upload(DevicePointer to, const void* from, size_t bytes);
  /// `to` is written by land(), after the stream has been waited for.
  void download(void* to, DevicePointer from, size_t bytes);
  void land();
  /// Forgets what has not landed, as its target may be gone.
  void drop() {
    waiting_.clear();
    landed_bytes_ = 0;
  }

 private:
  struct Piece {
    void* memory = nullptr;
    DriverEvent used = nullptr;
    bool busy = false;
  };
  struct Landing {
    void* to;
    size_t offset, bytes;
  };
  static constexpr size_t kPieceBytes = size_t{4} << 20;
  static constexpr size_t kPieces = 2;
  static constexpr size_t kLandingBytes = size_t{16} << 20;
  /// The driver itself takes copies up to this size at once.
  static constexpr size_t kDirectBytes = size_t{64} << 10;

  const DriverApi& driver() const { return stream_->device().driver(); }
  void make_pieces();

  std::shared_ptr<Stream> stream_;
  std::vector<Piece> pieces_;
  size_t next_ = 0;
  void* landing_ = nullptr;
  size_t landed_bytes_ = 0;
  std::vector<Landing> waiting_;
};

}  // namespace dais::cuda
