#pragma once

#include <optional>

#include "onnx/wire.h"

/// The messages of an ONNX file as plain structs. Texts and tensor data are views of the bytes that
/// were parsed, which must outlive them. Fields that dais has no use for are left out.
namespace dais::onnx {

struct Entry {
  std::string_view key, value;
};

struct OpsetId {
  std::string_view domain;
  int64_t version = 0;
};

/// Typed element fields are not decoded here: `message` holds the whole TensorProto, which
/// TensorReader walks again to fill a tensor directly.
struct TensorProto {
  std::string_view name;
  int64_t data_type = 0;
  std::vector<int64_t> dims;
  std::optional<Bytes> raw;
  std::vector<Entry> external;
  bool is_external = false;
  Bytes message;
};

struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

struct DimProto {
  std::optional<int64_t> value;
  std::string_view param;
};

struct TypeProto {
  enum class Kind : uint8_t { missing, tensor, sparse_tensor, sequence, map, optional, opaque };
  Kind kind = Kind::missing;
  int64_t element_type = 0;  ///< tensors: element; map: key
  std::optional<std::vector<DimProto>> shape;
  std::vector<TypeProto> element;  ///< one entry for sequence, map and optional
};

struct ValueInfo {
  std::string_view name;
  TypeProto type;
};

struct GraphProto;

struct AttributeProto {
  /// The numbers of AttributeProto.AttributeType.
  enum class Kind : int64_t {
    undefined = 0,
    number = 1,
    integer = 2,
    text = 3,
    tensor = 4,
    graph = 5,
    numbers = 6,
    integers = 7,
    texts = 8,
    tensors = 9,
    graphs = 10,
    sparse_tensor = 11,
    sparse_tensors = 12,
    type = 13,
    types = 14,
  };
  std::string_view name, reference;  ///< reference: attribute of the surrounding function
  Kind kind = Kind::undefined;
  float number = 0;
  int64_t integer = 0;
  std::string_view text;
  std::vector<float> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string_view> texts;
  std::vector<TensorProto> tensors;  ///< one entry for Kind::tensor; likewise below
  std::vector<SparseTensorProto> sparse_tensors;
  std::vector<TypeProto> types;
  std::vector<GraphProto> graphs;
};

struct NodeProto {
  std::string_view name, type, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueInfo> inputs, outputs;
};

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeProto> defaults;
  std::vector<NodeProto> nodes;
  std::vector<OpsetId> opsets;
};

struct ModelProto {
  int64_t ir_version = 0, model_version = 0;
  std::string_view producer_name, producer_version, domain, doc;
  std::vector<OpsetId> opsets;
  std::vector<Entry> metadata;
  std::vector<FunctionProto> functions;
  std::optional<GraphProto> graph;
};

/// Each throws `invalid_model` naming message, field and byte when the bytes break the format.
ModelProto parse_model(Bytes bytes);
TensorProto parse_tensor(WireReader reader);
SparseTensorProto parse_sparse_tensor(WireReader reader);

}  // namespace dais::onnx
