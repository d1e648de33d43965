#pragma once

/// All of the C++ API for models and devices: dais::Model, Executable, InferenceSession, Tensor,
/// DeviceReader and Error.
#include "base/error.h"
#include "dais/devices.h"
#include "dais/model.h"
#include "ir/tensor.h"
