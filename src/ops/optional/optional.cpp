#include "ops/optional/optional.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/kept.h"

namespace dais {
namespace {

void infer_optional(Inference& c) {
  if (c.has(0)) return c.set(0, Type::optional(c.type(0)));
  const auto& attrs = c.attrs<Optional>();
  const Type tensor = Type::tensor(attrs.dtype);
  c.set(0, Type::optional(attrs.sequence ? Type::sequence(tensor) : tensor));
}

void optional(Call& c) { c.set(0, c.has(0) ? kept(c.datum(0)) : Datum{}); }

void infer_get(Inference& c) {
  const Type& type = c.type(0);
  c.set(0, type.kind == Type::Kind::optional ? *type.element : type);
}

void get(Call& c) {
  if (!c.has(0)) c.fail("the optional value is empty", "Ask optional_has_element first");
  if (c.datum(0).kind != Datum::Kind::tensor) return c.set(0, c.datum(0));
  const Tensor& x = c.in(0);
  Tensor& y = c.out(0, x.dtype(), x.shape());
  visit_storage(x.dtype(),
                [&]<typename T>() { std::copy_n(x.storage<T>(), x.elements(), y.storage<T>()); });
}

void infer_has(Inference& c) { c.set(0, DType::boolean, Dims{}); }

void has(Call& c) { c.out(0, DType::boolean, Shape{}).data<bool>()[0] = c.has(0); }

/// The attribute `type` says what an empty value could hold.
Values import_optional(OnnxImport& x) {
  Optional attrs;
  if (const auto type = x.type_attribute("type"); type && !x.has(0)) {
    attrs.sequence = type->kind == Type::Kind::sequence;
    attrs.dtype = attrs.sequence ? type->element->dtype : type->dtype;
  }
  return x.emit(attrs, x.in);
}

OnnxNode export_optional(const Node& node, int64_t) {
  OnnxNode out{.type = "Optional", .in = node.in};
  if (!node.has(0)) out.types.emplace_back("type", *node.outs[0]->type.element);
  return out;
}

}  // namespace

const Op Optional::op{
    .name = "optional",
    .attrs = &AttrsOf<Optional>::info,
    .infer = infer_optional,
    .reference = optional,
    .onnx = {{.type = "Optional",
              .since = 15,
              .import = import_optional,
              .export_as = export_optional}},
};

const Op OptionalGetElement::op{
    .name = "optional_get_element",
    .attrs = &AttrsOf<OptionalGetElement>::info,
    .infer = infer_get,
    .reference = get,
    .onnx = {{"OptionalGetElement", 15}},
};

const Op OptionalHasElement::op{
    .name = "optional_has_element",
    .attrs = &AttrsOf<OptionalHasElement>::info,
    .infer = infer_has,
    .reference = has,
    .onnx = {{"OptionalHasElement", 15}},
};

namespace ops {
void define_optional(OpRegistry& registry) {
  for (const Op* op : {&Optional::op, &OptionalGetElement::op, &OptionalHasElement::op})
    registry.add(*op);
}
}  // namespace ops
}  // namespace dais
