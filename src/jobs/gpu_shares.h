#pragma once

#include <map>
#include <string>
#include <vector>

#include "jobs/request.h"

namespace dais::jobs {

/// What a task has of one of its devices.
struct DeviceShare {
  int device = 0;
  int64_t gpu_milli = 0;
  int64_t gpu_mib = 0;  ///< above 0: it asked for so much memory
};

/// Of each device of a task, in the order in which it sees them.
std::vector<DeviceShare> shares_of(const JobRequest& request, const Placement& placement, int task);

/// What the allocator of dais keeps to (DAIS_GPU_MEMORY), of a task with part of a device.
std::string runtime_limits(const std::vector<DeviceShare>& shares);
/// What MPS keeps each process to (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT), as far as the sizes of the
/// devices are known; empty when there is nothing to limit.
std::string mps_limits(const std::vector<DeviceShare>& shares,
                       const std::map<int, int64_t>& memory_mib);

/// The folder of the control pipe of NVIDIA's MPS daemon; empty when there is none.
std::string mps_pipe_folder();

/// Whether the program of a request, at `path`, is this one, and nothing that the request brings
/// makes it run other code or look at other devices: its own limits hold then.
bool runs_this_program(const std::string& path, const JobRequest& request);

}  // namespace dais::jobs
