#include "ops/reshape/reshape.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/dims.h"
#include "ops/gradient.h"
#include "ops/kept.h"

namespace dais {
namespace {

/// Removes what two lists of factors share, so that a quotient of sizes stays simple.
void cancel(Dims& a, Dims& b) {
  for (auto it = a.begin(); it != a.end();) {
    auto same = std::find(b.begin(), b.end(), *it);
    if (same == b.end()) {
      ++it;
      continue;
    }
    b.erase(same);
    it = a.erase(it);
  }
}

/// What -1 stands for: the input's elements over those of the other sizes.
template <typename Context>
Dim remaining(const Context& c, const Dims& in, const Dims& others, const std::string& clash) {
  Dims top = in, bottom = others;
  cancel(top, bottom);
  const Dim dividend = product(top, 0, top.size()), divisor = product(bottom, 0, bottom.size());
  if (divisor.is(0)) c.fail(clash + ": -1 beside a size of zero has no meaning");
  if (dividend.is_constant() && divisor.is_constant() &&
      *dividend.constant() % *divisor.constant() != 0)
    c.fail(clash);
  return floordiv(dividend, divisor);
}

/// The sizes that a Reshape to `target` gives, with 0 and -1 resolved.
template <typename Context>
Dims reshaped_dims(const Context& c, const Dims& in, const Dims& target, bool allowzero) {
  const std::string clash =
      "a tensor of shape " + dims_text(in) + " cannot take the shape " + dims_text(target);
  Dims out = target, others;
  std::optional<size_t> open;
  for (size_t axis = 0; axis < out.size(); ++axis) {
    if (out[axis].is(-1)) {
      if (open) c.fail(clash + ": -1 may stand once only");
      open = axis;
      continue;
    }
    if (out[axis].is_constant() && *out[axis].constant() < 0)
      c.fail(clash + ": sizes are not negative");
    if (out[axis].is(0) && !allowzero) {
      if (axis >= in.size()) c.fail(clash + ": 0 stands for an axis that the input does not have");
      out[axis] = in[axis];
    }
    others.push_back(out[axis]);
  }
  if (open) {
    out[*open] = remaining(c, in, others, clash);
    return out;
  }
  const Dim before = product(in, 0, in.size()), after = product(out, 0, out.size());
  if (before.is_constant() && after.is_constant() && !(before == after)) c.fail(clash);
  return out;
}
/// Output 0 is input 0 under another shape; its contents stay known.
void set_view(Inference& c, Dims shape) {
  c.set(0, c.dtype(0), std::move(shape));
  if (auto known = c.known(0)) c.set_known(0, *known);
}

void give_view(Call& c, const Dims& dims) { c.set(0, kept(c.in(0)).reshaped(shape_of(dims))); }

void infer_reshape(Inference& c) {
  c.set(0, c.dtype(0));
  if (auto known = c.known(0)) c.set_known(0, *known);
  const auto target = c.known(1);
  if (target) {
    const bool needs_input = std::any_of(target->begin(), target->end(), [&](const Dim& dim) {
      return dim.is(-1) || (dim.is(0) && !c.attrs<Reshape>().allowzero);
    });
    if (!needs_input && !c.ranked(0)) return c.set(0, c.dtype(0), *target);
    return set_view(c, reshaped_dims(c, c.shape(0), *target, c.attrs<Reshape>().allowzero));
  }
  const Dims& sizes = c.shape(1);
  c.require(sizes.size() == 1, "the shape input is not a list");
  if (!sizes[0].is_constant()) return;
  Dims fresh;
  c.require(*sizes[0].constant() <= int64_t{kMaxRank}, "the shape input asks for too many axes");
  for (int64_t i = 0; i < *sizes[0].constant(); ++i) fresh.push_back(c.fresh());
  c.set(0, c.dtype(0), fresh);
}

void reshape(Call& c) {
  const Dims target = dims_of(c.in(1).to_ints());
  give_view(c, reshaped_dims(c, dims_of(c.in(0).shape()), target, c.attrs<Reshape>().allowzero));
}

template <typename Context>
Dims flattened(const Context& c, const Dims& in) {
  const int64_t axis = c.template attrs<Flatten>().axis, rank = static_cast<int64_t>(in.size());
  if (axis < -rank || axis > rank)
    c.fail("axis " + std::to_string(axis) + " is outside a rank-" + std::to_string(rank) +
           " tensor");
  const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  return {product(in, 0, at), product(in, at, in.size())};
}

void infer_flatten(Inference& c) {
  c.set(0, c.dtype(0));
  set_view(c, flattened(c, c.shape(0)));
}

void flatten(Call& c) { give_view(c, flattened(c, dims_of(c.in(0).shape()))); }

template <typename Context>
Dims squeezed(const Context& c, const Dims& in, const std::vector<int64_t>* axes) {
  std::vector<bool> drop(in.size(), false);
  if (axes) {
    for (size_t axis : checked_axes(c, *axes, in.size())) {
      if (in[axis].is_constant() && !in[axis].is(1))
        c.fail("axis " + std::to_string(axis) + " of " + dims_text(in) + " is not of size 1");
      drop[axis] = true;
    }
  } else {
    for (size_t axis = 0; axis < in.size(); ++axis) drop[axis] = in[axis].is(1);
  }
  Dims out;
  for (size_t axis = 0; axis < in.size(); ++axis)
    if (!drop[axis]) out.push_back(in[axis]);
  return out;
}

void infer_squeeze(Inference& c) {
  c.set(0, c.dtype(0));
  if (auto known = c.known(0)) c.set_known(0, *known);
  const Dims& in = c.shape(0);
  if (c.has(1)) {
    if (auto axes = c.known_ints(1)) set_view(c, squeezed(c, in, &*axes));
    return;
  }
  // A symbolic size may turn out to be 1, which would change the rank.
  if (std::all_of(in.begin(), in.end(), [](const Dim& dim) { return dim.is_constant(); }))
    set_view(c, squeezed(c, in, nullptr));
}

void squeeze(Call& c) {
  std::vector<int64_t> axes;
  if (c.has(1)) axes = c.in(1).to_ints();
  give_view(c, squeezed(c, dims_of(c.in(0).shape()), c.has(1) ? &axes : nullptr));
}

template <typename Context>
Dims unsqueezed(const Context& c, const Dims& in, const std::vector<int64_t>& axes) {
  if (in.size() + axes.size() > kMaxRank) c.fail("the output would have too many axes");
  std::vector<bool> added(in.size() + axes.size(), false);
  for (size_t axis : checked_axes(c, axes, added.size())) added[axis] = true;
  Dims out;
  for (size_t axis = 0, from = 0; axis < added.size(); ++axis)
    out.push_back(added[axis] ? Dim(1) : in[from++]);
  return out;
}

void infer_unsqueeze(Inference& c) {
  c.set(0, c.dtype(0));
  if (auto known = c.known(0)) c.set_known(0, *known);
  if (auto axes = c.known_ints(1)) set_view(c, unsqueezed(c, c.shape(0), *axes));
}

void unsqueeze(Call& c) {
  give_view(c, unsqueezed(c, dims_of(c.in(0).shape()), c.in(1).to_ints()));
}

/// Axes were an attribute before opset 13.
template <typename Struct>
Values import_axes(OnnxImport& x) {
  if (!x.attribute("axes")) return x.emit(Struct{}, x.in);
  return x.emit(Struct{}, {x.input(0), x.ints(x.integers("axes"))});
}

Values import_reshape_1(OnnxImport& x) {
  return x.emit(Reshape{}, {x.input(0), x.ints(x.integers("shape"))});
}

Values gradient_view(Graph& g, const Node& n, std::span<Value* const> dy) {
  return {reshape_like(g, dy[0], n.in[0])};
}

}  // namespace

const Op Reshape::op{
    .name = "reshape",
    .attrs = &AttrsOf<Reshape>::info,
    .infer = infer_reshape,
    .reference = reshape,
    .gradient = gradient_view,
    .onnx = {{.type = "Reshape", .since = 1, .until = 4, .import = import_reshape_1},
             {"Reshape", 5}},
    .view = true,
};

const Op Flatten::op{
    .name = "flatten",
    .attrs = &AttrsOf<Flatten>::info,
    .infer = infer_flatten,
    .reference = flatten,
    .gradient = gradient_view,
    .onnx = {{"Flatten"}},
    .view = true,
};

const Op Squeeze::op{
    .name = "squeeze",
    .attrs = &AttrsOf<Squeeze>::info,
    .infer = infer_squeeze,
    .reference = squeeze,
    .gradient = gradient_view,
    .onnx = {{.type = "Squeeze", .since = 1, .until = 12, .import = import_axes<Squeeze>},
             {"Squeeze", 13}},
    .view = true,
};

const Op Unsqueeze::op{
    .name = "unsqueeze",
    .attrs = &AttrsOf<Unsqueeze>::info,
    .infer = infer_unsqueeze,
    .reference = unsqueeze,
    .gradient = gradient_view,
    .onnx = {{.type = "Unsqueeze", .since = 1, .until = 12, .import = import_axes<Unsqueeze>},
             {"Unsqueeze", 13}},
    .view = true,
};

namespace ops {
void define_reshape(OpRegistry& registry) {
  for (const Op* op : {&Reshape::op, &Flatten::op, &Squeeze::op, &Unsqueeze::op, &Expand::op})
    registry.add(*op);
}
}  // namespace ops
}  // namespace dais
