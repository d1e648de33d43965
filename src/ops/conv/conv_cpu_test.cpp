#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "api/compile.h"
#include "ops/conv/conv.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/elementwise/elementwise.h"
#include "runtime/row_test.h"
#include "runtime/session.h"

namespace dais {
namespace {

/// Pseudo-random values in [-1, 1), the same in each run.
class Noise {
 public:
  Tensor tensor(const Shape& shape) {
    Tensor out(DType::f32, shape);
    for (float& value : out.data<float>()) value = next();
    return out;
  }

 private:
  float next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<float>(static_cast<int32_t>(state_ >> 32)) * 0x1p-31F;
  }
  uint64_t state_ = 88172645463325252ULL;
};

using Build = std::function<Value*(Graph&, Noise&, Value* x)>;

struct Built {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::vector<Datum> inputs;
};

Built build(const std::vector<Shape>& shapes, const Build& body) {
  Built out;
  Noise noise;
  for (const Shape& shape : shapes) {
    const Tensor input = noise.tensor(shape);
    out.graph->add_input(Type::of(input), "x" + std::to_string(out.inputs.size()));
    out.inputs.emplace_back(input);
  }
  Value* y = body(*out.graph, noise, out.graph->inputs[0]);
  out.graph->rename(*y, "y");
  out.graph->outputs.push_back(y);
  return out;
}

constexpr double kUnit = 0x1p-24;  ///< largest relative error of one rounding in f32

/// How far a sum of `count` products of Noise may be off. Products have a variance of 1/9, so the
/// root mean square of the sum before any activation is R = sqrt(count) / 3. The roundings of a
/// chain of multiply-adds, each up to kUnit times the sum so far, add up to kUnit R sqrt(count /
/// 6). Winograd loses 1.7 times as much (docs/decisions/winograd.md), and the largest of some ten
/// thousand values lies below 7 times the root mean square.
double sum_error(double count) {
  return 7 * 1.7 * kUnit * std::sqrt(count / 6) * std::sqrt(count) / 3;
}

/// Of every sum that the graph's convolutions make.
double sums_error(const Graph& graph) {
  double error = 0;
  for (const auto& node : graph.nodes()) {
    if (!node->as<Conv>() && !node->as<ConvTranspose>()) continue;
    const Shape w = *node->in[1]->type.static_shape();
    const auto* turned = node->as<ConvTranspose>();
    const int64_t sums = turned ? w[1] * turned->group : w[0];
    error += sum_error(static_cast<double>(w.elements()) / static_cast<double>(sums));
  }
  return error;
}

/// Runs the graph on reference loops, which sum in f64, and with every pass and kernel. What
/// follows the sums has slopes up to 1.5 (HardSwish) and adds a few roundings of its own.
void expect_same(const std::vector<Shape>& shapes, const Build& body) {
  Built built = build(shapes, body);
  const std::vector<Datum>& inputs = built.inputs;
  CompileOptions options;
  Session tuned(compile(built.graph->clone(), options).plan);
  options.optimize = Optimize::off;
  Session plain(compile(built.graph->clone(), options).plan);
  const Tensor& expected = plain.run(inputs)[0].tensor;
  const Tensor& got = tuned.run(inputs)[0].tensor;
  EXPECT_EQ(got.shape(), expected.shape());
  double largest = 1, difference = 0;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    largest = std::max(largest, std::abs(expected.to_double(i)));
    difference = std::max(difference, std::abs(expected.to_double(i) - got.to_double(i)));
  }
  EXPECT_LE(difference, 1.5 * sums_error(*built.graph) + 8 * kUnit * largest);
  EXPECT_TRUE(tuned.refused_steps().empty());
}

Value* constant(Graph& graph, Noise& noise, const Shape& shape) {
  return graph.add_constant(noise.tensor(shape));
}

Value* scalar(Graph& graph, float value) { return graph.add_constant(Tensor::scalar(value)); }

struct Layer {
  Shape x;
  int64_t out = 16;
  std::vector<int64_t> kernel, pads, strides, dilations;
  int64_t group = 1;
};

Value* convolve(Graph& graph, Noise& noise, Value* x, const Layer& layer) {
  Shape w{layer.out, layer.x[1] / layer.group};
  for (const int64_t size : layer.kernel) w.push_back(size);
  Conv attrs;
  attrs.pads = layer.pads;
  attrs.strides = layer.strides;
  attrs.dilations = layer.dilations;
  attrs.group = layer.group;
  return graph.add(attrs, {x, constant(graph, noise, w), constant(graph, noise, Shape{layer.out})});
}

