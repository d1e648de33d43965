#include "ops/depth_to_space/depth_to_space.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/gradient.h"
#include "ops/reshape/reshape.h"
#include "ops/transpose/strided_copy.h"
#include "ops/transpose/transpose.h"
#include "ops/window.h"

namespace dais {
namespace {

/// A size divided by what must divide it.
template <typename Context>
Dim exact(const Context& c, const Dim& size, int64_t divisor) {
  if (size.is_constant() && *size.constant() % divisor != 0)
    c.fail("size " + size.text() + " is not a multiple of " + std::to_string(divisor));
  return floordiv(size, divisor);
}

template <typename Struct, typename Context>
int64_t checked_block(const Context& c, size_t rank) {
  const int64_t block = c.template attrs<Struct>().blocksize;
  if (block < 1 || block > (1 << 20)) c.fail("the block size is " + std::to_string(block));
  if (rank != 4) c.fail("the input is of rank " + std::to_string(rank) + ", not 4");
  return block;
}

template <typename Context>
Dims spread(const Context& c, const Dims& in) {
  const int64_t block = checked_block<DepthToSpace>(c, in.size());
  const bool last = c.template attrs<DepthToSpace>().channels_last;
  const Dims space = space_of(in, last);
  return activation_dims(in[0], exact(c, in[channel_axis(4, last)], block * block),
                         {space[0] * block, space[1] * block}, last);
}

template <typename Context>
Dims stacked(const Context& c, const Dims& in) {
  const int64_t block = checked_block<SpaceToDepth>(c, in.size());
  const bool last = c.template attrs<SpaceToDepth>().channels_last;
  const Dims space = space_of(in, last);
  return activation_dims(in[0], in[channel_axis(4, last)] * (block * block),
                         {exact(c, space[0], block), exact(c, space[1], block)}, last);
}

void infer_spread(Inference& c) {
  c.set(0, c.dtype(0));
  const auto& mode = c.attrs<DepthToSpace>().mode;
  if (mode != "DCR" && mode != "CRD")
    c.fail("the mode '" + mode + "' is unknown", "Use DCR or CRD");
  c.set(0, c.dtype(0), spread(c, c.shape(0)));
}

void infer_stacked(Inference& c) {
  c.set(0, c.dtype(0));
  c.set(0, c.dtype(0), stacked(c, c.shape(0)));
}

/// Both tensors as blocks [N, C, H, block, W, block].
struct Blocks {
  Shape space;
  Strides pixels, channels;  ///< steps in the large picture and in the one of many channels

  /// `inner`: the pixel within a block is the inner part of the channel number.
  Blocks(const Shape& pixel_shape, int64_t block, bool channels_last, bool inner) {
    const Activation sizes(pixel_shape, channels_last);
    const int64_t depth = sizes.channels, square = block * block;
    const int64_t height = sizes.space[0] / block, width = sizes.space[1] / block;
    space = {sizes.batch, depth, height, block, width, block};
    // Numbers of values between neighbouring pixels and channels of either tensor.
    const int64_t pixel = channels_last ? depth : 1, line = width * block * pixel;
    const int64_t plane = channels_last ? 1 : height * block * line;
    pixels = {depth * height * width * square, plane, line * block, line, pixel * block, pixel};
    const int64_t place = channels_last ? depth * square : 1;
    const int64_t channel = channels_last ? 1 : height * width;
    const int64_t part = channel * (inner ? 1 : depth);
    channels = {depth * height * width * square,
                channel * (inner ? square : 1),
                width * place,
                part * block,
                place,
                part};
  }
};

void depth_to_space(Call& c) {
  const Tensor& x = c.in(0);
  const auto& attrs = c.attrs<DepthToSpace>();
  const Shape shape = shape_of(spread(c, dims_of(x.shape())));
  const Blocks blocks(shape, attrs.blocksize, attrs.channels_last, attrs.mode == "CRD");
  copy_strided(blocks.space, x, 0, blocks.channels, c.out(0, shape), 0, blocks.pixels);
}

void space_to_depth(Call& c) {
  const Tensor& x = c.in(0);
  const auto& attrs = c.attrs<SpaceToDepth>();
  const Shape shape = shape_of(stacked(c, dims_of(x.shape())));
  const Blocks blocks(x.shape(), attrs.blocksize, attrs.channels_last, false);
  copy_strided(blocks.space, x, 0, blocks.pixels, c.out(0, shape), 0, blocks.channels);
}

/// Undoes mode CRD, which SpaceToDepth does not know: blocks become axes that change places.
Value* stacked_inner(Graph& g, const Node& n, Value* dy) {
  const auto& attrs = *n.as<DepthToSpace>();
  rank_for_gradient(n, n.in[0]);
  const Dims& x = *n.in[0]->type.shape;
  const int64_t block = attrs.blocksize;
  const size_t first = attrs.channels_last ? 1 : 2;
  const auto height = x[first].constant(), width = x[first + 1].constant();
  if (!height && !width) no_gradient(n, "the image's size is not known");
  const int64_t rows = height.value_or(-1), columns = width.value_or(-1);
  const auto channels = x[attrs.channels_last ? 3 : 1].constant();
  if (!channels) no_gradient(n, "the number of channels is not known");
  const int64_t depth = *channels / (block * block);
  std::vector<int64_t> split{0, depth, rows, block, columns, block}, perm{0, 1, 3, 5, 2, 4};
  if (attrs.channels_last) split = {0, rows, block, columns, block, depth};
  Value* blocks = g.add(Reshape{}, {dy, ints(g, split)});
  return reshape_like(g, g.add(Transpose{.perm = perm}, {blocks}), n.in[0]);
}

Values gradient_spread(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<DepthToSpace>();
  if (attrs.mode == "CRD") return {stacked_inner(g, n, dy[0])};
  return {g.add(SpaceToDepth{attrs.blocksize, attrs.channels_last}, {dy[0]})};
}

Values gradient_stacked(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<SpaceToDepth>();
  return {g.add(DepthToSpace{attrs.blocksize, "DCR", attrs.channels_last}, {dy[0]})};
}

}  // namespace

const Op DepthToSpace::op{
    .name = "depth_to_space",
    .attrs = &AttrsOf<DepthToSpace>::info,
    .infer = infer_spread,
    .reference = depth_to_space,
    .gradient = gradient_spread,
    .onnx = {{"DepthToSpace"}},
};

const Op SpaceToDepth::op{
    .name = "space_to_depth",
    .attrs = &AttrsOf<SpaceToDepth>::info,
    .infer = infer_stacked,
    .reference = space_to_depth,
    .gradient = gradient_stacked,
    .onnx = {{"SpaceToDepth"}},
};

namespace ops {
void define_depth_to_space(OpRegistry& registry) {
  registry.add(DepthToSpace::op);
  registry.add(SpaceToDepth::op);
}
}  // namespace ops
}  // namespace dais
