// Runs a fuzz target without libFuzzer: on its seeds as they are, then on seeds with random damage.
// It finds less than a search led by coverage, but any compiler and any build can do it.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Input = std::vector<uint8_t>;

std::vector<Input> read_seeds(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry);
  std::sort(paths.begin(), paths.end());
  std::vector<Input> seeds;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

/// Cuts, flips, repeats, swaps in bytes that lengths and counts break on, or joins two seeds.
class Damage {
 public:
  explicit Damage(const std::vector<Input>& seeds) : seeds_(seeds) {}

  Input next() {
    Input out = seeds_[below(seeds_.size())];
    for (size_t times = 1 + below(4); times > 0; --times) hurt(out);
    return out;
  }

 private:
  size_t below(size_t end) { return end == 0 ? 0 : random_() % end; }

  void hurt(Input& bytes) {
    constexpr uint8_t kEvil[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    const size_t at = below(bytes.size());
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (bytes.empty() ? 4 : below(6)) {
      case 0: bytes[at] ^= static_cast<uint8_t>(1u << below(8)); break;
      case 1: bytes[at] = kEvil[below(std::size(kEvil))]; break;
      case 2: bytes.resize(at); break;
      case 3: bytes.erase(place, place + std::min<std::ptrdiff_t>(4, bytes.end() - place)); break;
      case 4: bytes.insert(bytes.end(), 1 + below(12), kEvil[below(std::size(kEvil))]); break;
      default: splice(bytes, at);
    }
  }
  void splice(Input& bytes, size_t at) {
    const Input& other = seeds_[below(seeds_.size())];
    const size_t from = below(other.size());
    bytes.resize(at);
    bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
  }

  const std::vector<Input>& seeds_;
  std::mt19937_64 random_{1};  // the same run every time
};

}  // namespace

int main(int argc, char** argv) {
  size_t rounds = 0;
  const std::string_view count = argc == 3 ? argv[2] : "";
  if (std::from_chars(count.data(), count.data() + count.size(), rounds).ec != std::errc()) {
    std::fprintf(stderr, "usage: %s SEEDS ROUNDS\n", argv[0]);
    return 2;
  }
  const auto seeds = read_seeds(argv[1]);
  if (seeds.empty()) return 2;
  for (const Input& seed : seeds) LLVMFuzzerTestOneInput(seed.data(), seed.size());
  Damage damage(seeds);
  for (size_t i = 0; i < rounds; ++i) {
    const Input input = damage.next();
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu seeds, %zu damaged ones\n", seeds.size(), rounds);
  return 0;
}
