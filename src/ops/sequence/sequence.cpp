#include "ops/sequence/sequence.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/kept.h"

namespace dais {

Dim varying() { return Dim::symbol("*"); }

Type element_type(Inference& c, size_t input) {
  const Type& type = c.type(input);
  if (type.kind != Type::Kind::sequence)
    c.fail("input " + std::to_string(input) + " is " + type.text() + ", not a sequence");
  Type out = *type.element;
  if (out.shape)
    for (Dim& dim : *out.shape)
      if (dim == varying()) dim = c.fresh();
  return out;
}

Type common_element(const Inference& c, const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor()) return a;
  if (a.dtype != b.dtype)
    c.fail("a sequence holds tensors of one type, not " + a.text() + " and " + b.text());
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) return Type::tensor(a.dtype);
  Type out = a;
  for (size_t axis = 0; axis < a.shape->size(); ++axis)
    if (!((*a.shape)[axis] == (*b.shape)[axis])) (*out.shape)[axis] = varying();
  return out;
}

const std::vector<Datum>& sequence_items(const Call& c, size_t input) {
  if (!c.has(input) || c.datum(input).kind != Datum::Kind::sequence)
    c.fail("input " + std::to_string(input) + " is not a sequence");
  return *c.datum(input).items;
}

namespace {

/// A position given by a scalar input; `limit` is the highest valid one plus 1.
size_t position(const Call& c, size_t input, size_t size, size_t limit) {
  const auto ints = c.in(input).to_ints();
  c.require(ints.size() == 1, "the position is not one number");
  const auto count = static_cast<int64_t>(size);
  if (ints[0] < -count || ints[0] >= static_cast<int64_t>(limit))
    c.fail("position " + std::to_string(ints[0]) + " is outside a sequence of " +
           std::to_string(size));
  return static_cast<size_t>(ints[0] < 0 ? ints[0] + count : ints[0]);
}

void infer_construct(Inference& c) {
  c.require(c.inputs() > 0, "there are no tensors; use sequence_empty");
  Type element = c.type(0);
  for (size_t i = 1; i < c.inputs(); ++i) element = common_element(c, element, c.type(i));
  c.set(0, Type::sequence(element));
}

void construct(Call& c) {
  std::vector<Datum> items;
  for (size_t i = 0; i < c.inputs(); ++i) items.push_back(kept(c.datum(i)));
  c.set(0, Datum::sequence(std::move(items)));
}

void infer_empty(Inference& c) {
  c.set(0, Type::sequence(Type::tensor(c.attrs<SequenceEmpty>().dtype)));
}

void empty(Call& c) { c.set(0, Datum::sequence({})); }

void infer_at(Inference& c) { c.set(0, element_type(c, 0)); }

void at(Call& c) {
  const auto& items = sequence_items(c, 0);
  c.set(0, items[position(c, 1, items.size(), items.size())]);
}

void infer_insert(Inference& c) {
  element_type(c, 0);
  c.set(0, Type::sequence(common_element(c, *c.type(0).element, c.type(1))));
}

void insert(Call& c) {
  std::vector<Datum> items = sequence_items(c, 0);
  const size_t place = c.has(2) ? position(c, 2, items.size(), items.size() + 1) : items.size();
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(place), kept(c.datum(1)));
  c.set(0, Datum::sequence(std::move(items)));
}

void infer_erase(Inference& c) {
  element_type(c, 0);
  c.set(0, c.type(0));
}

void erase(Call& c) {
  std::vector<Datum> items = sequence_items(c, 0);
  c.require(!items.empty(), "the sequence is empty");
  const size_t place = c.has(1) ? position(c, 1, items.size(), items.size()) : items.size() - 1;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(place));
  c.set(0, Datum::sequence(std::move(items)));
}

void infer_length(Inference& c) {
  element_type(c, 0);
  c.set(0, DType::i64, Dims{});
}

void length(Call& c) { c.out(0, Shape{}).data<int64_t>()[0] = std::ssize(sequence_items(c, 0)); }

}  // namespace

const Op SequenceConstruct::op{
    .name = "sequence_construct",
    .attrs = &AttrsOf<SequenceConstruct>::info,
    .infer = infer_construct,
    .reference = construct,
    .onnx = {{"SequenceConstruct", 11}},
};

const Op SequenceEmpty::op{
    .name = "sequence_empty",
    .attrs = &AttrsOf<SequenceEmpty>::info,
    .infer = infer_empty,
    .reference = empty,
    .onnx = {{"SequenceEmpty", 11}},
};

const Op SequenceAt::op{
    .name = "sequence_at",
    .attrs = &AttrsOf<SequenceAt>::info,
    .infer = infer_at,
    .reference = at,
    .onnx = {{"SequenceAt", 11}},
};

const Op SequenceInsert::op{
    .name = "sequence_insert",
    .attrs = &AttrsOf<SequenceInsert>::info,
    .infer = infer_insert,
    .reference = insert,
    .onnx = {{"SequenceInsert", 11}},
};

const Op SequenceErase::op{
    .name = "sequence_erase",
    .attrs = &AttrsOf<SequenceErase>::info,
    .infer = infer_erase,
    .reference = erase,
    .onnx = {{"SequenceErase", 11}},
};

const Op SequenceLength::op{
    .name = "sequence_length",
    .attrs = &AttrsOf<SequenceLength>::info,
    .infer = infer_length,
    .reference = length,
    .onnx = {{"SequenceLength", 11}},
};

namespace ops {
void define_sequence(OpRegistry& registry) {
  for (const Op* op : {&SequenceConstruct::op, &SequenceEmpty::op, &SequenceAt::op,
                       &SequenceInsert::op, &SequenceErase::op, &SequenceLength::op,
                       &SplitToSequence::op, &ConcatFromSequence::op, &SequenceMap::op})
    registry.add(*op);
}
}  // namespace ops
}  // namespace dais
