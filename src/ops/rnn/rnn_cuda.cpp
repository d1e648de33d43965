#include <array>

#include "backends/cuda/row.h"
#include "ops/rnn/rnn.h"

namespace dais {
namespace {

constexpr int64_t kMostShared = 48 * 1024;

/// Sizes that the kernel is compiled for; nothing: inference does not know them.
struct Layer {
  int64_t directions, input, hidden;
};
template <typename S>
constexpr int64_t kGates = std::is_same_v<S, LSTM> ? 4 : 3;

template <typename S>
std::optional<Layer> layer_of(const KernelQuery& query) {
  if (!query.in(1).ranked() || !query.in(2).ranked()) return std::nullopt;
  const Dims &w = *query.in(1).shape, &r = *query.in(2).shape;
  if (w.size() != 3 || r.size() != 3) return std::nullopt;
  const auto directions = w[0].constant(), input = w[2].constant(), hidden = r[2].constant();
  if (!directions || !input || !hidden || *input <= 0 || *hidden <= 0) return std::nullopt;
  return Layer{*directions, *input, *hidden};
}

template <typename S>
bool usual_activations(const S& attrs) {
  constexpr bool lstm = std::is_same_v<S, LSTM>;
  static const std::vector<std::string> kUsual =
      lstm ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
           : std::vector<std::string>{"Sigmoid", "Tanh"};
  for (size_t i = 0; i < attrs.activations.size(); ++i)
    if (attrs.activations[i] != kUsual[i % kUsual.size()]) return false;
  return true;
}

template <typename S>
void run(const cuda::RowCall& call) noexcept {
  constexpr bool lstm = std::is_same_v<S, LSTM>;
  const Node& node = call.node;
  const Shape &x = call.sizes.in[0], &w = call.sizes.in[1];
  if (x[1] == 0) return;
  const auto given = [&](size_t i) { return node.has(i) ? call.in(i) : nullptr; };
  const auto wanted = [&](size_t i) { return i < node.outs.size() ? call.out(i) : nullptr; };
  cuda::Grid grid;
  grid.x = cuda::size32(x[1]);
  grid.y = cuda::size32(w[0]);
  grid.threads = 256;
  const int backwards = node.as<S>()->direction == "reverse";
  call.launch(0, grid, call.in(0), call.in(1), call.in(2), given(3), given(5),
              lstm ? given(6) : nullptr, wanted(0), wanted(1), lstm ? wanted(2) : nullptr,
              static_cast<int>(x[0]), backwards);
}

template <typename S>
Verdict accepts(const KernelQuery& query) {
  constexpr bool lstm = std::is_same_v<S, LSTM>;
  const auto& attrs = query.attrs<S>();
  const Node& node = query.node;
  if (attrs.layout != 0) return no("examples come first");
  if (attrs.clip != 0 || !usual_activations(attrs)) return no("activations of its own");
  if (node.has(4)) return no("sequences of different lengths");
  if constexpr (lstm)
    if (attrs.input_forget || node.has(7)) return no("coupled gates or peepholes");
  if (node.outs.size() > (lstm ? 3 : 2)) return no("kept gates are wanted");
  if (const Verdict floats = cuda::accepts_floats(query); !floats) return floats;
  for (size_t i = 1; i < node.in.size(); ++i)
    if (node.has(i) && query.in_dtype(i) != query.in_dtype(0)) return no("element types differ");
  const auto layer = layer_of<S>(query);
  if (!layer) return no("sizes of the weights are unknown");
  const int64_t floats = layer->input + (2 + 2 * kGates<S>)*layer->hidden;
  if (floats * 4 > kMostShared) return no("a state too wide for shared memory");
  return yes();
}

template <typename S>
bool takes(const Node& node, const Sizes& sizes) {
  const Shape &x = sizes.in[0], &w = sizes.in[1], &r = sizes.in[2];
  const int64_t rows = kGates<S> * r[2];
  const Shape state{w[0], x[1], r[2]};
  bool fits = x.rank() == 3 && x[2] == w[2] && w[1] == rows && r[1] == rows && w[0] <= 65535;
  if (node.has(3)) fits = fits && sizes.in[3] == Shape{w[0], 2 * rows};
  for (const size_t i : {5, 6})
    if (node.has(i)) fits = fits && sizes.in[i] == state;
  return fits;
}

template <typename S>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const Layer layer = *layer_of<S>(query);
  bool linear = false;
  if constexpr (std::is_same_v<S, GRU>) linear = query.attrs<S>().linear_before_reset;
  return cuda::make_text_kernel(query,
                                {.text = "rnn.cu",
                                 .options = {cuda::element_option(query.in_dtype(0)),
                                             "-DINPUT=" + std::to_string(layer.input),
                                             "-DHIDDEN=" + std::to_string(layer.hidden),
                                             "-DGATES=" + std::to_string(kGates<S>),
                                             std::string("-DLINEAR=") + (linear ? "1" : "0")},
                                 .kernels = {"recurrent"},
                                 .run = run<S>,
                                 .takes = takes<S>});
}

}  // namespace

namespace ops {
void register_rnn_cuda(Kernels& kernels) {
  kernels.add(
      {.name = "lstm/cuda", .op = &LSTM::op, .accepts = accepts<LSTM>, .prepare = prepare<LSTM>});
  kernels.add(
      {.name = "gru/cuda", .op = &GRU::op, .accepts = accepts<GRU>, .prepare = prepare<GRU>});
}
}  // namespace ops
}  // namespace dais
