#pragma once

#include "cli/command.h"
#include "cli/data_flags.h"
#include "onnx/importer.h"

namespace dais::cli {

/// A network named by its file, or by the folder of its training.
struct ModelChoice {
  std::string path;
  std::string weights = "best";  ///< of a folder: best, last or an update number
};
void add_model_choice(CLI::App& command, ModelChoice& choice);

/// The file as it is; of a folder, its network with the weights of a checkpoint. Throws
/// `not_found` when the folder holds no training or no such checkpoint.
onnx::Model load_choice(const ModelChoice& choice);

/// How to open data for this network: the flags, with what the file says where they say nothing.
data::OpenOptions data_options(const onnx::Model& model, const DataFlags& flags);

/// The scaling that the network was trained with, as its file says, else `otherwise`.
data::Normalise stored_normalise(const onnx::Model& model, const data::Normalise& otherwise);

/// Names of classes that the file holds.
std::vector<std::string> stored_classes(const onnx::Model& model);

}  // namespace dais::cli
