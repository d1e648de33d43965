#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/file.h"

namespace dais::data {

/// SHA-256 of bytes that come piece by piece.
class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  void update(Bytes bytes);
  Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Sha256::Digest sha256(Bytes bytes);
std::string hex(const Sha256::Digest& digest);

}  // namespace dais::data
