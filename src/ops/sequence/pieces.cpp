#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/concat/concat.h"
#include "ops/dims.h"
#include "ops/kept.h"
#include "ops/sequence/sequence.h"
#include "ops/transpose/strided_copy.h"

namespace dais {
namespace {

void infer_split(Inference& c) {
  c.set(0, Type::sequence(Type::tensor(c.dtype(0))));
  Dims piece = c.shape(0);
  const auto& attrs = c.attrs<SplitToSequence>();
  const size_t axis = c.axis(attrs.axis, piece.size());
  if (!c.has(1)) {
    if (attrs.keepdims)
      piece[axis] = 1;
    else
      piece.erase(piece.begin() + static_cast<std::ptrdiff_t>(axis));
  } else {
    const auto sizes = c.known_ints(1);
    const Dim whole = piece[axis];
    piece[axis] = varying();
    // Equal pieces have a size of their own.
    if (sizes && !sizes->empty() && sizes->front() > 0) {
      const bool equal = std::all_of(sizes->begin(), sizes->end(),
                                     [&](int64_t size) { return size == sizes->front(); });
      const bool scalar = c.ranked(1) && c.rank(1) == 0;
      if (equal && c.ranked(1) &&
          (!scalar || (whole.is_constant() && *whole.constant() % sizes->front() == 0)))
        piece[axis] = sizes->front();
    }
  }
  c.set(0, Type::sequence(Type::tensor(c.dtype(0), piece)));
}

/// Sizes of the pieces of an axis.
std::vector<int64_t> piece_sizes(const Call& c, int64_t whole) {
  if (!c.has(1)) return std::vector<int64_t>(static_cast<size_t>(whole), 1);
  const auto given = c.in(1).to_ints();
  std::vector<int64_t> sizes;
  if (c.in(1).rank() == 0) {
    c.require(given[0] > 0, "the size of a piece is not positive");
    for (int64_t at = 0; at < whole; at += sizes.back())
      sizes.push_back(std::min(given[0], whole - at));
    return sizes;
  }
  int64_t left = whole;
  for (int64_t size : given) {
    if (size < 0 || size > left) c.fail("the sizes do not add up to " + std::to_string(whole));
    left -= size;
  }
  c.require(left == 0, "the sizes do not add up to the axis");
  return given;
}

void split(Call& c) {
  const Tensor& x = c.in(0);
  const auto& attrs = c.attrs<SplitToSequence>();
  const size_t axis = normalize_axis(attrs.axis, x.rank());
  const AxisSplit whole = split_axis(x.shape(), axis);
  std::vector<Datum> items;
  int64_t at = 0;
  for (int64_t size : piece_sizes(c, whole.size)) {
    Shape shape = x.shape();
    shape[axis] = size;
    Tensor piece(x.dtype(), shape);
    if (piece.elements() > 0)
      copy_strided({whole.outer, size * whole.inner}, x, at * whole.inner,
                   {whole.size * whole.inner, 1}, piece, 0, {size * whole.inner, 1});
    at += size;
    if (!c.has(1) && !attrs.keepdims) {
      std::vector<int64_t> rest = shape.vector();
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(axis));
      piece = piece.reshaped(Shape(rest));
    }
    items.emplace_back(std::move(piece));
  }
  c.set(0, Datum::sequence(std::move(items)));
}

void infer_concat(Inference& c) {
  const Type element = element_type(c, 0);
  c.set(0, element.dtype);
  const auto& attrs = c.attrs<ConcatFromSequence>();
  if (!element.shape) return;
  Dims out = *element.shape;
  const size_t axis = c.axis(attrs.axis, out.size() + (attrs.new_axis ? 1 : 0));
  if (attrs.new_axis)
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), c.fresh());
  else
    out[axis] = c.fresh();
  c.set(0, element.dtype, out);
}

void concat(Call& c) {
  const auto& attrs = c.attrs<ConcatFromSequence>();
  const auto& items = sequence_items(c, 0);
  c.require(!items.empty(), "the sequence is empty: the result has no shape");
  std::vector<Tensor> parts;
  for (const Datum& item : items) {
    c.require(item.kind == Datum::Kind::tensor, "an element is not a tensor");
    std::vector<int64_t> sizes = item.tensor.shape().vector();
    const size_t axis = normalize_axis(attrs.axis, sizes.size() + (attrs.new_axis ? 1 : 0));
    if (attrs.new_axis) sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    parts.push_back(item.tensor.reshaped(Shape(sizes)));
  }
  Shape shape = parts.front().shape();
  const size_t axis = normalize_axis(attrs.axis, shape.rank());
  shape[axis] = 0;
  std::vector<const Tensor*> pointers;
  for (const Tensor& part : parts) {
    Shape beside = part.shape();
    if (beside.rank() == shape.rank()) beside[axis] = shape[axis];
    if (!(beside == shape) || part.dtype() != parts.front().dtype())
      c.fail("elements " + parts.front().describe() + " and " + part.describe() +
             " do not fit together");
    shape[axis] += part.shape()[axis];
    pointers.push_back(&part);
  }
  concat_into(pointers, axis, c.out(0, parts.front().dtype(), shape));
}

}  // namespace

const Op SplitToSequence::op{
    .name = "split_to_sequence",
    .attrs = &AttrsOf<SplitToSequence>::info,
    .infer = infer_split,
    .reference = split,
    .onnx = {{"SplitToSequence", 11}},
};

const Op ConcatFromSequence::op{
    .name = "concat_from_sequence",
    .attrs = &AttrsOf<ConcatFromSequence>::info,
    .infer = infer_concat,
    .reference = concat,
    .onnx = {{"ConcatFromSequence", 11}},
};

}  // namespace dais
