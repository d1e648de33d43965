#pragma once

#include <memory>

#include "train/trainer.h"

namespace dais::cli {

/// How a training is shown: a bar that rewrites its line on a terminal, plain lines elsewhere, or
/// one JSON object a line.
std::unique_ptr<train::Reporter> make_train_reporter(bool json);

/// The numbers of an evaluation; with `by_class` also a table of precision and recall.
void print_evaluation(const train::Evaluation& found, const std::vector<std::string>& classes,
                      bool by_class);
std::string evaluation_json(const train::Evaluation& found,
                            const std::vector<std::string>& classes);

}  // namespace dais::cli
