#pragma once

#include <filesystem>
#include <string>

#include "base/file.h"
#include "ir/tensor.h"

namespace dais {

/// Reads a NumPy .npy file (versions 1 to 3, little or native order, C or Fortran order). Throws
/// `invalid_argument` naming the file for anything else, objects and byte-swapped data included.
Tensor read_npy(const std::filesystem::path& path);
/// The same from bytes in memory; `where` names them in messages.
Tensor parse_npy(Bytes bytes, const std::string& where);

/// What the header of a .npy file says, and its elements where they lie (not aligned).
struct NpyView {
  DType dtype = DType::undefined;
  Shape shape;
  bool fortran_order = false;
  Bytes data;
};
NpyView view_npy(Bytes bytes, const std::string& path);

/// Whether NumPy has this element type.
bool npy_has(DType dtype);
/// Writes version 1.0 in C order. The element type must be one that NumPy has.
/// What precedes the elements in such a file.
std::string npy_header(const Tensor& tensor, const std::string& where);
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace dais
