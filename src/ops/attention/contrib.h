#pragma once

#include "ir/op.h"

namespace dais {

/// Rules for operators that become Attention and simpler ones: Attention, MultiHeadAttention and
/// QAttention of com.microsoft, SwiGLU.
void define_attention_contrib(OpRegistry& registry);
/// FlexAttention of ai.onnx.preview.
void define_flex_attention(OpRegistry& registry);

}  // namespace dais
