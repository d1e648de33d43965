#include "passes/passes.h"

namespace dais {

std::span<const Pass> portable_passes() {
  static constexpr Pass passes[] = {
      {"fold_constants", fold_constants}, {"inline_branches", inline_branches},
      {"share_common", share_common},     {"fold_constants_again", fold_constants},
      {"fold_affine", fold_affine},       {"fold_pad", fold_pad},
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