const Layer kLayers[] = {
    {{1, 16, 9, 11}, 32, {3, 3}, {1, 1, 1, 1}, {}, {}, 1},
    {{2, 16, 9, 11}, 24, {1, 1}, {}, {}, {}, 1},
    {{1, 48, 7, 5}, 64, {1, 1}, {}, {2, 2}, {}, 1},
    {{1, 64, 12, 13}, 64, {3, 3}, {1, 1, 1, 1}, {}, {}, 1},
    {{1, 64, 12, 13}, 64, {3, 3}, {2, 2, 2, 2}, {}, {2, 2}, 1},
    {{1, 64, 12, 13}, 128, {3, 3}, {2, 2, 2, 2}, {}, {2, 2}, 1},
    {{3, 48, 9, 10}, 136, {3, 2}, {1, 0, 2, 1}, {2, 1}, {1, 2}, 1},
    {{1, 128, 14, 9}, 130, {1, 1}, {}, {2, 1}, {}, 1},
    {{1, 3, 15, 17}, 24, {3, 3}, {0, 0, 1, 1}, {2, 2}, {}, 1},
    {{2, 24, 9, 10}, 24, {3, 3}, {1, 1, 1, 1}, {}, {}, 24},
    {{1, 40, 11, 10}, 40, {5, 5}, {2, 2, 2, 2}, {2, 2}, {}, 40},
    {{1, 36, 11, 10}, 36, {3, 3}, {1, 1, 1, 1}, {1, 2}, {}, 36},
    {{1, 12, 9, 9}, 24, {3, 3}, {1, 1, 1, 1}, {}, {}, 3},
    {{1, 8, 20}, 12, {3}, {1, 1}, {}, {}, 1},
    {{1, 4, 5, 6, 7}, 8, {3, 3, 3}, {1, 1, 1, 1, 1, 1}, {}, {}, 1},
};

TEST(ConvCpu, AgreesWithReferenceForWindowsOfEveryKind) {
  for (const Layer& layer : kLayers) {
    SCOPED_TRACE(layer.x.text() + " -> " + std::to_string(layer.out));
    expect_same({layer.x}, [&](Graph& graph, Noise& noise, Value* x) {
      return convolve(graph, noise, x, layer);
    });
  }
}

using Tail = std::function<Value*(Graph&, Noise&, Value* y)>;

Value* channelwise(Graph& graph, Noise& noise, const Value* y) {
  Shape shape;
  shape.resize(y->type.shape->size() - 1);
  shape[0] = *(*y->type.shape)[1].constant();
  return constant(graph, noise, shape);
}

const Tail kTails[] = {
    [](Graph& g, Noise&, Value* y) { return g.add(Relu{}, {y}); },
    [](Graph& g, Noise&, Value* y) { return g.add(LeakyRelu{.alpha = 0.1F}, {y}); },
    [](Graph& g, Noise&, Value* y) {
      return g.add(Clip{}, {y, scalar(g, -0.3F), scalar(g, 0.7F)});
    },
    [](Graph& g, Noise&, Value* y) {
      return g.add(Mul{}, {y, g.add(Sigmoid{}, {y})});
    },
    [](Graph& g, Noise&, Value* y) { return g.add(Sigmoid{}, {y}); },
    [](Graph& g, Noise&, Value* y) { return g.add(Tanh{}, {y}); },
    [](Graph& g, Noise&, Value* y) { return g.add(Elu{.alpha = 0.7F}, {y}); },
    [](Graph& g, Noise&, Value* y) { return g.add(Gelu{}, {y}); },
    [](Graph& g, Noise&, Value* y) { return g.add(HardSigmoid{}, {y}); },
    [](Graph& g, Noise&, Value* y) {
      Value* z = g.add(HardSwish{}, {y});
      return g.add(Add{}, {g.add(Mul{}, {z, scalar(g, 0.9F)}), scalar(g, 0.2F)});
    },
    [](Graph& g, Noise& noise, Value* y) {
      Value* z = g.add(Relu{}, {y});
      z = g.add(Mul{}, {z, channelwise(g, noise, y)});
      return g.add(Relu{}, {g.add(Add{}, {z, channelwise(g, noise, y)})});
    },
    [](Graph& g, Noise& noise, Value* y) {
      return g.add(PRelu{}, {y, channelwise(g, noise, y)});
    },
};

TEST(ConvCpu, AppliesWhatFollowsInItsOrder) {
  for (const Layer& layer : kLayers)
    for (size_t tail = 0; tail < std::size(kTails); ++tail) {
      SCOPED_TRACE(layer.x.text() + " -> " + std::to_string(layer.out) + ", tail " +
                   std::to_string(tail));
      expect_same({layer.x}, [&](Graph& graph, Noise& noise, Value* x) {
        return kTails[tail](graph, noise, convolve(graph, noise, x, layer));
      });
    }
}

