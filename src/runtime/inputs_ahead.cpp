#include "runtime/inputs_ahead.h"

#include "base/error.h"

namespace dais {

InputsAhead::~InputsAhead() {
  for (Set& set : sets_) settle(set);
}

void InputsAhead::settle(Set& set) noexcept {
  if (set.done.valid()) set.done.wait();
}

void InputsAhead::start(std::span<const Datum> inputs) {
  // The queue serves one set at a time.
  for (Set& set : sets_) settle(set);
  Set& set = sets_[starts_++ % std::size(sets_)];
  set.pieces.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Piece& piece = set.pieces[i];
    piece.from = inputs[i].tensor;
    const size_t bytes = piece.from.bytes();
    if (bytes == 0 || (piece.memory && piece.memory->bytes() >= bytes)) continue;
    try {
      piece.memory = queue_->allocate(bytes, "inputs of the next run");
    } catch (const Error& error) {
      if (error.code() != Code::exhausted) throw;
      return set.pieces.clear();  // they will be copied when they are needed
    }
  }
  set.done = std::async(std::launch::async, [this, &set] {
    for (const Piece& piece : set.pieces)
      if (piece.from.bytes() > 0)
        queue_->upload(piece.memory->address(), piece.from.raw(), piece.from.bytes());
    queue_->wait();
  });
}

bool InputsAhead::deliver(Queue& queue, void* to, const void* from, size_t bytes) {
  for (Set& set : sets_)
    for (Piece& piece : set.pieces) {
      if (!piece.from || piece.from.raw() != from || piece.from.bytes() != bytes) continue;
      try {
        if (set.done.valid()) set.done.get();
      } catch (...) {
        set.pieces.clear();
        throw;
      }
      piece.from = Tensor();  // not before: the copying thread reads it
      queue.copy(to, piece.memory->address(), bytes);
      return true;
    }
  return false;
}

}  // namespace dais
