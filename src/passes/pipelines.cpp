#include "passes/passes.h"

namespace dais {

std::span<const Pass> portable_passes() {
  static constexpr Pass passes[] = {
      {"quantise_linear", quantise_linear},  // before weights fold to float
      {"fold_constants", fold_constants},
      {"inline_branches", inline_branches},
      {"einsum_products", einsum_products},
      {"share_common", share_common},
      {"fold_constants_again", fold_constants},
      {"simplify", simplify},
      {"fold_affine", fold_affine},
      {"simplify_again", simplify},
      {"fold_pad", fold_pad},
      {"recognize_products", recognize_products},
      {"recognize_activations", recognize_activations},
      {"recognize_norms", recognize_norms},
      {"recognize_rotary", recognize_rotary},
      {"recognize_attention", recognize_attention},
      {"share_common_again", share_common},
      {"simplify_moves", simplify_moves},  // the recognisers know chains as they are exported
      {"fold_recognized", fold_constants},
      {"remove_dead", remove_dead},
  };
  return passes;
}

std::span<const Pass> target_passes() {
  static constexpr Pass passes[] = {
      {"widen_half", widen_half},                      // casts of weights fold next
      {"fold_weights", fold_weights},                  // kernels want constant weights
      {"split_conv_transpose", split_conv_transpose},  // before layout, which it needs
      {"layout", layout},                              // leaves constants to fold
      {"shuffle_channels", shuffle_channels},          // between what layout has turned
      {"fold_permuted", fold_weights},                 //
      {"fuse_quantised", fuse_quantised},              // with the sums behind convolutions
      {"fuse_conv", fuse_conv},                        // before products and chains
      {"fuse_matmul_epilogue", fuse_matmul_epilogue},  //
      {"fuse_elementwise", fuse_elementwise},          // what the others have left
      {"remove_dead", remove_dead},                    //
  };
  return passes;
}

std::span<const Pass> device_passes() {
  static constexpr Pass passes[] = {
      {"split_nms", split_nms},
      {"fold_weights", fold_weights},
      {"fuse_conv", fuse_conv},
      {"fuse_matmul_epilogue", fuse_matmul_epilogue},
      {"fuse_rows", fuse_rows},  // chains with what joins their rows, before chains alone
      {"fuse_elementwise", fuse_elementwise},
      {"remove_dead", remove_dead},
  };
  return passes;
}

}  // namespace dais
