// Recurrent layers: both directions, with and without first states and biases.
#include "ops/rnn/rnn.h"
#include "watched_row.h"

namespace dais {
namespace {

Tensor floats(const Shape& shape, uint64_t seed) { return sample<float>(shape, 0.5, seed); }

template <typename Layer>
std::vector<Tensor> layer_inputs(int64_t directions, int64_t input, int64_t hidden) {
  const int64_t rows = (std::is_same_v<Layer, LSTM> ? 4 : 3) * hidden;
  return {floats({5, 3, input}, 1), floats({directions, rows, input}, 2),
          floats({directions, rows, hidden}, 3), floats({directions, 2 * rows}, 4)};
}

TEST(RecurrentRows, Lstm) {
  const WatchedCase how{.tolerance = {1e-5, 1e-5}, .outputs = 3};
  for (const auto& [direction, count] :
       {std::pair<const char*, int64_t>{"forward", 1}, {"reverse", 1}, {"bidirectional", 2}})
    watch_row(LSTM{.direction = direction, .hidden_size = 33}, layer_inputs<LSTM>(count, 10, 33),
              how);
}

TEST(RecurrentRows, Gru) {
  const WatchedCase how{.tolerance = {1e-5, 1e-5}, .outputs = 2};
  for (const bool linear : {false, true})
    for (const auto& [direction, count] :
         {std::pair<const char*, int64_t>{"forward", 1}, {"bidirectional", 2}})
      watch_row(GRU{.direction = direction, .hidden_size = 16, .linear_before_reset = linear},
                layer_inputs<GRU>(count, 24, 16), how);
}

}  // namespace
}  // namespace dais
