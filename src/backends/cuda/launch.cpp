#include "backends/cuda/launch.h"

#include "backends/cuda/check.h"

namespace dais::cuda {

void launch_raw(CudaQueue& queue, const Function& function, const Grid& grid,
                void** parameters) noexcept {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const DriverApi& driver = queue.device().driver();
  const DriverResult result =
      driver.launch_kernel(function.handle, grid.x, grid.y, grid.z, grid.threads, grid.threads_y,
                           grid.threads_z, grid.shared_bytes, queue.stream(), parameters, nullptr);
  if (result == DriverResult::success) return;
  try {
    check(driver, result, "launching a kernel");
  } catch (...) {
    queue.fail(std::current_exception());
  }
}

}  // namespace dais::cuda
