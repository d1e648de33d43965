#pragma once

#include "ir/op.h"

namespace dais {

Values gradient_batch_norm(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_layer_norm(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_rms_norm(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_lp_norm(Graph& g, const Node& n, std::span<Value* const> given);
Values gradient_mean_variance(Graph& g, const Node& n, std::span<Value* const> given);
/// By reductions over the cells of each channel.
Values decompose_instance_norm(Graph& g, const Node& n);

}  // namespace dais