TEST(ConvCpu, AddsAnotherBranchBeforeTheActivation) {
  for (const Layer& layer : kLayers) {
    SCOPED_TRACE(layer.x.text() + " -> " + std::to_string(layer.out));
    expect_same({layer.x}, [&](Graph& graph, Noise& noise, Value* x) {
      Value* one = graph.add(Relu{}, {convolve(graph, noise, x, layer)});
      Value* two = convolve(graph, noise, x, layer);
      return graph.add(Relu{}, {graph.add(Add{}, {one, two})});
    });
  }
}

// Whatever of the result's sizes an operand has, and 1 elsewhere.
TEST(ConvCpu, AppliesOperandsOfEveryBroadcast) {
  for (const Layer& layer : kLayers) {
    Graph sizes;
    Noise none;
    Value* x = sizes.add_input(Type::tensor(DType::f32, Dims(layer.x.begin(), layer.x.end())), "x");
    const Shape whole = *convolve(sizes, none, x, layer)->type.static_shape();
    for (unsigned kept = 0; kept < 1U << whole.rank(); ++kept)
      for (const bool product : {false, true}) {
        Shape operand = whole;
        for (size_t axis = 0; axis < whole.rank(); ++axis)
          if (!((kept >> axis) & 1)) operand[axis] = 1;
        SCOPED_TRACE(whole.text() + (product ? " * " : " + ") + operand.text());
        expect_same({layer.x, operand}, [&](Graph& graph, Noise& noise, Value* in) {
          Value* y = convolve(graph, noise, in, layer);
          Value* with = graph.inputs[1];
          return graph.add(Relu{},
                           {product ? graph.add(Mul{}, {y, with}) : graph.add(Add{}, {y, with})});
        });
      }
  }
}

const Layer kDepthwise[] = {
    {{2, 3, 9, 70}, 3, {3, 3}, {1, 1, 1, 1}, {}, {}, 3},
    {{1, 2, 130, 33}, 2, {5, 3}, {2, 0, 1, 2}, {1, 1}, {2, 1}, 2},
    {{1, 4, 11, 10}, 4, {5, 5}, {2, 2, 2, 2}, {2, 2}, {}, 4},
    {{1, 3, 12, 40}, 3, {3, 4}, {1, 2, 1, 1}, {1, 3}, {1, 2}, 3},
    {{1, 2, 6, 300}, 2, {1, 7}, {0, 3, 0, 3}, {}, {}, 2},
    {{1, 3, 2, 2}, 3, {3, 3}, {2, 2, 2, 2}, {2, 2}, {}, 3},
};

TEST(ConvCpu, DepthwisePlanesAgreeWithReference) {
  for (const Layer& layer : kDepthwise) {
    Noise noise;
    Graph graph;
    const Tensor x = noise.tensor(layer.x);
    Value* y = convolve(graph, noise, graph.add_input(Type::of(x), "x"), layer);
    const Node& node = *y->producer();
    const std::vector<Datum> inputs{x, *node.in[1]->constant(), *node.in[2]->constant()};
    EXPECT_GT(check_rows(graph, inputs, {.relative = 1e-5, .absolute = 1e-5}), 1) << layer.x.text();
  }
}

TEST(ConvCpu, DepthwisePlanesApplyWhatFollows) {
  for (const Layer& layer : kDepthwise)
    for (const Tail& tail : kTails)
      expect_same({layer.x}, [&](Graph& graph, Noise& noise, Value* x) {
        return tail(graph, noise, convolve(graph, noise, x, layer));
      });
}

TEST(ConvCpu, TransposedConvolutionAgreesWithReference) {
  struct Case {
    Shape x, w;
    std::vector<int64_t> strides, pads;
    int64_t group;
  };
  const Case cases[] = {{{1, 24, 7, 5}, {24, 24, 2, 2}, {2, 2}, {}, 1},
                        {{2, 24, 7, 5}, {24, 1, 2, 2}, {2, 2}, {}, 1},
                        {{1, 16, 6, 7}, {16, 8, 3, 3}, {2, 2}, {1, 1, 1, 1}, 1},
                        {{1, 16, 6, 7}, {16, 4, 4, 4}, {2, 2}, {1, 1, 1, 1}, 2}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.x.text() + " by " + one.w.text());
    expect_same({one.x}, [&](Graph& graph, Noise& noise, Value* x) {
      ConvTranspose attrs;
      attrs.strides = one.strides;
      attrs.pads = one.pads;
      attrs.group = one.group;
      Value* y = graph.add(attrs, {x, constant(graph, noise, one.w),
                                   constant(graph, noise, Shape{one.w[1] * one.group})});
      return graph.add(Relu{}, {y});
    });
  }
}

TEST(ConvCpu, PacksWeightsThatArriveAtRunTime) {
  expect_same({{1, 4, 3, 3}}, [](Graph& graph, Noise& noise, Value* x) {
    return graph.add(Conv{}, {constant(graph, noise, {1, 4, 8, 9}), x});
  });
}

}  // namespace
}  // namespace dais
