#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "onnx/importer.h"

namespace dais::cli {

/// How the user describes a model's inputs, shared by run, bench and compare.
struct InputOptions {
  std::vector<std::string> inputs;  ///< NAME=VALUE
  std::vector<std::string> sizes;   ///< SYMBOL=SIZE for inputs that are drawn
  uint64_t seed = 0;
};

/// The text of `--help` about VALUE.
extern const char* const kInputHelp;

/// One value per graph input. VALUE is file.npy, file.pb, uniform:DIMS[:LO:HI], const:DIMS:V,
/// randint:DIMS:LO:HI or iota:DIMS; the element type is the model's. Inputs that are not named are
/// drawn: floats uniform in 0..1, integers 0 or 1, masks 1, open sizes 1 or as --size says.
/// Throws `invalid_argument` for unknown names (with the nearest), bad values and wrong types.
std::vector<Datum> make_inputs(const onnx::Model& model, const InputOptions& options);

/// Names given as inputs that the file holds as initialisers: to be imported as real inputs.
onnx::ImportOptions import_options(const InputOptions& options);

}  // namespace dais::cli
