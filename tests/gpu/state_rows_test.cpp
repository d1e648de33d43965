// Layers that hand a state from token to token: the results and the states of the CPU's reference.
#include "ops/attention/attention.h"
#include "ops/conv/conv.h"
#include "watched_row.h"

namespace dais {
namespace {

const RowTolerance kFloat{1e-5, 1e-5}, kHalf{4e-3, 4e-3};
const WatchedCase kBoth{.tolerance = kFloat, .outputs = 2};

TEST(StateRows, CausalConvolution) {
  for (const char* activation : {"none", "silu"}) {
    const CausalConvWithState attrs{.activation = activation};
    const Tensor x = sample<float>({2, 3, 40}), w = sample<float>({3, 1, 4}, 1);
    watch_row(attrs, {x, w}, kBoth);
    watch_row(attrs, {x, w, sample<float>({3}), sample<float>({2, 3, 3})}, kBoth);
    watch_row(attrs, {sample<float>({2, 3, 1}), w, {}, sample<float>({2, 3, 3})}, kBoth);
    watch_row(attrs, {narrowed(x, DType::f16), narrowed(w, DType::f16)},
              {.tolerance = kHalf, .outputs = 2});
  }
  watch_row(CausalConvWithState{}, {sample<float>({2, 4, 64}), sample<float>({4, 1, 1})}, kBoth)
      .expect_coalesced_writes();
}

/// Two heads of keys, `group` of queries for each, dk and dv wide; gates as the rule wants them.
void check_linear(const char* rule, int64_t group, int64_t dk, int64_t dv, bool by_row) {
  constexpr int64_t kHeads = 2, kTokens = 5;
  const LinearAttention attrs{
      .kv_num_heads = kHeads, .q_num_heads = kHeads * group, .update_rule = rule};
  const std::string name = rule;
  const auto gates = [&](int64_t width) { return sample<float>({3, kTokens, width}, 0.5, 7); };
  Tensor decay, beta, erase;
  if (name.starts_with("gated")) decay = gates(by_row ? kHeads * dk : kHeads);
  if (name.ends_with("delta")) beta = gates(by_row ? kHeads : 1);
  if (name.ends_with("delta") && by_row) erase = gates(kHeads * dk);
  watch_row(attrs,
            {sample<float>({3, kTokens, kHeads * group * dk}, 1, 2), gates(kHeads * dk),
             sample<float>({3, kTokens, kHeads * dv}, 1, 3),
             by_row ? sample<float>({3, kHeads, dk, dv}, 1, 4) : Tensor(), decay, beta, erase},
            kBoth);
}

TEST(StateRows, LinearAttentionByEveryRule) {
  for (const char* rule : {"linear", "gated", "delta", "gated_delta"})
    for (const bool by_row : {false, true}) {
      check_linear(rule, 1, 16, 32, by_row);
      check_linear(rule, 3, 20, 40, by_row);
    }
}

TEST(StateRows, LinearAttentionWithHalves) {
  const auto half = [](const Shape& shape, uint64_t seed) {
    return narrowed(sample<float>(shape, 0.5, seed), DType::f16);
  };
  watch_row(LinearAttention{.kv_num_heads = 1, .q_num_heads = 1, .update_rule = "linear"},
            {half({2, 6, 64}, 1), half({2, 6, 64}, 2), half({2, 6, 33}, 3),
             sample<float>({2, 1, 64, 33}, 0.5, 4)},
            {.tolerance = kHalf, .outputs = 2});
}

}  // namespace
}  // namespace dais
