#pragma once

#include <vector>

#include "backends/cpu/gemm.h"
#include "base/isa.h"

namespace dais {

/// Where [batch, head, row] of an array of heads begins: element strides; elements of a row are
/// adjacent.
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0;
};

/// What the loops of attention need to know for one binding.
struct AttendSizes {
  int64_t batch = 0, q_heads = 0, kv_heads = 0, head = 0, v_head = 0;
  int64_t q_length = 0;
  int64_t new_length = 0;                ///< keys and values given by this call
  int64_t past_capacity = 0;             ///< rows of the past arrays; 0: none
  int64_t capacity = 0;                  ///< rows of the present arrays
  int64_t key_room = 0, value_room = 0;  ///< rows that those are laid out for; 0: `capacity`
  int64_t total = 0;                     ///< keys that queries may see
  HeadStrides q = {}, k = {}, v = {}, y = {};
  float scale = 1, softcap = 0;
  bool causal = false;
  int64_t window = -1;           ///< keys before a query that it sees; negative: all
  int64_t mask_strides[3] = {};  ///< batch, head, query
  int64_t mask_width = -1;       ///< keys from here on are hidden; negative: no mask
};

/// Pointers of one run. Present arrays may be scratch memory, or the past arrays themselves (of the
/// same layout), which are continued then; they are null when keys and values are read where they
/// lie (then there is no past).
struct AttendPointers {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const float *past_k = nullptr, *past_v = nullptr;
  float *present_k = nullptr, *present_v = nullptr;
  const float* mask = nullptr;       ///< added...
  const uint8_t* allowed = nullptr;  ///< ...or: 0 hides
  const int64_t* past = nullptr;     ///< rows in use before this call, for each example
  float* y = nullptr;
  /// Rotates keys by position as they enter the cache; null: not.
  const float *cos = nullptr, *sin = nullptr;
  int64_t half = 0;
  bool interleaved = false;
};

/// Attention on f32: for few queries keys and values stream by once, copied into the cache on the
/// way; for many, blocks of queries are multiplied with a packed copy of the keys. Tasks are pairs
/// of example and key head, shared out over the pool.
class Attend {
 public:
  Attend(Isa isa, const AttendSizes& sizes);
  size_t scratch_floats() const;
  void run(const AttendPointers& pointers, float* scratch) const;

 private:
  void run_task(const AttendPointers& p, int64_t batch, int64_t kv, float* scratch) const;
  void run_few(const AttendPointers& p, int64_t batch, int64_t kv, float* scratch) const;
  void run_many(const AttendPointers& p, int64_t batch, int64_t kv, float* scratch) const;
  void append(const AttendPointers& p, bool keys, int64_t batch, int64_t kv, int64_t first,
              int64_t last) const;
  float softmax(const AttendPointers& p, int64_t batch, int64_t head, int64_t query, int64_t total,
                float* scores, float* mask_row) const;
  int64_t visible(const AttendPointers& p, int64_t batch, int64_t query) const;
  int64_t room(bool keys) const {
    const int64_t rows = keys ? sizes_.key_room : sizes_.value_room;
    return rows > 0 ? rows : sizes_.capacity;
  }

  Isa isa_;
  AttendSizes sizes_;
  int64_t group_ = 1, parts_ = 1, part_floats_ = 0;
  bool few_ = false;
};

/// The rotation of one head, at a level.
using RotateHead = void (*)(const float* from, int64_t half, int64_t size, bool interleaved,
                            const float* cos, const float* sin, float* to);
RotateHead rotate_head_loop(Isa isa);

}  // namespace dais
