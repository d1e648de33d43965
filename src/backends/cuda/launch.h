#pragma once

#include <array>

#include "backends/cuda/backend.h"

namespace dais::cuda {

/// How many blocks of how many threads.
struct Grid {
  unsigned x = 1, y = 1, z = 1;
  unsigned threads = 1, threads_y = 1, threads_z = 1;
  unsigned shared_bytes = 0;  ///< dynamic, at most what Program::function was asked for
};

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Puts a launch behind the work of a queue; a failure is kept there.
void launch_raw(CudaQueue& queue, const Function& function, const Grid& grid,
                void** parameters) noexcept;

/// Launches a kernel with these parameters, whose types must be exactly those of its declaration.
template <typename... Parameters>
void launch(const Arguments& arguments, const Function& function, const Grid& grid,
            Parameters... parameters) noexcept {
  std::array<void*, sizeof...(Parameters) + 1> pointers{static_cast<void*>(&parameters)...,
                                                        nullptr};
  launch_raw(*static_cast<CudaQueue*>(arguments.queue), function, grid, pointers.data());
}

}  // namespace dais::cuda
