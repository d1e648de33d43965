#pragma once

#include "onnx/importer.h"

namespace dais::onnx {

/// Below it, too much of what newer graphs say has no words.
inline constexpr int64_t kOldestWrittenOpset = 13;

struct ExportOptions {
  int64_t opset = kNewestOpset;  ///< of ai.onnx; nodes without a form there are decomposed
  /// Tensors of at least `external_from` bytes go to this file beside the model; empty: none.
  std::string external_file;
  size_t external_from = 1024;
};

/// The model as ONNX bytes; options.external_file must be empty. Values keep their names where ONNX
/// allows it, inputs and outputs always. Throws `unsupported` naming the node when an op has no
/// form at the opset, and when the file would pass the 2 GiB that the format can hold.
std::string export_model(const Model& model, const ExportOptions& options = {});

/// Writes the model (and its external file first), each in one atomic step.
void save_model(const Model& model, const std::filesystem::path& path,
                const ExportOptions& options = {});

/// Replaces every node (regions included) that has no form at the opset by what it decomposes to.
void lower_to_onnx(Graph& graph, int64_t opset);

/// The rule by which an op is written at an opset, or nullptr.
const OnnxRule* export_rule(const Op& op, int64_t opset);

}  // namespace dais::onnx
