#pragma once

#include "ir/op.h"

namespace dais {

Values gradient_rnn(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_gru(Graph& g, const Node& n, std::span<Value* const> dy);
Values gradient_lstm(Graph& g, const Node& n, std::span<Value* const> dy);

}  // namespace dais
