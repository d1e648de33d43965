#include "train/crc32c.h"

#include <array>
#include <cstring>

namespace dais::train {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // bits reversed
using Tables = std::array<std::array<uint32_t, 256>, 8>;

/// Table k advances a byte past k further bytes, so that eight bytes go in one step.
constexpr Tables make_tables() {
  Tables out{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    out[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      out[k][byte] = out[k - 1][byte] >> 8 ^ out[0][out[k - 1][byte] & 255];
  return out;
}
constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32c(Bytes bytes, uint32_t before) {
  uint32_t crc = ~before;
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, &bytes[at], 8);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][word >> (8 * k) & 255];
  }
  for (; at < bytes.size(); ++at) crc = crc >> 8 ^ kTables[0][(crc ^ bytes[at]) & 255];
  return ~crc;
}

}  // namespace dais::train
