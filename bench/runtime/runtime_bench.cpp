// What the session costs beside its kernels. Usage: runtime_bench [overhead|binding|stacked]
// [SECONDS]
//   overhead: a model of ten small nodes; time of a run, of the same kernels called one after the
//             other, and the difference;
//   binding:  a decoder of about 200 nodes whose past grows by one each step: what a run at a new
//             size costs more than one at the same size; and its steps with the caches as states;
//   stacked:  the same with keys and values of a layer in one array, which no row can let grow.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "api/compile.h"
#include "ops/attention/attention.h"
#include "ops/concat/concat.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gather/gather.h"
#include "ops/matmul/matmul.h"
#include "ops/norm/norm.h"
#include "ops/reshape/reshape.h"
#include "ops/softmax/softmax.h"
#include "runtime/session.h"

namespace dais {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Tensor filled(const Shape& shape, float value = 0.125f) {
  Tensor out(DType::f32, shape);
  std::fill_n(out.storage<float>(), out.elements(), value);
  return out;
}

/// Best time of one call of `body`, in microseconds, of many batches.
template <typename Body>
double best_us(double seconds, Body&& body) {
  constexpr int batch = 200;
  double best = 1e9;
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    const auto before = Clock::now();
    for (int i = 0; i < batch; ++i) body();
    best = std::min(best, seconds_since(before) / batch);
  }
  return 1e6 * best;
}

/// Products and softmaxes in turn: no two of them fuse.
std::shared_ptr<const Plan> ten_nodes() {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->add_input(Type::tensor(DType::f32, Dims{1, 8}), "x");
  for (int i = 0; i < 5; ++i) {
    x = graph->add(MatMul{}, {x, graph->add_constant(filled({8, 8}))});
    x = graph->add(Softmax{}, {x});
  }
  graph->outputs = {x};
  CompileOptions options;
  options.threads = 1;
  return compile(std::move(graph), options).plan;
}

/// The plan's kernels bound once, each with memory of its own.
class BareKernels {
 public:
  BareKernels(const Plan& plan, const Tensor& input) {
    std::vector<Tensor> held(plan.slots().size());
    for (size_t i = 0; i < held.size(); ++i) {
      const Slot& slot = plan.slots()[i];
      held[i] = slot.value->constant()           ? *slot.value->constant()
                : slot.kind == Slot::Kind::input ? input
                                                 : filled(*slot.value->type.static_shape());
    }
    for (const Step& step : plan.steps()) {
      calls_.emplace_back();
      Call& call = calls_.back();
      std::vector<Shape> in, out;
      for (const int slot : step.in) {
        in.push_back(held[static_cast<size_t>(slot)].shape());
        call.in.push_back(held[static_cast<size_t>(slot)].raw());
      }
      for (const int slot : step.out) {
        out.push_back(held[static_cast<size_t>(slot)].shape());
        call.out.push_back(held[static_cast<size_t>(slot)].raw());
      }
      call.kernel = step.kernel->bind({in, out});
      call.scratch = Tensor(
          DType::u8, {std::max<int64_t>(64, static_cast<int64_t>(call.kernel->scratch_bytes()))});
    }
    memory_ = std::move(held);
  }

  void run() {
    for (Call& call : calls_) call.kernel->run({call.in, call.out, call.scratch.raw()});
  }

 private:
  struct Call {
    std::unique_ptr<BoundKernel> kernel;
    std::vector<const void*> in;
    std::vector<void*> out;
    Tensor scratch;
  };
  std::vector<Call> calls_;
  std::vector<Tensor> memory_;
};

void overhead(double seconds) {
  const auto plan = ten_nodes();
  Session session(plan);
  const std::vector<Datum> inputs{filled({1, 8})};
  session.run(inputs);
  BareKernels bare(*plan, inputs[0].tensor);
  const double whole = best_us(seconds, [&] { session.run(inputs); });
  const double kernels = best_us(seconds, [&] { bare.run(); });
  std::printf("%zu steps: run %.2f us, kernels %.2f us, overhead %.2f us\n", plan->steps().size(),
              whole, kernels, whole - kernels);
}

