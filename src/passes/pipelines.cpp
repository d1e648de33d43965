#include "passes/passes.h"

namespace dais {

std::span<const Pass> portable_passes() {
  static constexpr Pass passes[] = {
      {"fold_constants", fold_constants},
      {"inline_branches", inline_branches},
      {"share_common", share_common},
      {"fold_constants_again", fold_constants},
      {"fold_affine", fold_affine},
      {"fold_pad", fold_pad},
      {"recognize_products", recognize_products},
      {"recognize_activations", recognize_activations},
      {"recognize_norms", recognize_norms},
      {"recognize_rotary", recognize_rotary},
      {"recognize_attention", recognize_attention},
      {"share_common_again", share_common},
      {"fold_recognized", fold_constants},
      {"remove_dead", remove_dead},
  };
  return passes;
}

std::span<const Pass> target_passes() {
  static constexpr Pass passes[] = {
      {"layout", layout},           {"fold_permuted", fold_constants},
      {"fuse_conv", fuse_conv},     {"fuse_matmul_epilogue", fuse_matmul_epilogue},
      {"remove_dead", remove_dead},
  };
  return passes;
}

}  // namespace dais
