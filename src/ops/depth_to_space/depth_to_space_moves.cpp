#include "ops/depth_to_space/depth_to_space.h"
#include "ops/transpose/moves.h"
#include "ops/transpose/strided_copy.h"
#include "ops/window.h"

namespace dais {
namespace {

/// The axes of a picture whose pixels stand in blocks, as steps of the deep and of the wide tensor.
struct Blocks {
  Shape space;  ///< batch, then channel, row, row in block, column, column in block in wide order
  Strides deep{}, wide{};
};

/// `inner`: the pixel is the inner part of the deep tensor's channel number.
Blocks blocks_of(const Shape& deep_shape, const Shape& wide_shape, int64_t block, bool last,
                 bool inner) {
  const Activation deep(deep_shape, last), wide(wide_shape, last);
  const int64_t rows = deep.space[0], columns = deep.space[1], channels = wide.channels;
  const int64_t pixel = last ? deep.channels : 1, plane = last ? 1 : rows * columns;
  const int64_t step = inner ? block * block : 1, within = inner ? 1 : channels;
  const int64_t wide_pixel = last ? channels : 1,
                wide_plane = last ? 1 : rows * columns * block * block;
  struct Axis {
    int64_t size, deep, wide;
  };
  const Axis batch{wide.batch, rows * columns * deep.channels, rows * columns * deep.channels};
  const Axis channel{channels, step * plane, wide_plane};
  const Axis row{rows, columns * pixel, columns * block * block * wide_pixel};
  const Axis row_in{block, within * block * plane, columns * block * wide_pixel};
  const Axis column{columns, pixel, block * wide_pixel};
  const Axis column_in{block, within * plane, wide_pixel};
  Blocks out;
  const auto add = [&](const Axis& axis) {
    out.deep[out.space.rank()] = axis.deep;
    out.wide[out.space.rank()] = axis.wide;
    out.space.push_back(axis.size);
  };
  add(batch);
  if (!last) add(channel);
  for (const Axis& axis : {row, row_in, column, column_in}) add(axis);
  if (last) add(channel);
  return out;
}

}  // namespace

Moves depth_to_space_moves(const Node& node, Shapes in, Shapes out) {
  const auto& attrs = *node.as<DepthToSpace>();
  const Blocks blocks =
      blocks_of(in[0], out[0], attrs.blocksize, attrs.channels_last, attrs.mode == "CRD");
  return std::vector<Move>{
      {.space = blocks.space, .from_steps = blocks.deep, .to_steps = blocks.wide}};
}

/// The same elements in the order in which the deep tensor holds them.
Moves space_to_depth_moves(const Node& node, Shapes in, Shapes out) {
  const auto& attrs = *node.as<SpaceToDepth>();
  const bool last = attrs.channels_last;
  const Blocks blocks = blocks_of(out[0], in[0], attrs.blocksize, last, false);
  // Of blocks' axes: batch, channel, row, row in block, column, column in block; or channels last.
  constexpr std::array<size_t, 6> kRows{0, 3, 5, 1, 2, 4}, kLast{0, 1, 3, 2, 4, 5};
  Move move;
  for (const size_t axis : last ? kLast : kRows) {
    move.from_steps[move.space.rank()] = blocks.wide[axis];
    move.to_steps[move.space.rank()] = blocks.deep[axis];
    move.space.push_back(blocks.space[axis]);
  }
  return std::vector<Move>{move};
}

}  // namespace dais
