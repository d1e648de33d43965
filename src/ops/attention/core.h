#pragma once

#include <functional>
#include <vector>

#include "ir/tensor.h"

namespace dais {

/// Sizes and constants of one attention call; tensors are dense [batch, heads, length, size].
struct AttentionSizes {
  int64_t batch = 0, q_heads = 0, kv_heads = 0;
  int64_t q_length = 0, kv_length = 0;
  int64_t kv_capacity = 0;  ///< length the key and value arrays are laid out for
  int64_t head = 0, v_head = 0;
  double scale = 1, softcap = 0;
};

/// Which scores a caller wants to see.
enum class ScoreStage : uint8_t { scaled, capped, masked, probabilities };

/// Adds to the scores of one query (batch, head, query); minus infinity hides a key.
using AddMask = std::function<void(int64_t, int64_t, int64_t, double* row)>;

struct AttentionResult {
  std::vector<double> y;       ///< [batch, q_heads, q_length, v_head]
  std::vector<double> scores;  ///< [batch, q_heads, q_length, kv_length] when asked for
};

/// `sink`: for each query head the score of one more key without a value; may be empty.
AttentionResult attend(const AttentionSizes& sizes, const std::vector<double>& q,
                       const std::vector<double>& k, const std::vector<double>& v,
                       const AddMask& mask, const std::vector<double>& sink = {},
                       const ScoreStage* stage = nullptr);

/// [batch, length, heads, size] to [batch, heads, length, size]; exchanging heads and length, also
/// the way back.
std::vector<double> swap_heads(const std::vector<double>& values, int64_t batch, int64_t length,
                               int64_t heads, int64_t size);

}  // namespace dais
