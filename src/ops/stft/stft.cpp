#include "ops/stft/stft.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/dims.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gather/gather.h"
#include "ops/gradient.h"
#include "ops/pad/pad.h"
#include "ops/reshape/reshape.h"
#include "ops/slice/slice.h"
#include "ops/stft/fft.h"
#include "ops/strided.h"
#include "ops/wide.h"

namespace dais {
namespace {

using Complex = std::complex<double>;
constexpr int64_t kMaxLength = int64_t{1} << 28;

/// The one number in an integer input.
int64_t scalar_input(const Call& c, size_t i) {
  c.require(c.in(i).elements() == 1, "an input that should be one number is not");
  return c.in(i).to_ints()[0];
}

/// The transformed axis: never the last one, which holds the parts of complex numbers.
template <typename Context>
size_t signal_axis(const Context& c, int64_t axis, size_t rank) {
  const auto axes = checked_axes(c, {axis}, rank);
  if (rank < 2 || axes[0] + 1 == rank)
    c.fail("axis " + std::to_string(axis) + " holds real and imaginary parts");
  return axes[0];
}

void infer_dft(Inference& c) {
  c.set(0, c.dtype(0));
  const auto& attrs = c.attrs<Dft>();
  Dims out = c.shape(0);
  const bool to_real = attrs.inverse && attrs.onesided;
  std::optional<std::vector<int64_t>> axis = std::vector<int64_t>{-2};
  if (c.has(2)) axis = c.known_ints(2);
  if (!axis || axis->size() != 1) {
    for (Dim& dim : out) dim = c.fresh();
    return c.set(0, c.dtype(0), out);
  }
  Dim& size = out[signal_axis(c, axis->front(), out.size())];
  if (c.has(1)) {
    const auto length = c.known(1);
    size = length && length->size() == 1 ? length->front() : c.fresh();
  } else if (to_real) {
    size = (size - 1) * 2;
  }
  if (attrs.onesided && !attrs.inverse) size = floordiv(size, 2) + 1;
  out.back() = to_real ? 1 : 2;
  c.set(0, c.dtype(0), out);
}

/// One line of a signal as complex numbers; the second half of a one-sided spectrum is the mirrored
/// conjugate.
struct Line {
  std::vector<Complex> values;

  Line(const double* from, int64_t count, int64_t step, int64_t parts, size_t length)
      : values(length, 0) {
    const auto used = std::min(static_cast<int64_t>(length), count);
    for (int64_t i = 0; i < used; ++i)
      values[static_cast<size_t>(i)] = {from[i * step], parts == 2 ? from[i * step + 1] : 0};
  }

