#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Convolution on oneDNN, which rows with a faster way for some sizes fall back to.
Verdict accepts_onednn_conv(const KernelQuery& query);
std::unique_ptr<Kernel> prepare_onednn_conv(const KernelQuery& query);

/// The same by Winograd's transform.
Verdict accepts_winograd(const KernelQuery& query);
std::unique_ptr<Kernel> prepare_winograd(const KernelQuery& query);

/// Adds the rows of gradients.
void register_conv_backward(Kernels& kernels);
/// Adds the rows of bf16 convolution and its gradients on the tile unit.
void register_half_conv(Kernels& kernels);
/// Adds the rows of Winograd's transform.
void register_winograd(Kernels& kernels);
/// Adds the rows of convolution on the tile unit.
void register_tiles(Kernels& kernels);
/// Adds the rows of row-major depthwise convolution.
void register_planes(Kernels& kernels);

}  // namespace dais
