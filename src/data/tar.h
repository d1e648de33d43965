#pragma once

#include <cstdint>
#include <string>

namespace dais::data {

/// The 512 bytes before a file of `size` bytes in a tar archive (ustar). Names below 100 bytes,
/// sizes below 8 GiB.
std::string tar_header(const std::string& name, uint64_t size);

}  // namespace dais::data
