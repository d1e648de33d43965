#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/philox.h"
#include "base/threads.h"
#include "nn/body.h"

// Four elements come from one Philox block of 128 bits: as they are for uniform ones, in pairs by
// the Box-Muller transform for normal ones. A block's counter is the element's index over four; a
// truncated normal element beyond its limits is drawn again from the block 2^40 further on.
namespace dais::nn {
namespace {

constexpr uint64_t kNextTry = uint64_t{1} << 40;
constexpr double kTruncation = 2;
constexpr int64_t kGrain = 1 << 14;

/// In (0, 1).
double unit(uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

uint64_t stream_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

std::array<double, 4> uniform_block(const Philox& random, uint64_t counter) {
  const Philox::Block bits = random.block(counter);
  return {unit(bits[0]), unit(bits[1]), unit(bits[2]), unit(bits[3])};
}

std::array<double, 4> normal_block(const Philox& random, uint64_t counter) {
  const std::array<double, 4> u = uniform_block(random, counter);
  std::array<double, 4> out;
  for (size_t i = 0; i < 4; i += 2) {
    const double radius = std::sqrt(-2 * std::log(u[i]));
    const double angle = 2 * std::numbers::pi * u[i + 1];
    out[i] = radius * std::cos(angle);
    out[i + 1] = radius * std::sin(angle);
  }
  return out;
}

std::array<double, 4> truncated_block(const Philox& random, uint64_t counter) {
  std::array<double, 4> out = normal_block(random, counter);
  for (size_t i = 0; i < 4; ++i)
    for (uint64_t again = counter + kNextTry; std::abs(out[i]) > kTruncation; again += kNextTry)
      out[i] = normal_block(random, again)[i];
  return out;
}

double scale_of(const Init& init, NetworkBody::Fans fans) {
  const double fan = init.fan == Init::Fan::in     ? fans.in
                     : init.fan == Init::Fan::out  ? fans.out
                     : init.fan == Init::Fan::mean ? (fans.in + fans.out) / 2
                                                   : 1;
  return init.scale / std::sqrt(std::max(fan, 1.0));
}

template <typename Block>
void fill_blocks(std::span<float> to, Block&& block) {
  const auto count = static_cast<int64_t>(to.size());
  parallel_for((count + 3) / 4, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const std::array<double, 4> values = block(static_cast<uint64_t>(b));
      for (int64_t i = 4 * b; i < std::min(count, 4 * b + 4); ++i)
        to[static_cast<size_t>(i)] = static_cast<float>(values[static_cast<size_t>(i - 4 * b)]);
    }
  });
}

}  // namespace

void draw(Tensor& tensor, Init init, NetworkBody::Fans fans, uint64_t seed, std::string_view name) {
  const std::span<float> to = tensor.data<float>();
  const double scale = scale_of(init, fans);
  if (init.kind == Init::Kind::constant) {
    std::fill(to.begin(), to.end(), static_cast<float>(init.scale));
    return;
  }
  const Philox random(seed, stream_of(name));
  fill_blocks(to, [&](uint64_t counter) {
    std::array<double, 4> values{};
    switch (init.kind) {
      case Init::Kind::constant: break;
      case Init::Kind::uniform:
        values = uniform_block(random, counter);
        for (double& value : values) value = 2 * value - 1;
        break;
      case Init::Kind::normal: values = normal_block(random, counter); break;
      case Init::Kind::truncated_normal: values = truncated_block(random, counter); break;
    }
    for (double& value : values) value *= scale;
    return values;
  });
}

}  // namespace dais::nn
