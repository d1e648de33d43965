#include <dais/dais.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) try {
  dais::Model model = dais::Model::load(argc > 1 ? argv[1] : "model.onnx");
  dais::InferenceSession session = model.compile().session();
  std::vector<float> pixels(28 * 28, 0.5f);
  session.set("image", dais::Tensor::view(dais::DType::f32, {1, 1, 28, 28}, pixels.data()));
  session.run();
  for (float p : session.get("probability").data<float>()) std::printf("%.4f\n", p);
} catch (const dais::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
