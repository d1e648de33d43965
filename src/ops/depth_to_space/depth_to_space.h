#pragma once

#include "ir/op.h"

namespace dais {

/// NCHW: blocks of channels become blocks of blocksize × blocksize pixels. Mode DCR takes the pixel
/// from the outer part of the channel number, CRD from the inner one.
struct DepthToSpace {
  int64_t blocksize = 1;
  std::string mode = "DCR";
  static constexpr auto fields =
      std::tuple{field("blocksize", &DepthToSpace::blocksize), field("mode", &DepthToSpace::mode)};
  static const Op op;
};

/// NCHW: the inverse of DepthToSpace in mode DCR.
struct SpaceToDepth {
  int64_t blocksize = 1;
  static constexpr auto fields = std::tuple{field("blocksize", &SpaceToDepth::blocksize)};
  static const Op op;
};

}  // namespace dais
