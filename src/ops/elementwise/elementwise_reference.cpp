// Reference loops of the elementwise family: rows of the broadcast space are widened in chunks,
// the scalar function runs over the chunk, and the result is narrowed to the output's type.
#include <algorithm>
#include <limits>

#include "ir/call.h"
#include "ops/elementwise/elements.h"
#include "ops/elementwise/elementwise_internal.h"
#include "ops/elementwise/scalar_functions.h"
#include "ops/strided.h"

namespace dais {
namespace {

constexpr int64_t kChunk = 256;
constexpr size_t kMaxOperands = 3;

/// Loops of up to three operands; slot 0 is the output.
using Loop = StridedLoop<kMaxOperands + 1>;

template <typename C>
using Buffer = std::array<C, kChunk>;

Shape result_shape(Call& c) {
  Shape shape = c.in(0).shape();
  for (size_t i = 1; i < c.inputs(); ++i) shape = broadcast(shape, c.in(i).shape());
  return shape;
}

Loop loop_over(const Shape& shape, std::span<const Tensor* const> operands) {
  std::array<Strides, kMaxOperands + 1> strides{};
  strides[0] = broadcast_strides(shape, shape);
  for (size_t i = 0; i < operands.size(); ++i)
    strides[i + 1] = broadcast_strides(operands[i]->shape(), shape);
  return Loop(shape, strides);
}

template <typename C>
void run(const ScalarCall& call, std::span<const Tensor* const> operands, Tensor& y) {
  const ScalarLoop<C> function = scalar_loops(call.function).get<C>();
  if (!function) unsupported_dtype(operands[0]->dtype());
  const Loop loop = loop_over(y.shape(), operands);
  Buffer<C> buffers[kMaxOperands], result;
  const C* pointers[kMaxOperands]{};
  for (size_t i = 0; i < operands.size(); ++i) pointers[i] = buffers[i].data();
  loop.rows([&](const Loop::Offsets& at) {
    for (int64_t done = 0; done < loop.size(); done += kChunk) {
      const int64_t n = std::min(kChunk, loop.size() - done);
      for (size_t i = 0; i < operands.size(); ++i)
        load_elements(*operands[i], at[i + 1] + done * loop.step(i + 1), loop.step(i + 1), n,
                      buffers[i].data());
      function(pointers, result.data(), n, call.parameters.data());
      store_elements(y, at[0] + done * loop.step(0), loop.step(0), n, result.data());
    }
  });
}

/// The type to compute in: real when any operand is (Pow mixes types), else signed when any is.
Wide wide_of_operands(std::span<const Tensor* const> operands) {
  Wide wide = Wide::natural;
  for (const Tensor* operand : operands) wide = std::min(wide, wide_of(operand->dtype()));
  return wide;
}

template <typename C>
void run_variadic(Call& c, Scalar function, Tensor& y) {
  const ScalarLoop<C> combine = scalar_loops(function).get<C>();
  std::vector<C> total(static_cast<size_t>(y.elements()));
  Buffer<C> values;
  for (size_t k = 0; k < c.inputs(); ++k) {
    const Tensor& x = c.in(k);
    const auto loop = StridedLoop<2>::broadcast(y.shape(), {&y.shape(), &x.shape()});
    loop.rows([&](const auto& at) {
      for (int64_t done = 0; done < loop.size(); done += kChunk) {
        const int64_t n = std::min(kChunk, loop.size() - done);
        C* into = total.data() + at[0] + done;
        load_elements(x, at[1] + done * loop.step(1), loop.step(1), n,
                      k == 0 ? into : values.data());
        const C* pointers[] = {into, values.data()};
        if (k > 0) combine(pointers, into, n, nullptr);
      }
    });
  }
  if (function == Scalar::mean)
    for (C& value : total) value /= static_cast<C>(c.inputs());
  store_elements(y, 0, 1, y.elements(), total.data());
}

void run_equal_strings(const Tensor& a, const Tensor& b, Tensor& y) {
  const Tensor* operands[] = {&a, &b};
  const Loop loop = loop_over(y.shape(), operands);
  loop.rows([&](const Loop::Offsets& at) {
    for (int64_t i = 0; i < loop.size(); ++i)
      y.data<bool>()[static_cast<size_t>(at[0] + i * loop.step(0))] =
          a.storage<std::string>()[at[1] + i * loop.step(1)] ==
          b.storage<std::string>()[at[2] + i * loop.step(2)];
  });
}

void run_where(Call& c, Tensor& y) {
  const Tensor* operands[] = {&c.in(0), &c.in(1), &c.in(2)};
  const Loop loop = loop_over(y.shape(), operands);
  visit_storage(y.dtype(), [&]<typename U>() {
    const bool* condition = operands[0]->storage<bool>();
    loop.rows([&](const Loop::Offsets& at) {
      for (int64_t i = 0; i < loop.size(); ++i)
        y.storage<U>()[at[0] + i * loop.step(0)] =
            condition[at[1] + i * loop.step(1)]
                ? operands[1]->storage<U>()[at[2] + i * loop.step(2)]
                : operands[2]->storage<U>()[at[3] + i * loop.step(3)];
    });
  });
}

/// A bound of Clip: the given scalar (of rank 0, or any rank with one element) or the widest value.
template <typename C>
Tensor bound(Call& c, size_t input) {
  if (c.has(input)) {
    c.require(c.in(input).elements() == 1, "a bound must be one number");
    return c.in(input).reshaped({});
  }
  using Limits = std::numeric_limits<C>;
  if constexpr (std::is_same_v<C, double>)
    return Tensor::scalar<double>(input == 1 ? -Limits::infinity() : Limits::infinity());
  else
    return Tensor::scalar<C>(input == 1 ? Limits::min() : Limits::max());
}

void run_clip(Call& c) {
  const Tensor& x = c.in(0);
  Tensor& y = c.out(0, x.shape());
  visit_compute(wide_of(x.dtype()), [&]<typename C>() {
    const Tensor low = bound<C>(c, 1), high = bound<C>(c, 2);
    const Tensor* operands[] = {&x, &low, &high};
    run<C>({Scalar::clip}, operands, y);
  });
}

}  // namespace

void reference_elementwise(Call& c) {
  const ElementwiseRow& row = *elementwise_row(*c.node.op);
  if (row.function == Scalar::clip) return run_clip(c);
  const DType dtype = c.in(row.function == Scalar::where ? 1 : 0).dtype();
  Tensor& y = c.out(0, row.logical ? DType::boolean : dtype, result_shape(c));
  if (row.function == Scalar::where) return run_where(c, y);
  if (dtype == DType::string) return run_equal_strings(c.in(0), c.in(1), y);
  if (row.operands == 0)
    return visit_compute(wide_of(dtype),
                         [&]<typename C>() { run_variadic<C>(c, row.function, y); });
  const Tensor* operands[kMaxOperands];
  for (size_t i = 0; i < c.inputs(); ++i) operands[i] = &c.in(i);
  const std::span<const Tensor* const> given(operands, c.inputs());
  visit_compute(wide_of_operands(given),
                [&]<typename C>() { run<C>(*scalar_call(c.node), given, y); });
}

}  // namespace dais
