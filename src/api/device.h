#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "dais/precision.h"
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
/// opened before is shared. `precision` says how far its products of f32 may round; throws
/// `unsupported` where that asks the CPU, which was named, for less than the highest.
DeviceChoice choose_device(std::string_view name,
                           MatmulPrecision precision = MatmulPrecision::highest);

/// "highest", "high" or "medium"; throws `invalid_argument` for another name.
MatmulPrecision matmul_precision_from_name(std::string_view name);

/// Makes another device known under this name, which choose_device then takes: a test's. Not while
/// another thread chooses.
using OpenDevice = std::function<std::shared_ptr<Backend>(MatmulPrecision)>;
void offer_device(const std::string& name, OpenDevice open);

/// Why the emulated device cannot be used here; empty: it can.
std::string emulated_problem();

}  // namespace dais
