#include "passes/recognize.h"

#include <algorithm>

namespace dais {
namespace {

constexpr size_t kMaxFactors = 8;

void collect(Value* value, Factors& out) {
  if (out.values.size() > kMaxFactors) return;
  if (const auto number = constant_number(value)) {
    out.number *= *number;
    return;
  }
  if (Node* node = producer_as<Mul>(value)) {
    collect(node->in[0], out);
    collect(node->in[1], out);
    return;
  }
  if (Node* node = producer_as<Div>(value)) {
    if (const auto number = constant_number(node->in[1]); number && *number != 0) {
      out.number /= *number;
      return collect(node->in[0], out);
    }
  }
  if (Node* node = producer_as<Pow>(value)) {
    const auto power = constant_number(node->in[1]);
    for (const int whole : {2, 3}) {
      if (!power || *power != whole) continue;
      out.values.insert(out.values.end(), static_cast<size_t>(whole), node->in[0]);
      return;
    }
  }
  out.values.push_back(value);
}

}  // namespace

Factors factors_of(Value* value) {
  Factors out;
  collect(value, out);
  return out;
}

bool Factors::is(double wanted, std::initializer_list<const Value*> others) const {
  return is_about(number, wanted) && values.size() == others.size() &&
         std::is_permutation(values.begin(), values.end(), others.begin());
}

}  // namespace dais
