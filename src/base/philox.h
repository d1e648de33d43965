#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dais {

/// The counter-based generator Philox4x32-10: a pure function of key and counter, so that any
/// element of any stream can be drawn in any order, on any device.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;
  explicit Philox(uint64_t key, uint64_t stream = 0) : key_(key), stream_(stream) {}

  Block block(uint64_t counter) const {
    Block x{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
            static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)};
    auto k0 = static_cast<uint32_t>(key_), k1 = static_cast<uint32_t>(key_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53} * x[0], b = uint64_t{0xCD9E8D57} * x[2];
      x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(a)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return x;
  }

  /// Evenly in [0, 1), with 53 bits.
  double uniform(uint64_t counter) const { return unit(block(counter), 0); }
  /// Of mean 0 and deviation 1.
  double normal(uint64_t counter) const;

 private:
  static double unit(const Block& bits, size_t first) {
    const uint64_t word = (uint64_t{bits[first + 1]} << 32) | bits[first];
    return static_cast<double>(word >> 11) * 0x1p-53;
  }

  uint64_t key_, stream_;
};

}  // namespace dais
