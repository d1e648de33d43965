#pragma once

#include <set>

#include "ir/graph.h"
#include "onnx/tensor_proto.h"

namespace dais::onnx {

/// A model file turned into a graph, with what else the file says.
struct Model {
  std::unique_ptr<Graph> graph;
  std::vector<std::string> inputs;   ///< names in file order, default inputs among them
  std::vector<std::string> outputs;  ///< names in the file, one per graph output
  std::vector<Type> output_types;    ///< as the file declares them
  /// Initialisers that the file also lists as inputs: constants of the graph, which a caller may
  /// replace by importing again with their names in ImportOptions::overrides.
  std::vector<std::pair<std::string, Tensor>> defaults;
  int64_t ir_version = 0;
  int64_t model_version = 0;
  std::map<std::string, int64_t> opsets;  ///< by domain; "" is ai.onnx
  std::string producer, domain, doc;
  std::map<std::string, std::string> metadata;
  size_t functions = 0;  ///< model-local functions, all inlined
};

struct ImportOptions {
  std::set<std::string> overrides;  ///< default inputs that become real inputs
};

/// The newest ai.onnx opset and the IR versions that are understood.
inline constexpr int64_t kNewestOpset = 28;
inline constexpr int64_t kOldestIr = 3, kNewestIr = 14;

/// The newest opset of a domain that the operators of this build are written for.
int64_t newest_opset(std::string_view domain);

/// Reads a model. Weights stay views of the mapped file where they are aligned. Broken files throw
/// `invalid_model`; a model with operators or features that are not there throws one `unsupported`
/// error that lists all of them.
Model import_model(const std::filesystem::path& path, const ImportOptions& options = {});
/// From memory that `owner` keeps alive (null: tensors are copied). External data is refused.
Model import_model(Bytes bytes, std::shared_ptr<const void> owner = nullptr,
                   const ImportOptions& options = {});

}  // namespace dais::onnx
