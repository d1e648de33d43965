// A user's program against the installed library: one picture of zeros, whose probabilities must
// sum to one, and an error that can be read.
#include <dais/dais.h>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    dais::InferenceSession session = dais::Model::load(argv[1]).compile().session();
    std::vector<float> pixels(28 * 28);
    session.set("image", dais::Tensor::view(dais::DType::f32, {1, 1, 28, 28}, pixels.data()));
    session.run();
    const auto p = session.get("probability").data<float>();
    const float sum = std::accumulate(p.begin(), p.end(), 0.0f);
    if (p.size() != 10 || std::abs(sum - 1) > 1e-5f) return 1;
  } catch (const dais::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  try {
    dais::Model::load("absent.onnx");
    return 1;
  } catch (const dais::Error& error) {
    return error.code() == dais::Code::not_found ? 0 : 1;
  }
}
