#pragma once

#include <filesystem>

#include "ir/tensor.h"

namespace dais {

/// Reads a NumPy .npy file (versions 1 to 3, little or native order, C or Fortran order). Throws
/// `invalid_argument` naming the file for anything else, objects and byte-swapped data included.
Tensor read_npy(const std::filesystem::path& path);

/// Whether NumPy has this element type.
bool npy_has(DType dtype);
/// Writes version 1.0 in C order. The element type must be one that NumPy has.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace dais
