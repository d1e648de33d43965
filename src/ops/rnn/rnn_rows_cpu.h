#pragma once

namespace dais {

class Kernels;

/// Adds the rows of gradients.
void register_rnn_backward(Kernels& kernels);
/// Adds the rows of bf16 layers and their gradients on the tile unit.
void register_half_rnn(Kernels& kernels);

}  // namespace dais
