#include "ops/einsum/einsum.h"

#include <algorithm>
#include <map>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/einsum/equation.h"
#include "ops/gradient.h"
#include "ops/reshape/reshape.h"
#include "ops/strided.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.require(c.inputs() > 0, "there are no inputs");
  c.set(0, c.dtype(0));
  std::vector<size_t> ranks;
  for (size_t i = 0; i < c.inputs(); ++i) ranks.push_back(c.rank(i));
  EinsumEquation equation;
  const std::string problem = parse_einsum(c.attrs<Einsum>().equation, ranks, equation);
  if (!problem.empty()) c.fail(problem);
  std::map<int, Dim> sizes;
  for (size_t i = 0; i < c.inputs(); ++i)
    for (size_t axis = 0; axis < ranks[i]; ++axis) {
      const Dim& size = c.shape(i)[axis];
      auto [place, fresh] = sizes.emplace(equation.terms[i][axis], size);
      if (!fresh) place->second = c.broadcast({place->second}, {size})[0];
    }
  Dims out;
  for (int label : equation.result) out.push_back(sizes.at(label));
  c.set(0, c.dtype(0), out);
}

/// A tensor with a label for each axis.
template <typename W>
struct Labelled {
  std::vector<int> labels;
  Shape shape;
  std::vector<W> values;

  /// Steps along each label; a repeated one walks the diagonal. Axes of size 1 do not move.
  std::map<int, int64_t> steps() const {
    std::map<int, int64_t> out;
    const Shape strides = strides_of(shape);
    for (size_t axis = 0; axis < labels.size(); ++axis)
      out[labels[axis]] += shape[axis] == 1 ? 0 : strides[axis];
    return out;
  }
};

using Sizes = std::map<int, int64_t>;

template <typename W>
void collect_sizes(const Call& c, const Labelled<W>& tensor, Sizes& sizes) {
  for (size_t axis = 0; axis < tensor.labels.size(); ++axis) {
    auto [place, fresh] = sizes.emplace(tensor.labels[axis], tensor.shape[axis]);
    if (fresh || place->second == tensor.shape[axis] || tensor.shape[axis] == 1) continue;
    if (place->second != 1)
      c.fail("one index stands for the sizes " + std::to_string(place->second) + " and " +
             std::to_string(tensor.shape[axis]));
    place->second = tensor.shape[axis];
  }
}

/// Σ a·b over the labels that `result` leaves out.
template <typename W>
Labelled<W> contract(const Labelled<W>& a, const Labelled<W>& b, const std::vector<int>& result,
                     const Sizes& sizes) {
  Labelled<W> out{result, {}, {}};
  for (int label : result) out.shape.push_back(sizes.at(label));
  out.values.assign(static_cast<size_t>(out.shape.elements()), W{});
  std::vector<int> labels = result;
  for (const auto* side : {&a.labels, &b.labels})
    for (int label : *side)
      if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
  const auto out_steps = out.steps(), a_steps = a.steps(), b_steps = b.steps();
  Shape space;
  std::array<Strides, 3> strides{};
  auto step = [](const std::map<int, int64_t>& steps, int label) {
    auto found = steps.find(label);
    return found == steps.end() ? 0 : found->second;
  };
  for (size_t axis = 0; axis < labels.size(); ++axis) {
    space.push_back(sizes.at(labels[axis]));
    strides[0][axis] = step(out_steps, labels[axis]);
    strides[1][axis] = step(a_steps, labels[axis]);
    strides[2][axis] = step(b_steps, labels[axis]);
  }
  const StridedLoop<3> loop(space, strides);
  loop.rows([&](const std::array<int64_t, 3>& at) {
    W* to = out.values.data() + at[0];
    const W *x = a.values.data() + at[1], *y = b.values.data() + at[2];
    for (int64_t i = 0; i < loop.size(); ++i)
      to[i * loop.step(0)] += x[i * loop.step(1)] * y[i * loop.step(2)];
  });
  return out;
}

/// Labels of a and b that the result or a later term still needs.
std::vector<int> needed_later(const EinsumEquation& equation, size_t next,
                              const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> later = equation.result, out;
  for (size_t i = next; i < equation.terms.size(); ++i)
    later.insert(later.end(), equation.terms[i].begin(), equation.terms[i].end());
  for (const auto* side : {&a, &b})
    for (int label : *side)
      if (std::find(later.begin(), later.end(), label) != later.end() &&
          std::find(out.begin(), out.end(), label) == out.end())
        out.push_back(label);
  return out;
}

