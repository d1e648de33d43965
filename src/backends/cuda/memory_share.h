#pragma once

#include <cstddef>
#include <limits>
#include <string_view>

namespace dais::cuda {

inline constexpr size_t all_memory = std::numeric_limits<size_t>::max();

/// The variable whose list a process keeps to: `dais up` sets it for jobs that got a part of a GPU.
inline constexpr const char* memory_share_variable = "DAIS_GPU_MEMORY";

/// How many bytes of a device a process may take, by a list such as "0.5,10737418240,1": for each
/// visible device, in order, a part of its memory (1: all) or a number of bytes above 1. An empty
/// list limits nothing. Throws invalid_argument for a list that is malformed or does not tell about
/// the device: a limit that cannot be read is not taken for none.
size_t memory_share(std::string_view list, int ordinal, size_t device_bytes);

}  // namespace dais::cuda
