#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "backends/cuda/precision.h"
#include "runtime/backend.h"

namespace dais {

/// Where models run.
struct DeviceChoice {
  std::shared_ptr<Backend> backend;  ///< null: the CPU
  std::string text;                  ///< "GPU 0, NVIDIA H200", or "CPU" with the reason
};

/// "cpu", "gpu" or "gpu:1", "emulated" (kernels of the GPU on the CPU; no hardware), or "auto": the
/// first GPU when it is usable, else the CPU. Throws `unavailable` with the remedy when the device
/// that was asked for is of no use, and `invalid_argument` for another name. A device that was
/// opened before is shared.
DeviceChoice choose_device(std::string_view name);

/// "highest", "high" or "medium"; throws `invalid_argument` for another name.
MatmulPrecision matmul_precision_from_name(std::string_view name);
/// How far the device's products of f32 may round, in plans made from now on. Libraries use it; the
/// kernels of dais are exact.
void set_matmul_precision(Backend& backend, MatmulPrecision precision);

/// Makes another device known under this name, which choose_device then takes: a test's. Not while
/// another thread chooses.
void offer_device(const std::string& name, std::function<std::shared_ptr<Backend>()> open);

/// Why the emulated device cannot be used here; empty: it can.
std::string emulated_problem();

}  // namespace dais
