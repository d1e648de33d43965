#include "onnx/model.h"

namespace dais::onnx {
namespace {

Entry parse_entry(WireReader reader) {
  Entry out;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: out.key = reader.text(); break;
      case 2: out.value = reader.text(); break;
    }
  }
  return out;
}

OpsetId parse_opset(WireReader reader) {
  OpsetId out;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: out.domain = reader.text(); break;
      case 2: out.version = reader.integer(); break;
    }
  }
  return out;
}

DimProto parse_dim(WireReader reader) {
  DimProto out;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: out.value = reader.integer(); break;
      case 2: out.param = reader.text(); break;
    }
  }
  return out;
}

std::vector<DimProto> parse_shape(WireReader reader) {
  std::vector<DimProto> out;
  while (reader.next())
    if (reader.field() == 1) out.push_back(parse_dim(reader.message("TensorShapeProto.Dimension")));
  return out;
}

TypeProto parse_type(WireReader reader);

void parse_tensor_type(WireReader reader, TypeProto& out) {
  while (reader.next()) {
    switch (reader.field()) {
      case 1: out.element_type = reader.integer(); break;
      case 2: out.shape = parse_shape(reader.message("TensorShapeProto")); break;
    }
  }
}

void parse_container_type(WireReader reader, TypeProto& out) {
  const uint32_t element_field = out.kind == TypeProto::Kind::map ? 2 : 1;
  while (reader.next()) {
    if (reader.field() == element_field)
      out.element = {parse_type(reader.message("TypeProto"))};
    else if (reader.field() == 1)
      out.element_type = reader.integer();
  }
}

TypeProto parse_type(WireReader reader) {
  TypeProto out;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: out.kind = TypeProto::Kind::tensor; break;
      case 4: out.kind = TypeProto::Kind::sequence; break;
      case 5: out.kind = TypeProto::Kind::map; break;
      case 7: out.kind = TypeProto::Kind::opaque; break;
      case 8: out.kind = TypeProto::Kind::sparse_tensor; break;
      case 9: out.kind = TypeProto::Kind::optional; break;
      default: continue;
    }
    const WireReader inner = reader.message("TypeProto");
    if (out.kind == TypeProto::Kind::tensor || out.kind == TypeProto::Kind::sparse_tensor)
      parse_tensor_type(inner, out);
    else if (out.kind != TypeProto::Kind::opaque)
      parse_container_type(inner, out);
  }
  return out;
}

ValueInfo parse_value_info(WireReader reader) {
  ValueInfo out;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: out.name = reader.text(); break;
      case 2: out.type = parse_type(reader.message("TypeProto")); break;
    }
  }
  return out;
}

GraphProto parse_graph(WireReader reader);

/// Files older than IR version 2 name no kind: the field that is there tells it.
AttributeProto::Kind kind_of_field(uint32_t field) {
  using Kind = AttributeProto::Kind;
  switch (field) {
    case 2: return Kind::number;
    case 3: return Kind::integer;
    case 4: return Kind::text;
    case 5: return Kind::tensor;
    case 6: return Kind::graph;
    case 7: return Kind::numbers;
    case 8: return Kind::integers;
    case 9: return Kind::texts;
    case 10: return Kind::tensors;
    case 11: return Kind::graphs;
    case 14: return Kind::type;
    case 15: return Kind::types;
    case 22: return Kind::sparse_tensor;
    case 23: return Kind::sparse_tensors;
    default: return Kind::undefined;
  }
}

AttributeProto parse_attribute(WireReader reader) {
  AttributeProto out;
  auto guessed = AttributeProto::Kind::undefined;
  while (reader.next()) {
    const auto kind = kind_of_field(reader.field());
    if (kind != AttributeProto::Kind::undefined) guessed = kind;
    switch (reader.field()) {
      case 1: out.name = reader.text(); break;
      case 2: out.number = reader.number(); break;
      case 3: out.integer = reader.integer(); break;
      case 4: out.text = reader.text(); break;
      case 5:
      case 10: out.tensors.push_back(parse_tensor(reader.message("TensorProto"))); break;
      case 6:
      case 11: out.graphs.push_back(parse_graph(reader.message("GraphProto"))); break;
      case 7: reader.append(out.numbers); break;
      case 8: reader.append(out.integers); break;
      case 9: out.texts.push_back(reader.text()); break;
      case 14:
      case 15: out.types.push_back(parse_type(reader.message("TypeProto"))); break;
      case 20: out.kind = static_cast<AttributeProto::Kind>(reader.integer()); break;
      case 21: out.reference = reader.text(); break;
      case 22:
      case 23:
        out.sparse_tensors.push_back(parse_sparse_tensor(reader.message("SparseTensorProto")));
        break;
    }
  }
  if (out.kind == AttributeProto::Kind::undefined) out.kind = guessed;
  return out;
}

