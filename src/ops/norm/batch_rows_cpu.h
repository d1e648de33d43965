#pragma once

namespace dais {

class Kernels;

/// Adds the rows of batch normalisation while training and of its gradient.
void register_batch_norm(Kernels& kernels);

}  // namespace dais
