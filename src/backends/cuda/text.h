#pragma once

#include <span>
#include <string_view>

namespace dais::cuda {

/// A file that is compiled at run time, embedded in the binary.
struct Text {
  std::string_view name;  ///< without a folder: "softmax.cu", "reduce.cuh"
  std::string_view contents;
};

/// All of them; names are unique. The contents end with a zero byte that is not counted.
std::span<const Text> texts();

/// Throws `internal` when there is none of that name.
std::string_view text(std::string_view name);

/// What kernels may include: the names that end in ".cuh".
std::span<const Text> device_headers();

}  // namespace dais::cuda
