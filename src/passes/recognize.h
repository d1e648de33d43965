#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "ops/elementwise/elementwise.h"
#include "passes/rewriter.h"

/// What rules that recognise spelled-out functions share.
namespace dais {

/// The number when the value is a constant of one element.
inline std::optional<double> constant_number(const Value* value) {
  const Tensor* tensor = value ? value->constant() : nullptr;
  if (!tensor || tensor->elements() != 1 || tensor->dtype() == DType::string) return std::nullopt;
  return tensor->to_double();
}

/// Whether a number is what an exporter wrote for `wanted`, which has few or many digits.
inline bool is_about(double number, double wanted) {
  return std::abs(number - wanted) <= 1e-5 * std::abs(wanted);
}

/// A product as one number times other values: multiplications, divisions by numbers and whole
/// powers are taken apart.
struct Factors {
  double number = 1;
  Values values;

  bool is(double wanted, std::initializer_list<const Value*> others) const;
};
Factors factors_of(Value* value);

/// Both operands of an Add; empty for other values.
inline Values addends_of(const Value* value) {
  Node* node = producer_as<Add>(value);
  return node ? Values{node->in[0], node->in[1]} : Values{};
}

/// The other addend of value = number + other.
inline Value* beside_number(const Value* value, double number) {
  const Values addends = addends_of(value);
  for (size_t i = 0; i < addends.size(); ++i)
    if (const auto found = constant_number(addends[i]); found && is_about(*found, number))
      return addends[1 - i];
  return nullptr;
}

}  // namespace dais
