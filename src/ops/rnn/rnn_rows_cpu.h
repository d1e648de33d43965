#pragma once

namespace dais {

class Kernels;

/// Adds the rows of gradients.
void register_rnn_backward(Kernels& kernels);

}  // namespace dais
