#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "onnx/importer.h"
#include "train/optimisers.h"

namespace dais::train {

struct FormOptions {
  std::string freeze;  ///< regular expression; tensors whose name holds a match stay as they are
  uint64_t seed = 0;   ///< of dropout
  bool sync_norms = false;           ///< statistics over the batches of all ranks
  std::map<std::string, Dim> sizes;  ///< numbers for symbolic sizes of the inputs ("batch")
};

/// A network ready for a loss: batch norms use the statistics of their batch, dropouts draw by the
/// step, and what is trained is an input.
struct TrainingForm {
  std::unique_ptr<Graph> graph;        ///< the outputs are the network's
  Values data;                         ///< the network's own inputs, in its order
  Value* step = nullptr;               ///< i64 scalar input: updates done before
  std::vector<StateEntry> parameters;  ///< `after` is not set
  std::vector<StateEntry> statistics;  ///< running means and variances, with their new values
};

/// Names of the tensors of a model that training changes: floating-point initialisers of more than
/// one element that weigh, shift or look up; not running statistics, masks (infinities), sizes and
/// scales of other operators, nor what the file calls fixed (metadata "dais.fixed") or `freeze`
/// matches. Throws `invalid_argument` for a broken expression.
std::set<std::string> trained_names(const onnx::Model& model, const std::string& freeze);

/// Makes the training form of an inference graph. A batch norm whose scale is not trained keeps the
/// statistics of the file. Running statistics follow as PyTorch's do, by the unbiased variance.
TrainingForm training_form(const onnx::Model& model, const FormOptions& options);

/// Puts other elements in the place of a graph's constants, by name; shapes must agree.
void set_constants(Graph& graph, const std::map<std::string, Tensor>& values);

/// Gives the classifier at the end of the network (its last product with a weight matrix) another
/// number of classes, with new weights drawn by the seed. Throws `invalid_argument` when there is
/// none.
void replace_head(onnx::Model& model, int64_t classes, uint64_t seed);

}  // namespace dais::train
