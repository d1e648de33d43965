#include "ops/col2im/col2im.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/gradient.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& in = c.shape(0);
  c.require(in.size() == 3, "the input is not [N, C*block, L]");
  const auto image = c.known(1), block = c.known(2);
  if (!image && !(c.ranked(1) && c.rank(1) == 1 && c.shape(1)[0].is_constant())) return;
  Dims out{in[0], c.fresh()};
  if (block) {
    const Dim volume = product(*block, 0, block->size());
    if (volume.is_constant() && *volume.constant() < 1) c.fail("the block is empty");
    out[1] = floordiv(in[1], volume);
  }
  const size_t axes = image ? image->size() : static_cast<size_t>(*c.shape(1)[0].constant());
  c.require(axes + 2 <= kMaxRank, "the image has too many axes");
  for (size_t i = 0; i < axes; ++i) out.push_back(image ? (*image)[i] : c.fresh());
  c.set(0, c.dtype(0), out);
}

/// One sliding window over an image.
struct Windows {
  std::vector<int64_t> image, block, dilations, pads, strides, count;
  int64_t block_size = 1, total = 1;
};

std::vector<int64_t> or_all(const Call& c, const std::vector<int64_t>& given, size_t count,
                            int64_t otherwise) {
  if (given.empty()) return std::vector<int64_t>(count, otherwise);
  c.require(given.size() == count, "pads, strides or dilations do not fit the image's axes");
  for (int64_t value : given)
    c.require(value >= otherwise && value < INT32_MAX, "pads, strides or dilations out of range");
  return given;
}

template <typename S>
Windows read_windows(const Call& c, const S& attrs) {
  Windows w{c.in(1).to_ints(), c.in(2).to_ints(), {}, {}, {}, {}};
  const size_t axes = w.image.size();
  c.require(w.block.size() == axes, "the image and the block differ in rank");
  w.dilations = or_all(c, attrs.dilations, axes, 1);
  w.pads = or_all(c, attrs.pads, 2 * axes, 0);
  w.strides = or_all(c, attrs.strides, axes, 1);
  for (size_t i = 0; i < axes; ++i) {
    c.require(
        w.image[i] >= 0 && w.image[i] < INT32_MAX && w.block[i] >= 1 && w.block[i] < INT32_MAX,
        "the image or the block has a size out of range");
    const int64_t reach =
        w.image[i] + w.pads[i] + w.pads[axes + i] - w.dilations[i] * (w.block[i] - 1) - 1;
    w.count.push_back(reach < 0 ? 0 : reach / w.strides[i] + 1);
  }
  w.block_size = Shape(w.block).elements();
  w.total = Shape(w.count).elements();
  return w;
}

/// Where element `k` of window `l` lies in the image; -1: in the padding.
int64_t image_offset(const Windows& w, int64_t k, int64_t l) {
  int64_t offset = 0, step = 1;
  for (size_t i = w.image.size(); i-- > 0;) {
    const int64_t at = l % w.count[i] * w.strides[i] + k % w.block[i] * w.dilations[i] - w.pads[i];
    if (at < 0 || at >= w.image[i]) return -1;
    offset += at * step;
    step *= w.image[i];
    k /= w.block[i];
    l /= w.count[i];
  }
  return offset;
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const Windows w = read_windows(c, c.attrs<Col2Im>());
  c.require(x.rank() == 3 && x.shape()[1] % w.block_size == 0 && x.shape()[2] == w.total,
            "the columns do not fit the image and the block");
  Shape shape{x.shape()[0], x.shape()[1] / w.block_size};
  for (int64_t size : w.image) shape.push_back(size);
  Tensor& y = c.out(0, shape);
  const int64_t planes = shape[0] * shape[1], area = shape.elements(2, shape.rank());
  visit_dtype<NumericTypes>(x.dtype(), [&]<typename T>() {
    using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
    std::vector<Sum> sums(static_cast<size_t>(area));
    const T* from = x.data<T>().data();
    for (int64_t plane = 0; plane < planes; ++plane) {
      std::fill(sums.begin(), sums.end(), Sum{});
      for (int64_t k = 0; k < w.block_size; ++k)
        for (int64_t l = 0; l < w.total; ++l, ++from)
          if (const int64_t at = image_offset(w, k, l); at >= 0)
            sums[static_cast<size_t>(at)] += number_cast<Sum>(*from);
      std::transform(sums.begin(), sums.end(), y.storage<T>() + plane * area,
                     [](Sum sum) { return number_cast<T>(sum); });
    }
  });
}

/// The image's blocks side by side.
void reference_backward(Call& c) {
  const Tensor& dy = c.in(0);
  const Windows w = read_windows(c, c.attrs<Col2ImBackward>());
  c.require(dy.rank() == w.image.size() + 2 &&
                std::equal(w.image.begin(), w.image.end(), dy.shape().begin() + 2),
            "dy is not of the image's size");
  const int64_t channels = dy.shape()[1], planes = dy.shape()[0] * channels;
  const int64_t area = dy.shape().elements(2, dy.rank());
  const WideView<double> slopes(dy);
  std::vector<double> out;
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t k = 0; k < w.block_size; ++k)
      for (int64_t l = 0; l < w.total; ++l) {
        const int64_t at = image_offset(w, k, l);
        out.push_back(at < 0 ? 0 : slopes[plane * area + at]);
      }
  const Shape shape{dy.shape()[0], channels * w.block_size, w.total};
  store_wide(c.out(0, shape), 0, out.data(), std::ssize(out));
}

void infer_backward(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& dy = c.shape(0);
  c.require(dy.size() >= 3, "dy is no image");
  const auto block = c.known(2);
  const Dim rows = block ? dy[1] * product(*block, 0, block->size()) : c.fresh();
  c.set(0, c.dtype(0), Dims{dy[0], rows, c.fresh()});
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<Col2Im>();
  const Col2ImBackward back{attrs.dilations, attrs.pads, attrs.strides};
  return {reshape_like(g, g.add(back, {dy[0], n.in[1], n.in[2]}), n.in[0])};
}

}  // namespace

const Op Col2Im::op{
    .name = "col2im",
    .attrs = &AttrsOf<Col2Im>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{"Col2Im", 18}},
};

const Op Col2ImBackward::op{
    .name = "col2im_backward",
    .attrs = &AttrsOf<Col2ImBackward>::info,
    .infer = infer_backward,
    .reference = reference_backward,
    .onnx = {{.type = "Col2ImBackward", .domain = "dais"}},
};

namespace ops {
void define_col2im(OpRegistry& registry) {
  registry.add(Col2Im::op);
  registry.add(Col2ImBackward::op);
}
}  // namespace ops
}  // namespace dais
