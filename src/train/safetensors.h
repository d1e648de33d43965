#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/tensor.h"

namespace dais::train {

using NamedTensor = std::pair<std::string, Tensor>;

/// Contents of a safetensors file.
struct TensorFile {
  std::vector<NamedTensor> tensors;  ///< in the order of their data
  std::map<std::string, std::string> metadata;
  const Tensor* find(const std::string& name) const;
};

/// Writes the tensors in the order given: an 8-byte length, a JSON header, the bytes. The file is
/// there as a whole or not at all, and outlasts a power cut. Names must differ.
/// Throws `unsupported` for element types that the format lacks, `exhausted` on a full disk.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Maps the file; tensors are views that keep it mapped. Trusts nothing: throws `invalid_model`
/// naming the file for headers that lie about lengths, overlap, leave gaps or name unknown types.
TensorFile read_safetensors(const std::filesystem::path& path);

}  // namespace dais::train
