#pragma once

/// All of the C++ API: dais::Model, Executable, InferenceSession, Tensor and Error.
#include "base/error.h"
#include "dais/model.h"
#include "ir/tensor.h"
