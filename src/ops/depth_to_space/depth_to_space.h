#pragma once

#include "ir/op.h"

namespace dais {

/// NCHW: blocks of channels become blocks of blocksize × blocksize pixels. Mode DCR takes the pixel
/// from the outer part of the channel number, CRD from the inner one. With channels_last input and
/// output are NHWC.
struct DepthToSpace {
  int64_t blocksize = 1;
  std::string mode = "DCR";
  bool channels_last = false;
  static constexpr auto fields =
      std::tuple{field("blocksize", &DepthToSpace::blocksize), field("mode", &DepthToSpace::mode),
                 field("channels_last", &DepthToSpace::channels_last)};
  static const Op op;
};

/// NCHW, or NHWC with channels_last: the inverse of DepthToSpace in mode DCR.
struct SpaceToDepth {
  int64_t blocksize = 1;
  bool channels_last = false;
  static constexpr auto fields = std::tuple{field("blocksize", &SpaceToDepth::blocksize),
                                            field("channels_last", &SpaceToDepth::channels_last)};
  static const Op op;
};

}  // namespace dais
