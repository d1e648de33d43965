// Classifies the test pictures of Fashion-MNIST and says how many were right.
// Usage: accuracy MODEL.onnx PICTURES LABELS, the last two being unpacked idx files.
#include <dais/dais.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

constexpr size_t kPixels = 28 * 28, kClasses = 10, kBatch = 100;

/// The elements behind the header of an idx file.
std::vector<uint8_t> read_idx(const std::string& path, size_t header_bytes) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() < header_bytes)
    throw dais::Error(dais::Code::not_found, "no idx data to read", path);
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header_bytes));
  return bytes;
}

size_t count_right(dais::InferenceSession& session, const std::vector<uint8_t>& pictures,
                   const std::vector<uint8_t>& labels) {
  std::vector<float> batch(kBatch * kPixels);
  session.set("image", dais::Tensor::view(dais::DType::f32, {kBatch, 1, 28, 28}, batch.data()));
  size_t right = 0;
  for (size_t first = 0; first + kBatch <= labels.size(); first += kBatch) {
    for (size_t i = 0; i < batch.size(); ++i)
      batch[i] = static_cast<float>(pictures[first * kPixels + i]) / 255;
    session.run();
    const float* p = session.get("probability").data<float>().data();
    for (size_t i = 0; i < kBatch; ++i, p += kClasses)
      right += std::max_element(p, p + kClasses) - p == labels[first + i];
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) return 2;
  const auto pictures = read_idx(argv[2], 16), labels = read_idx(argv[3], 8);
  if (pictures.size() != labels.size() * kPixels)
    throw dais::Error(dais::Code::invalid_argument, "pictures and labels differ in number");
  dais::InferenceSession session = dais::Model::load(argv[1]).compile().session();
  const auto start = std::chrono::steady_clock::now();
  const size_t right = count_right(session, pictures, labels);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  const size_t seen = labels.size() / kBatch * kBatch;
  std::printf("%zu of %zu pictures right (%.2f %%), %.0f pictures a second\n", right, seen,
              100.0 * static_cast<double>(right) / static_cast<double>(seen),
              static_cast<double>(seen) / spent.count());
} catch (const dais::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
