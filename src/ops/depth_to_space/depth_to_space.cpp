#include "ops/depth_to_space/depth_to_space.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/transpose/strided_copy.h"

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
  if (rank != 4) c.fail("the input is of rank " + std::to_string(rank) + ", not 4 (NCHW)");
  return block;
}

template <typename Context>
Dims spread(const Context& c, const Dims& in) {
  const int64_t block = checked_block<DepthToSpace>(c, in.size());
  return {in[0], exact(c, in[1], block * block), in[2] * block, in[3] * block};
}

template <typename Context>
Dims stacked(const Context& c, const Dims& in) {
  const int64_t block = checked_block<SpaceToDepth>(c, in.size());
  return {in[0], in[1] * (block * block), exact(c, in[2], block), exact(c, in[3], block)};
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

/// Steps through a tensor of blocks [N, C, H, block, W, block] held as [N, C, H·block, W·block].
Strides pixel_steps(int64_t channels, int64_t height, int64_t width, int64_t block) {
  const int64_t line = width * block, plane = line * height * block;
  return {channels * plane, plane, line * block, line, block, 1};
}

/// The same space held as [N, channels·block², H, W]: channel steps by mode.
Strides channel_steps(int64_t channels, int64_t height, int64_t width, int64_t block, bool inner) {
  const int64_t plane = height * width, pixel = inner ? plane : channels * plane;
  return {channels * block * block * plane,
          inner ? plane * block * block : plane,
          width,
          pixel * block,
          1,
          pixel};
}

void depth_to_space(Call& c) {
  const Tensor& x = c.in(0);
  const Shape shape = shape_of(spread(c, dims_of(x.shape())));
  const auto& attrs = c.attrs<DepthToSpace>();
  const int64_t height = x.shape()[2], width = x.shape()[3], block = attrs.blocksize;
  Tensor& y = c.out(0, shape);
  copy_strided({shape[0], shape[1], height, block, width, block}, x, 0,
               channel_steps(shape[1], height, width, block, attrs.mode == "CRD"), y, 0,
               pixel_steps(shape[1], height, width, block));
}

void space_to_depth(Call& c) {
  const Tensor& x = c.in(0);
  const Shape shape = shape_of(stacked(c, dims_of(x.shape())));
  const int64_t channels = x.shape()[1], height = shape[2], width = shape[3];
  const int64_t block = c.attrs<SpaceToDepth>().blocksize;
  Tensor& y = c.out(0, shape);
  copy_strided({shape[0], channels, height, block, width, block}, x, 0,
               pixel_steps(channels, height, width, block), y, 0,
               channel_steps(channels, height, width, block, false));
}

}  // namespace

const Op DepthToSpace::op{
    .name = "depth_to_space",
    .attrs = &AttrsOf<DepthToSpace>::info,
    .infer = infer_spread,
    .reference = depth_to_space,
    .onnx = {{"DepthToSpace"}},
};

const Op SpaceToDepth::op{
    .name = "space_to_depth",
    .attrs = &AttrsOf<SpaceToDepth>::info,
    .infer = infer_stacked,
    .reference = space_to_depth,
    .onnx = {{"SpaceToDepth"}},
};

namespace ops {
void define_depth_to_space(OpRegistry& registry) {
  registry.add(DepthToSpace::op);
  registry.add(SpaceToDepth::op);
}
}  // namespace ops
}  // namespace dais
