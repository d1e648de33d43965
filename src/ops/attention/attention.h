#pragma once

#include "ir/op.h"

namespace dais {

/// Scaled dot-product attention: Y = softmax(softcap(Q K' * scale) + mask) V, each key/value head
/// serving q_heads / kv_heads query heads. Inputs: Q, K, V, mask?, past_key?, past_value?,
/// nonpad_kv_seqlen?. Q, K, V are [N, heads, length, size], or [N, length, heads * size] with the
/// head counts as attributes. mask broadcasts to [N, q_heads, q_length, total] (a shorter last axis
/// is continued with "masked"): boolean (false is masked) or added. Outputs: Y (in the form of Q),
/// present_key?, present_value? [N, kv_heads, total, size], scores? [N, q_heads, q_length, total].
/// Causal: query i sees keys up to i plus the keys before the block (past, or nonpad_kv_seqlen
/// minus the block). A row with every key masked gives zeros; masked keys and values are never
/// looked at.
struct Attention {
  bool is_causal = false;
  int64_t kv_num_heads = 0;
  int64_t q_num_heads = 0;
  int64_t qk_matmul_output_mode = 0;  ///< scores: 0 scaled, 1 capped, 2 with mask, 3 softmax
  std::optional<float> scale = {};    ///< default 1 / sqrt(head size)
  float softcap = 0;
  int64_t softmax_precision = 0;  ///< element type to compute in at least; 0: any
  static constexpr auto fields =
      std::tuple{field("is_causal", &Attention::is_causal),
                 field("kv_num_heads", &Attention::kv_num_heads),
                 field("q_num_heads", &Attention::q_num_heads),
                 field("qk_matmul_output_mode", &Attention::qk_matmul_output_mode),
                 field("scale", &Attention::scale),
                 field("softcap", &Attention::softcap),
                 field("softmax_precision", &Attention::softmax_precision)};
  static const Op op;
};

/// Attention in products, sums and a softmax; empty where that needs more than inference knows.
Values decompose_attention(Graph& graph, const Node& node);

/// Rotates pairs of elements of each head by position. Inputs: X [N, heads, L, size] or
/// [N, L, heads * size], cos, sin, position_ids?. With position_ids ([N, L], or one number: the
/// position of the first) the tables are [positions, rotated / 2]; without, [N, L, rotated / 2].
/// Pairs are neighbours (interleaved) or halves apart. rotary_embedding_dim 0: all elements.
struct RotaryEmbedding {
  bool interleaved = false;
  int64_t num_heads = 0;  ///< for 3-d X; 0: heads of twice the tables' width
  int64_t rotary_embedding_dim = 0;
  static constexpr auto fields =
      std::tuple{field("interleaved", &RotaryEmbedding::interleaved),
                 field("num_heads", &RotaryEmbedding::num_heads),
                 field("rotary_embedding_dim", &RotaryEmbedding::rotary_embedding_dim)};
  static const Op op;
};

/// Causal attention with a key/value cache of given capacity. Inputs: query [N, L, heads * size]
/// (or query, key and value side by side with key and value left out), key, value
/// [N, L, kv_heads * size], past_key?, past_value? [N, kv_heads, capacity, size], seqlens_k [N]
/// (tokens in the cache after this call, minus one), total_sequence_length (the largest of them),
/// cos?, sin? [positions, rotated / 2], position_ids?, attention_bias?, head_sink?. Outputs: Y,
/// present_key, present_value [N, kv_heads, max(capacity, total), size].
/// local_window_size >= 0: a query sees that many tokens before itself.
struct GroupQueryAttention {
  int64_t num_heads = 0;
  int64_t kv_num_heads = 0;
  float scale = 0;  ///< 0: 1 / sqrt(head size)
  float softcap = 0;
  int64_t local_window_size = -1;
  bool do_rotary = false;
  bool rotary_interleaved = false;
  bool smooth_softmax = false;  ///< one more key of score 0 and value 0
  static constexpr auto fields =
      std::tuple{field("num_heads", &GroupQueryAttention::num_heads),
                 field("kv_num_heads", &GroupQueryAttention::kv_num_heads),
                 field("scale", &GroupQueryAttention::scale),
                 field("softcap", &GroupQueryAttention::softcap),
                 field("local_window_size", &GroupQueryAttention::local_window_size),
                 field("do_rotary", &GroupQueryAttention::do_rotary),
                 field("rotary_interleaved", &GroupQueryAttention::rotary_interleaved),
                 field("smooth_softmax", &GroupQueryAttention::smooth_softmax)};
  static const Op op;
};

/// Attention through a state of fixed size, updated token by token:
///   S *= exp(decay) (gated rules), v = beta * (v - S' (erase * k)) (delta rules), S += k v',
///   y = scale * S' q.
/// Inputs: query [N, L, q_heads * dk], key [N, L, kv_heads * dk], value [N, L, kv_heads * dv],
/// past_state? [N, kv_heads, dk, dv], decay? [N, L, kv_heads (* dk)], beta? [N, L, kv_heads or 1],
/// erase_gate? like key. Outputs: Y [N, L, q_heads * dv], present_state.
struct LinearAttention {
  int64_t chunk_size = 64;  ///< a hint only
  int64_t kv_num_heads = 0;
  int64_t q_num_heads = 0;
  float scale = 0;  ///< 0: 1 / sqrt(dk)
  std::string update_rule = "gated_delta";
  static constexpr auto fields = std::tuple{field("chunk_size", &LinearAttention::chunk_size),
                                            field("kv_num_heads", &LinearAttention::kv_num_heads),
                                            field("q_num_heads", &LinearAttention::q_num_heads),
                                            field("scale", &LinearAttention::scale),
                                            field("update_rule", &LinearAttention::update_rule)};
  static const Op op;
};

}  // namespace dais
