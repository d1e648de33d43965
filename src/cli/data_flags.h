#pragma once

#include "cli/command.h"
#include "cli/source_flags.h"
#include "data/loader.h"
#include "ir/graph.h"

namespace dais::cli {

/// Flags that say what the data are and how batches are made of them.
struct DataFlags {
  std::string data, validation;
  double validation_share = 0;
  SourceFlags source;
  data::LoaderOptions loader;
  std::string crop;
  std::vector<float> mean, deviation;
  bool standardise = false;
  std::vector<double> colour;
  int64_t cache_mb = 0;
};

/// Flags about the data themselves: --data, --batch and those of SourceFlags.
void add_data_flags(CLI::App& command, DataFlags& flags);
/// Flags about batches and augmentation, for training.
void add_loader_flags(CLI::App& command, DataFlags& flags);

/// Training and validation samples; `validation` is nullptr when there are none.
struct DataParts {
  data::DatasetPtr training, validation;
  std::string validation_source;  ///< where they come from, for messages
};
/// --val names them, or --val-share splits them off by the seed, or the data have a test part.
DataParts open_parts(const DataFlags& flags, uint64_t seed);

/// Loader options for one part; validation reads everything in order without augmentation.
data::LoaderOptions training_loader(const DataFlags& flags, const data::Dataset& dataset,
                                    uint64_t seed);
data::LoaderOptions validation_loader(const data::LoaderOptions& training);
/// Lays features of sound out as the network's input wants them.
void fit_features(data::LoaderOptions& options, const Graph& network);

}  // namespace dais::cli
