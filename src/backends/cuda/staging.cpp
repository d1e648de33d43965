#include "backends/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "backends/cuda/check.h"
#include "base/error.h"

namespace dais::cuda {

Staging::~Staging() {
  try {
    stream_->device().enter();
  } catch (const Error&) {
    return;  // with its context the memory is gone
  }
  driver().stream_synchronize(stream_->handle());
  for (const Piece& piece : pieces_) {
    if (piece.used) driver().event_destroy(piece.used);
    if (piece.memory) driver().mem_free_host(piece.memory);
  }
  if (landing_) driver().mem_free_host(landing_);
}

void Staging::make_pieces() {
  while (pieces_.size() < kPieces) {
    Piece piece;
    check(driver(), driver().mem_host_alloc(&piece.memory, kPieceBytes, 0),
          "taking page-locked memory");
    pieces_.push_back(piece);
    check(driver(), driver().event_create(&pieces_.back().used, kEventDisableTiming),
          "making an event");
  }
}

void Staging::upload(DevicePointer to, const void* from, size_t bytes) {
  const DriverStream stream = stream_->handle();
  if (bytes <= kDirectBytes)
    return check(driver(), driver().memcpy_htod_async(to, from, bytes, stream),
                 "copying to the device");
  make_pieces();
  for (size_t at = 0; at < bytes; at += kPieceBytes) {
    Piece& piece = pieces_[next_++ % kPieces];
    if (piece.busy) check(driver(), driver().event_synchronize(piece.used), "waiting for a copy");
    const size_t part = std::min(kPieceBytes, bytes - at);
    std::memcpy(piece.memory, static_cast<const std::byte*>(from) + at, part);
    check(driver(), driver().memcpy_htod_async(to + at, piece.memory, part, stream),
          "copying to the device");
    check(driver(), driver().event_record(piece.used, stream), "marking a copy");
    piece.busy = true;
  }
}

void Staging::download(void* to, DevicePointer from, size_t bytes) {
  const DriverStream stream = stream_->handle();
  if (landed_bytes_ + bytes > kLandingBytes) {
    // More than fits goes straight to its place, which the driver does piece by piece.
    return check(driver(), driver().memcpy_dtoh_async(to, from, bytes, stream),
                 "copying from the device");
  }
  if (!landing_)
    check(driver(), driver().mem_host_alloc(&landing_, kLandingBytes, 0),
          "taking page-locked memory");
  check(driver(),
        driver().memcpy_dtoh_async(static_cast<std::byte*>(landing_) + landed_bytes_, from, bytes,
                                   stream),
        "copying from the device");
  waiting_.push_back({to, landed_bytes_, bytes});
  landed_bytes_ += (bytes + 255) / 256 * 256;
}

void Staging::land() {
  for (const Landing& landing : waiting_)
    std::memcpy(landing.to, static_cast<const std::byte*>(landing_) + landing.offset,
                landing.bytes);
  waiting_.clear();
  landed_bytes_ = 0;
}

}  // namespace dais::cuda