template <typename W>
Labelled<W> evaluate(const Call& c, const EinsumEquation& equation) {
  Sizes sizes;
  auto load = [&](size_t i) {
    return Labelled<W>{equation.terms[i], c.in(i).shape(), to_wide<W>(c.in(i))};
  };
  for (size_t i = 0; i < c.inputs(); ++i)
    collect_sizes(c, Labelled<W>{equation.terms[i], c.in(i).shape(), {}}, sizes);
  Labelled<W> whole = load(0);
  const Labelled<W> one{{}, {}, {W{1}}};
  if (c.inputs() == 1) return contract(whole, one, equation.result, sizes);
  for (size_t i = 1; i < c.inputs(); ++i) {
    const auto keep = i + 1 == c.inputs()
                          ? equation.result
                          : needed_later(equation, i + 1, whole.labels, equation.terms[i]);
    whole = contract(whole, load(i), keep, sizes);
  }
  return whole;
}

void reference(Call& c) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < c.inputs(); ++i) ranks.push_back(c.in(i).rank());
  EinsumEquation equation;
  const std::string problem = parse_einsum(c.attrs<Einsum>().equation, ranks, equation);
  if (!problem.empty()) c.fail(problem);
  auto give = [&]<typename W>() {
    const Labelled<W> result = evaluate<W>(c, equation);
    Tensor& y = c.out(0, result.shape);
    store_wide<W>(y, 0, result.values.data(), y.elements());
  };
  if (is_integer(c.in(0).dtype()))
    give.template operator()<int64_t>();
  else
    give.template operator()<double>();
}

Cost cost(const Node& node) {
  // Every index once, two operations for each input after the first.
  Cost out;
  std::vector<size_t> ranks;
  for (const Value* value : node.in) {
    if (!value || !value->type.shape) return out;
    ranks.push_back(value->type.shape->size());
  }
  EinsumEquation equation;
  if (!parse_einsum(node.as<Einsum>()->equation, ranks, equation).empty()) return out;
  std::map<int, double> sizes;
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t axis = 0; axis < ranks[i]; ++axis)
      if (const auto size = (*node.in[i]->type.shape)[axis].constant())
        sizes[equation.terms[i][axis]] = static_cast<double>(*size);
  out.flops = 2;
  for (const auto& [label, size] : sizes) out.flops *= size;
  return out;
}

/// One letter for each label.
std::string letters(const std::vector<int>& labels, const std::vector<int>& all) {
  std::string out;
  for (const int label : labels) {
    const auto at = std::find(all.begin(), all.end(), label) - all.begin();
    out += static_cast<char>(at < 26 ? 'a' + at : 'A' + (at - 26));
  }
  return out;
}

bool contains(const std::vector<int>& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// The gradient of one operand: the sum of products of dy and all other operands. Indices that only
/// this operand has were summed over, so that its gradient repeats along them.
Value* gradient_of(Graph& g, const Node& n, const EinsumEquation& e, const std::vector<int>& all,
                   size_t operand, Value* dy) {
  const auto& term = e.terms[operand];
  Values in{dy};
  std::string equation = letters(e.result, all);
  std::vector<int> seen = e.result, kept;
  for (size_t i = 0; i < e.terms.size(); ++i) {
    if (i == operand) continue;
    in.push_back(n.in[i]);
    equation += "," + letters(e.terms[i], all);
    seen.insert(seen.end(), e.terms[i].begin(), e.terms[i].end());
  }
  std::vector<int64_t> lone;
  for (size_t axis = 0; axis < term.size(); ++axis) {
    if (contains(kept, term[axis])) no_gradient(n, "an index is repeated within one operand");
    if (contains(seen, term[axis]))
      kept.push_back(term[axis]);
    else
      lone.push_back(static_cast<int64_t>(axis));
  }
  Value* out = g.add(Einsum{equation + "->" + letters(kept, all)}, in);
  if (!lone.empty()) out = g.add(Unsqueeze{}, {out, ints(g, lone)});
  // Sizes of 1 stood for larger ones of other operands.
  if (lone.empty()) out = reduce_to(g, out, n.in[operand]);
  return expand_like(g, out, n.in[operand]);
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  std::vector<size_t> ranks;
  for (const Value* value : n.in) ranks.push_back(rank_for_gradient(n, value));
  EinsumEquation equation;
  parse_einsum(n.as<Einsum>()->equation, ranks, equation);
  std::vector<int> all;
  for (const auto& term : equation.terms)
    for (const int label : term)
      if (!contains(all, label)) all.push_back(label);
  if (all.size() > 52) no_gradient(n, "there are too many indices");
  Values out;
  for (size_t i = 0; i < n.in.size(); ++i)
    out.push_back(gradient_of(g, n, equation, all, i, dy[0]));
  return out;
}

}  // namespace

const Op Einsum::op{
    .name = "einsum",
    .attrs = &AttrsOf<Einsum>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .cost = cost,
    .onnx = {{"Einsum", 12}},
};

namespace ops {
void define_einsum(OpRegistry& registry) { registry.add(Einsum::op); }
}  // namespace ops
}  // namespace dais