NodeProto parse_node(WireReader reader) {
  NodeProto out;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: out.inputs.push_back(reader.text()); break;
      case 2: out.outputs.push_back(reader.text()); break;
      case 3: out.name = reader.text(); break;
      case 4: out.type = reader.text(); break;
      case 5: out.attributes.push_back(parse_attribute(reader.message("AttributeProto"))); break;
      case 7: out.domain = reader.text(); break;
      case 8: out.overload = reader.text(); break;
    }
  }
  return out;
}

GraphProto parse_graph(WireReader reader) {
  GraphProto out;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: out.nodes.push_back(parse_node(reader.message("NodeProto"))); break;
      case 2: out.name = reader.text(); break;
      case 5: out.initializers.push_back(parse_tensor(reader.message("TensorProto"))); break;
      case 11: out.inputs.push_back(parse_value_info(reader.message("ValueInfoProto"))); break;
      case 12: out.outputs.push_back(parse_value_info(reader.message("ValueInfoProto"))); break;
      case 15:
        out.sparse_initializers.push_back(parse_sparse_tensor(reader.message("SparseTensorProto")));
        break;
    }
  }
  return out;
}

FunctionProto parse_function(WireReader reader) {
  FunctionProto out;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: out.name = reader.text(); break;
      case 4: out.inputs.push_back(reader.text()); break;
      case 5: out.outputs.push_back(reader.text()); break;
      case 6: out.attributes.push_back(reader.text()); break;
      case 7: out.nodes.push_back(parse_node(reader.message("NodeProto"))); break;
      case 9: out.opsets.push_back(parse_opset(reader.message("OperatorSetIdProto"))); break;
      case 10: out.domain = reader.text(); break;
      case 11: out.defaults.push_back(parse_attribute(reader.message("AttributeProto"))); break;
      case 13: out.overload = reader.text(); break;
    }
  }
  return out;
}

}  // namespace

TensorProto parse_tensor(WireReader reader) {
  TensorProto out;
  out.message = reader.rest();
  while (reader.next()) {
    switch (reader.field()) {
      case 1: reader.append(out.dims); break;
      case 2: out.data_type = reader.integer(); break;
      case 3: reader.fail("splits the tensor into segments, which no exporter writes");
      case 8: out.name = reader.text(); break;
      case 9: out.raw = reader.bytes(); break;
      case 13: out.external.push_back(parse_entry(reader.message("StringStringEntryProto"))); break;
      case 14: out.is_external = reader.integer() == 1; break;
    }
  }
  return out;
}

SparseTensorProto parse_sparse_tensor(WireReader reader) {
  SparseTensorProto out;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: out.values = parse_tensor(reader.message("TensorProto")); break;
      case 2: out.indices = parse_tensor(reader.message("TensorProto")); break;
      case 3: reader.append(out.dims); break;
    }
  }
  return out;
}

ModelProto parse_model(Bytes bytes) {
  ModelProto out;
  WireReader reader(bytes, "ModelProto");
  while (reader.next()) {
    switch (reader.field()) {
      case 1: out.ir_version = reader.integer(); break;
      case 2: out.producer_name = reader.text(); break;
      case 3: out.producer_version = reader.text(); break;
      case 4: out.domain = reader.text(); break;
      case 5: out.model_version = reader.integer(); break;
      case 6: out.doc = reader.text(); break;
      case 7: out.graph = parse_graph(reader.message("GraphProto")); break;
      case 8: out.opsets.push_back(parse_opset(reader.message("OperatorSetIdProto"))); break;
      case 14: out.metadata.push_back(parse_entry(reader.message("StringStringEntryProto"))); break;
      case 25: out.functions.push_back(parse_function(reader.message("FunctionProto"))); break;
    }
  }
  return out;
}

}  // namespace dais::onnx
