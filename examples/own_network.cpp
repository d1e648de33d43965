#include <dais/dais.h>
#include <dais/nn.h>

#include <cstdio>

namespace nn = dais::nn;

nn::Value block(nn::Value x, int64_t channels) {
  const nn::ConvOptions filter{.kernel = 3, .padding = 1, .bias = false};
  const nn::Value y = relu(batch_norm(conv(x, channels, filter)));
  return relu(x + batch_norm(conv(y, channels, filter)));
}

int main(int argc, char** argv) try {
  nn::Network net("own", /*seed=*/7);
  nn::Value x = relu(conv(net.image(1, 28, 28), 32, {.kernel = 5, .padding = 2}));
  x = max_pool(block(x, 32));
  x = max_pool(block(x, 32));
  net.output("logits", linear(dropout(global_average_pool(x), 0.1), 10));
  net.save(argc > 1 ? argv[1] : "own.onnx");
  std::printf("%lld parameters\n", static_cast<long long>(net.parameter_count()));
} catch (const dais::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
