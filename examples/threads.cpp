// One Executable, several sessions on threads: the weights exist once, each session has its own
// working memory. Usage: threads MODEL.onnx [THREADS], for a model with one f32 picture as input.
#include <dais/dais.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Runs `runs` pictures, each of one grey level, and returns how often the answer changed.
int work(const dais::Executable& executable, int seed, int runs) {
  dais::InferenceSession session = executable.session();
  std::vector<float> pixels(28 * 28);
  // Set once: the view is read at every run, and may be rewritten between runs.
  session.set("image", dais::Tensor::view(dais::DType::f32, {1, 1, 28, 28}, pixels.data()));
  int changes = 0;
  size_t last = 0;
  for (int run = 0; run < runs; ++run) {
    std::fill(pixels.begin(), pixels.end(), static_cast<float>((run + seed) % 10) / 10);
    session.run();
    const auto p = session.get("probability").data<float>();
    const size_t best = static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin());
    changes += run > 0 && best != last;
    last = best;
  }
  return changes;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) return 2;
  const int count = argc > 2 ? std::atoi(argv[2]) : 4;
  // One compute thread per session: several sessions fill the cores better than one wide one.
  const dais::Executable executable = dais::Model::load(argv[1]).compile({.threads = 1});
  std::vector<int> changes(static_cast<size_t>(count));
  std::vector<std::string> errors(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      try {
        changes[static_cast<size_t>(i)] = work(executable, i, 200);
      } catch (const dais::Error& error) {
        errors[static_cast<size_t>(i)] = error.what();
      }
    });
  for (auto& thread : threads) thread.join();
  for (int i = 0; i < count; ++i)
    std::printf("thread %d: the answer changed %d times in 200 runs %s\n", i,
                changes[static_cast<size_t>(i)], errors[static_cast<size_t>(i)].c_str());
  for (const auto& error : errors)
    if (!error.empty()) return 1;
} catch (const dais::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
