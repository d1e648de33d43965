#pragma once

namespace dais {

class Kernels;

/// Adds the rows of batch normalisation while training and of its gradient.
void register_batch_norm(Kernels& kernels);
/// Adds the rows of the gradient of layer normalisation.
void register_layer_norm_backward(Kernels& kernels);

}  // namespace dais