  void mirror() {
    const size_t length = values.size();
    values[0] = values[0].real();
    for (size_t i = length / 2 + 1; i < length; ++i) values[i] = std::conj(values[length - i]);
    if (length % 2 == 0) values[length / 2] = values[length / 2].real();
  }
};

void dft(Call& c) {
  const Tensor& x = c.in(0);
  const auto& attrs = c.attrs<Dft>();
  const size_t axis = signal_axis(c, c.has(2) ? scalar_input(c, 2) : -2, x.rank());
  const int64_t parts = x.shape().back(), count = x.shape()[axis];
  c.require(parts == 1 || parts == 2, "the last axis must hold one or two parts");
  const bool to_real = attrs.inverse && attrs.onesided;
  const int64_t length = c.has(1) ? scalar_input(c, 1) : to_real ? 2 * (count - 1) : count;
  if (length < 1 || length > kMaxLength)
    c.fail("the length " + std::to_string(length) + " is out of range");
  const int64_t kept = attrs.onesided && !attrs.inverse ? length / 2 + 1 : length;
  Shape shape = x.shape();
  shape[axis] = kept;
  shape[shape.rank() - 1] = to_real ? 1 : 2;
  Tensor& y = c.out(0, shape);
  const int64_t out_parts = shape.back();
  const int64_t outer = shape.elements(0, axis);
  const int64_t inner = shape.elements(axis + 1, shape.rank() - 1);
  const WideView<double> in(x);
  std::vector<double> out(static_cast<size_t>(y.elements()));
  const Fft fft(static_cast<size_t>(length), attrs.inverse);
  const double scale = attrs.inverse ? 1 / static_cast<double>(length) : 1;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      Line line(in.data() + (o * count * inner + i) * parts, count, inner * parts, parts,
                fft.length());
      if (to_real) line.mirror();
      fft.run(line.values.data());
      double* to = out.data() + (o * kept * inner + i) * out_parts;
      for (int64_t k = 0; k < kept; ++k) {
        const Complex value = line.values[static_cast<size_t>(k)] * scale;
        to[k * inner * out_parts] = value.real();
        if (out_parts == 2) to[k * inner * out_parts + 1] = value.imag();
      }
    }
  store_wide<double>(y, 0, out.data(), y.elements());
}

/// The axis was an attribute in opset 17.
Values import_dft_17(OnnxImport& x) {
  const int64_t axis = x.integer("axis", 1);
  return x.emit(x.attrs<Dft>(), {x.input(0), x.input(1), x.constant(Tensor::scalar(axis))});
}

OnnxNode export_dft_17(const Node& node, int64_t opset) {
  OnnxNode out = export_plainly(node, opset);
  int64_t axis = -2;
  if (node.has(2)) {
    const Tensor* given = node.in[2]->constant();
    if (!given || given->elements() != 1) no_form(node, "an axis known only later", opset, 20);
    axis = given->to_ints()[0];
  }
  out.in.resize(2);
  out.attributes.emplace_back("axis", axis);
  return out;
}

void infer_stft(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& in = c.shape(0);
  c.require(in.size() == 3, "the signal is not [batch, samples, parts]");
  std::optional<Dim> length = in[1];
  if (c.has(3)) {
    const auto known = c.known(3);
    length = known && known->size() == 1 ? std::optional<Dim>(known->front()) : std::nullopt;
  } else if (c.has(2)) {
    length = c.ranked(2) && c.rank(2) == 1 ? std::optional<Dim>(c.shape(2)[0]) : std::nullopt;
  }
  const auto step = c.known(1);
  Dim frames, bins;
  if (length && step && step->size() == 1) {
    c.require(!step->front().is_constant() || *step->front().constant() > 0,
              "the step is not positive");
    frames = floordiv(in[1] - *length, step->front()) + 1;
  } else {
    frames = c.fresh();
  }
  bins = !length ? c.fresh() : c.attrs<Stft>().onesided ? floordiv(*length, 2) + 1 : *length;
  c.set(0, c.dtype(0), {in[0], frames, bins, 2});
}

void stft(Call& c) {
  const Tensor& x = c.in(0);
  c.require(x.rank() == 3, "the signal is not [batch, samples, parts]");
  const int64_t samples = x.shape()[1], parts = x.shape()[2];
  c.require(parts == 1 || parts == 2, "the last axis must hold one or two parts");
  const int64_t step = scalar_input(c, 1);
  int64_t length = samples;
  if (c.has(2)) length = c.in(2).elements();
  if (c.has(3)) length = scalar_input(c, 3);
  if (step < 1 || length < 1 || length > samples)
    c.fail("frames of " + std::to_string(length) + " at a step of " + std::to_string(step) +
           " do not fit " + std::to_string(samples) + " samples");
  std::vector<double> window(static_cast<size_t>(length), 1);
  if (c.has(2)) {
    window = to_wide<double>(c.in(2));
    c.require(std::ssize(window) <= length, "the window is longer than a frame");
    window.resize(static_cast<size_t>(length), 0);
  }
  const int64_t frames = (samples - length) / step + 1;
  const int64_t bins = c.attrs<Stft>().onesided ? length / 2 + 1 : length;
  Tensor& y = c.out(0, Shape{x.shape()[0], frames, bins, 2});
  const WideView<double> in(x);
  std::vector<double> out(static_cast<size_t>(bins * 2));
  const Fft fft(static_cast<size_t>(length), false);
  for (int64_t row = 0; row < x.shape()[0] * frames; ++row) {
    const int64_t start = row / frames * samples + row % frames * step;
    Line line(in.data() + start * parts, length, parts, parts, fft.length());
    for (size_t i = 0; i < window.size(); ++i) line.values[i] *= window[i];
    fft.run(line.values.data());
    for (size_t k = 0; k < static_cast<size_t>(bins); ++k) {
      out[2 * k] = line.values[k].real();
      out[2 * k + 1] = line.values[k].imag();
    }
    store_wide<double>(y, row * bins * 2, out.data(), bins * 2);
  }
}

/// Cuts or fills the end of an axis with zeros.
Value* fitted(Graph& g, Value* x, size_t axis, int64_t from, int64_t to) {
  if (from == to) return x;
  std::vector<int64_t> pads(2 * x->type.shape->size(), 0);
  pads[pads.size() / 2 + axis] = to - from;
  return g.add(Pad{}, {x, ints(g, pads)});
}

/// The real parts only.
Value* real_part(Graph& g, Value* x) {
  return g.add(Slice{}, {x, ints(g, {0}), ints(g, {1}), ints(g, {-1})});
}

/// What a transform along an axis is made of; only for sizes that are known.
struct Transform {
  size_t axis;
  int64_t count, length, parts;
  bool inverse, onesided;
};

/// The gradient of the input from that of the output: a transform in the other direction.
Value* transposed(Graph& g, const Transform& t, Value* dy) {
  Value* axis = g.add_constant(Tensor::scalar(static_cast<int64_t>(t.axis)));
  const auto length = static_cast<double>(t.length);
  const int64_t half = t.length / 2 + 1;
  Value* dx = nullptr;
  int64_t have = t.length;
  if (t.inverse && t.onesided) {
    // Numbers in the middle of the spectrum stand for two.
    dx = g.add(Dft{.onesided = true}, {dy, nullptr, axis});
    Shape form;
    for (size_t i = t.axis; i < dx->type.shape->size(); ++i) form.push_back(1);
    form[0] = have = half;
    std::vector<double> weights(static_cast<size_t>(half), 2 / length);
    weights.front() = 1 / length;
    if (t.length % 2 == 0) weights.back() = 1 / length;
    Tensor tensor(dy->type.dtype, form);
    store_wide(tensor, 0, weights.data(), half);
    dx = g.add(Mul{}, {dx, g.add_constant(tensor)});
  } else {
    dy = fitted(g, dy, t.axis, t.onesided ? half : t.length, t.length);
    const Term turned(g, g.add(Dft{.inverse = !t.inverse}, {dy, nullptr, axis}));
    dx = turned * (t.inverse ? 1 / length : length);
  }
  if (t.parts == 1) dx = real_part(g, dx);
  return fitted(g, dx, t.axis, have, t.count);
}

int64_t known_size(const Node& n, const Dim& size) {
  if (!size.is_constant()) no_gradient(n, "the signal's size is not known");
  return *size.constant();
}
int64_t known_number(const Node& n, const Value* value) {
  const auto known = value->known();
  if (!known || known->size() != 1) no_gradient(n, "its length, step or axis is not known");
  return known_size(n, known->front());
}

Values gradient_dft(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<Dft>();
  const size_t rank = rank_for_gradient(n, n.in[0]);
  const Dims& x = *n.in[0]->type.shape;
  const size_t axis = normalize_axis(n.has(2) ? known_number(n, n.in[2]) : -2, rank);
  const int64_t count = known_size(n, x[axis]);
  const int64_t whole = attrs.inverse && attrs.onesided ? 2 * (count - 1) : count;
  const int64_t length = n.has(1) ? known_number(n, n.in[1]) : whole;
  return {transposed(
      g, {axis, count, length, known_size(n, x.back()), attrs.inverse, attrs.onesided}, dy[0])};
}

Values gradient_stft(Graph& g, const Node& n, std::span<Value* const> dy) {
  rank_for_gradient(n, n.in[0]);
  const Dims& x = *n.in[0]->type.shape;
  const int64_t samples = known_size(n, x[1]), step = known_number(n, n.in[1]);
  int64_t length = samples;
  if (n.has(2)) length = known_size(n, n.in[2]->type.shape->at(0));
  if (n.has(3) && known_number(n, n.in[3]) != length) {
    if (n.has(2)) no_gradient(n, "the window is shorter than a frame");
    length = known_number(n, n.in[3]);
  }
  const int64_t frames = (samples - length) / step + 1;
  const Transform transform{2, length, length, known_size(n, x[2]), false, n.as<Stft>()->onesided};
  Value* slopes = transposed(g, transform, dy[0]);
  if (n.has(2)) slopes = g.add(Mul{}, {slopes, g.add(Unsqueeze{}, {n.in[2], ints(g, {1})})});
  Tensor places(DType::i64, Shape{frames, length});
  for (int64_t i = 0; i < places.elements(); ++i)
    places.data<int64_t>()[static_cast<size_t>(i)] = i / length * step + i % length;
  return {g.add(GatherBackward{.axis = 1}, {slopes, g.add_constant(places), sizes_of(g, n.in[0])})};
}

}  // namespace

const Op Dft::op{
    .name = "dft",
    .attrs = &AttrsOf<Dft>::info,
    .infer = infer_dft,
    .reference = dft,
    .gradient = gradient_dft,
    .onnx = {{.type = "DFT",
              .since = 17,
              .until = 19,
              .import = import_dft_17,
              .export_as = export_dft_17},
             {"DFT", 20}},
};

const Op Stft::op{
    .name = "stft",
    .attrs = &AttrsOf<Stft>::info,
    .infer = infer_stft,
    .reference = stft,
    .gradient = gradient_stft,
    .onnx = {{"STFT", 17}},
};

namespace ops {
void define_stft(OpRegistry& registry) {
  registry.add(Dft::op);
  registry.add(Stft::op);
}
}  // namespace ops
}  // namespace dais
