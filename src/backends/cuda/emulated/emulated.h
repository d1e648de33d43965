#pragma once

#include <string>
#include <vector>

#include "backends/cuda/api/driver.h"
#include "backends/cuda/api/nvrtc.h"
#include "backends/cuda/emulated/launch.h"

namespace dais::cuda::emulated {

// A CUDA device that is not hardware: the driver's and NVRTC's entry points, carried out on the
// CPU. Kernels are compiled by g++ and every CUDA thread runs; device memory is the host's, between
// red zones. Work is done when it is asked for, so that streams never overlap and events have
// always happened. There is one device per process; any thread may call.

/// Tables to use in place of those of the system. Valid until the process ends.
const DriverApi& driver_api();
const NvrtcApi& nvrtc_api();

/// "emulated device (not hardware)"
inline constexpr const char* kDeviceName = "emulated device (not hardware)";

/// Whether programs compiled from now on are observed access by access: bounds, alignment, shared
/// memory, traffic. Costs a call for each access. At first true unless DAIS_EMULATED is "fast".
void set_checked(bool checked);
bool checked();

/// Whether launches are recorded, for take_launches(). At first false.
void set_recording(bool recording);
/// The launches since recording began or since the last call.
std::vector<LaunchRecord> take_launches();

/// What was found wrong since the last call, whether or not launches are recorded. After a finding
/// the driver's calls fail, as after a fault of real hardware, until this is called.
std::vector<Finding> take_findings();
/// The same without taking: one line each.
std::string describe_findings();

}  // namespace dais::cuda::emulated
