#pragma once

#include <map>

#include "ir/type.h"
#include "onnx/model.h"

namespace dais::onnx {

/// Turns stored tensors and other values into what graphs compute with. Raw data becomes a view of
/// the file where it is aligned and unpacked; 4- and 2-bit elements are spread to one a byte.
/// No memory is asked for before the data is known to be there.
class TensorReader {
 public:
  /// `owner` keeps the parsed bytes alive for views (null: data is copied); `folder` is where
  /// external data may lie (left out: nowhere).
  explicit TensorReader(std::shared_ptr<const void> owner = nullptr) : owner_(std::move(owner)) {}
  TensorReader(std::shared_ptr<const void> owner, std::filesystem::path folder)
      : owner_(std::move(owner)), folder_(std::move(folder)) {}

  Tensor read(const TensorProto& proto);
  /// Dense, with zeros (or empty strings) where nothing is stored.
  Tensor read(const SparseTensorProto& proto);
  /// The contents of a .pb file that holds a value of this type: TensorProto, SequenceProto,
  /// OptionalProto or MapProto.
  Datum read(Bytes bytes, const Type& type);

 private:
  Datum read_tensor(WireReader reader);
  Datum read_sequence(WireReader reader);
  Datum read_optional(WireReader reader);
  Datum read_map(WireReader reader);
  Bytes external(const TensorProto& proto, size_t size_bytes, std::shared_ptr<const void>& owner);

  std::shared_ptr<const void> owner_;
  std::optional<std::filesystem::path> folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

/// Bytes that `elements` of this type take in a file; sub-byte types are packed.
size_t stored_bytes(DType dtype, int64_t elements);
/// The elements as they lie in a file: packed when smaller than a byte. Not for strings.
std::string pack_elements(const Tensor& tensor);

/// The fields of a TensorProto.
void write_tensor(WireWriter& out, const Tensor& tensor, std::string_view name);
/// A whole .pb file for a value, as TensorReader::read reads it back.
std::string datum_bytes(const Datum& datum, const Type& type, std::string_view name);

}  // namespace dais::onnx
