#pragma once

#include <span>
#include <string>
#include <vector>

#include "onnx/importer.h"

namespace dais::train {

/// "'tokens' i64[batch,length], 'mask' ...", for messages.
std::string input_list(std::span<Value* const> inputs);

/// Takes inputs away from a network: each rule is NAME=NUMBER (every element holds it) or
/// NAME=positions (0, 1, 2, … along the last axis). Sizes that are not numbers are those of the
/// same symbol, else of the same axis, of the input that is left. What an imported network wants
/// besides the data (masks, token types, positions) is given so; the trained network keeps it.
/// Throws `invalid_argument` with all that is wrong, and when not exactly one input is left.
void fix_inputs(onnx::Model& model, const std::vector<std::string>& rules);

}  // namespace dais::train