/// `layers` transformer layers of width 32.
std::shared_ptr<const Plan> decoder(int layers, bool states, bool stacked = false) {
  constexpr int64_t width = 32, heads = 4;
  auto graph = std::make_unique<Graph>();
  CompileOptions options;
  options.threads = 1;
  const Dim past = Dim::symbol("past");
  Value* x = graph->add_input(Type::tensor(DType::f32, Dims{1, 1, width}), "x");
  const auto weight = [&](int64_t rows, int64_t columns) {
    return graph->add_constant(filled({rows, columns}, 1.0f / static_cast<float>(rows)));
  };
  const auto scale = [&] { return graph->add_constant(filled({width})); };
  Values presents;
  for (int layer = 0; layer < layers; ++layer) {
    Value* normed = graph->add(LayerNormalization{}, {x, scale(), scale()});
    Values in;
    for (int i = 0; i < 3; ++i) in.push_back(graph->add(MatMul{}, {normed, weight(width, width)}));
    in.push_back(nullptr);
    const auto add_past = [&](const Dims& dims, size_t output) {
      Value* value = graph->add_input(Type::tensor(DType::f32, dims), {});
      if (states) options.states.push_back({graph->inputs.size() - 1, output});
      return value;
    };
    const Dims dims{1, heads, past, width / heads};
    if (stacked) {
      Value* both = add_past({2, 1, heads, past, width / heads}, 1 + presents.size());
      for (const int64_t i : {0, 1})
        in.push_back(graph->add(Gather{}, {both, graph->add_constant(Tensor::scalar(i))}));
    } else {
      for (size_t i : {0, 1}) in.push_back(add_past(dims, 1 + presents.size() + i));
    }
    const Attention attention{.is_causal = true, .kv_num_heads = heads, .q_num_heads = heads};
    const Values outs = graph->add_node(attention, in, 3).outs;
    if (stacked) {
      Values parts;
      for (size_t i : {1, 2})
        parts.push_back(
            graph->add(Unsqueeze{}, {outs[i], graph->add_constant(Tensor::of<int64_t>({1}, {0}))}));
      presents.push_back(graph->add(Concat{.axis = 0}, parts));
    } else {
      presents.insert(presents.end(), {outs[1], outs[2]});
    }
    x = graph->add(Add{}, {x, graph->add(MatMul{}, {outs[0], weight(width, width)})});
    normed = graph->add(LayerNormalization{}, {x, scale(), scale()});
    Value* wide = graph->add(MatMul{}, {normed, weight(width, 4 * width)});
    Value* soft = graph->add(Softmax{}, {wide});
    x = graph->add(Add{}, {x, graph->add(MatMul{}, {soft, weight(4 * width, width)})});
  }
  graph->outputs = {x};
  graph->outputs.insert(graph->outputs.end(), presents.begin(), presents.end());
  return compile(std::move(graph), options).plan;
}

void binding(double seconds) {
  constexpr int64_t first = 64, steps = 200;
  const auto plan = decoder(21, false);
  std::vector<float> cache(static_cast<size_t>(4 * (first + steps) * 8), 0.125f);
  const Tensor x = filled({1, 1, 32});
  const auto inputs_of = [&](int64_t past) {
    std::vector<Datum> inputs{x};
    const Tensor view = Tensor::view(DType::f32, {1, 4, past, 8}, cache.data());
    inputs.resize(1 + 2 * 21, view);
    return inputs;
  };
  std::vector<std::vector<Datum>> sizes;
  for (int64_t i = 0; i < steps; ++i) sizes.push_back(inputs_of(first + i));
  const auto kept = decoder(21, true);
  double growing = 1e9, still = 1e9, with_states = 1e9;
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    Session session(plan);
    for (int i = 0; i < 3; ++i) session.run(sizes[steps / 2]);
    auto before = Clock::now();
    for (int64_t i = 0; i < steps; ++i) session.run(sizes[steps / 2]);
    still = std::min(still, seconds_since(before) / steps);
    before = Clock::now();
    for (const auto& inputs : sizes) session.run(inputs);
    growing = std::min(growing, seconds_since(before) / steps);
    Session decode(kept);
    std::vector<Datum> inputs = inputs_of(first);
    for (const StateSlot& state : kept->states())
      decode.reserve_state(state.pair.input, first + steps + 1);
    decode.run(inputs);
    std::fill(inputs.begin() + 1, inputs.end(), Datum());
    before = Clock::now();
    for (int64_t i = 0; i < steps; ++i) decode.run(inputs);
    with_states = std::min(with_states, seconds_since(before) / steps);
  }
  const double count = static_cast<double>(plan->steps().size());
  std::printf(
      "%.0f steps: same size %.1f us, new size each time %.1f us, binding %.1f us per 200 steps; "
      "caches as states, new size each time: %.1f us\n",
      count, 1e6 * still, 1e6 * growing, 1e6 * (growing - still) * 200 / count, 1e6 * with_states);
}

/// Steps of a decoder whose past grows by one, with its caches handed in and as states.
void stacked(double seconds) {
  constexpr int64_t first = 64, steps = 200;
  constexpr size_t layers = 21;
  // Each layer has its own, as in use: they do not stay in the nearest cache.
  constexpr size_t each = 2 * 4 * (first + steps) * 8;
  std::vector<float> caches(layers * each, 0.125f);
  const Tensor x = filled({1, 1, 32});
  const auto inputs_of = [&](int64_t past) {
    std::vector<Datum> inputs{x};
    for (size_t i = 0; i < layers; ++i)
      inputs.emplace_back(Tensor::view(DType::f32, {2, 1, 4, past, 8}, caches.data() + i * each));
    return inputs;
  };
  const auto plain = decoder(static_cast<int>(layers), false, true);
  const auto kept = decoder(static_cast<int>(layers), true, true);
  double handed = 1e9, with_states = 1e9;
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    Session session(plain), decode(kept);
    std::vector<Datum> inputs = inputs_of(first);
    session.run(inputs);
    decode.run(inputs);
    auto before = Clock::now();
    for (int64_t i = 0; i < steps; ++i) session.run(inputs_of(first + i));
    handed = std::min(handed, seconds_since(before) / steps);
    std::fill(inputs.begin() + 1, inputs.end(), Datum());
    before = Clock::now();
    for (int64_t i = 0; i < steps; ++i) decode.run(inputs);
    with_states = std::min(with_states, seconds_since(before) / steps);
  }
  std::printf("stacked caches, new size each time: handed in %.1f us, as states %.1f us\n",
              1e6 * handed, 1e6 * with_states);
}

}  // namespace
}  // namespace dais

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1;
  if (what.empty() || what == "overhead") dais::overhead(seconds);
  if (what.empty() || what == "binding") dais::binding(seconds);
  if (what.empty() || what == "stacked") dais::stacked(seconds);
}
