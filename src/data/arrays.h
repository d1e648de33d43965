#pragma once

#include "data/dataset.h"
#include "data/image.h"

namespace dais::data {

/// Samples that lie side by side in memory: IDX, CIFAR, NumPy, tables.
struct ArraySource {
  Tensor inputs;               ///< [N, …]
  Tensor targets;              ///< [N] or [N, …]; absent: none
  bool planar = false;         ///< images are [C, H, W], not [H, W, C]
  std::string name = "array";  ///< of a sample, before its number
};

/// u8 inputs of rank 3 or 4 whose last axis (or second, when planar) is 1 or 3 are images; other
/// rank-2 inputs are rows, converted to f32; the rest are arrays. Integer targets of rank 1 are
/// classes, u8 of the images' size are masks, others numbers of a regression. Labels outside the
/// classes become findings. Sets input, task, shape and class count of `description`.
DatasetPtr array_dataset(ArraySource source, Description description, const ImageOptions& image);

}  // namespace dais::data
