#include "ops/nonzero/nonzero.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.dtype(0);
  c.set(0, DType::i64);
  c.set(0, DType::i64, {static_cast<int64_t>(c.rank(0)), c.fresh()});
}

template <typename T>
bool is_zero(const T& value) {
  if constexpr (std::is_same_v<T, std::string>)
    return value.empty();
  else if constexpr (std::is_arithmetic_v<T> || requires { value.real(); })
    return value == T{};
  else
    return static_cast<float>(value) == 0;
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  std::vector<int64_t> found;
  visit_dtype<AllTypes>(x.dtype(), [&]<typename T>() {
    const T* from = x.data<T>().data();
    for (int64_t i = 0; i < x.elements(); ++i)
      if (!is_zero(from[i])) found.push_back(i);
  });
  const auto count = std::ssize(found);
  Tensor& y = c.out(0, Shape{static_cast<int64_t>(x.rank()), count});
  int64_t* to = y.data<int64_t>().data();
  for (size_t axis = x.rank(); axis-- > 0;)
    for (int64_t i = 0; i < count; ++i) {
      int64_t& rest = found[static_cast<size_t>(i)];
      to[static_cast<int64_t>(axis) * count + i] = rest % x.shape()[axis];
      rest /= x.shape()[axis];
    }
}

}  // namespace

const Op NonZero::op{
    .name = "non_zero",
    .attrs = &AttrsOf<NonZero>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{"NonZero", 9}},
};

namespace ops {
void define_nonzero(OpRegistry& registry) { registry.add(NonZero::op); }
}  // namespace ops
}  // namespace dais
