#include "ops/trilu/trilu.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  c.require(c.rank(0) >= 2, "the input holds no matrices");
  c.set(0, c.dtype(0), c.shape(0));
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  c.require(x.rank() >= 2, "the input holds no matrices");
  const int64_t rows = x.shape()[x.rank() - 2], columns = x.shape().back();
  const int64_t given = c.has(1) && c.in(1).elements() > 0 ? c.in(1).to_ints()[0] : 0;
  const int64_t k = std::clamp(given, -rows - 1, columns + 1);
  const bool upper = c.attrs<Trilu>().upper;
  Tensor& y = c.out(0, x.shape());
  if (x.elements() == 0) return;
  const int64_t lines = x.elements() / columns;
  visit_storage(x.dtype(), [&]<typename T>() {
    for (int64_t line = 0; line < lines; ++line) {
      const T* from = x.storage<T>() + line * columns;
      T* to = y.storage<T>() + line * columns;
      const int64_t row = line % rows;
      const int64_t border = std::clamp<int64_t>(row + k + (upper ? 0 : 1), 0, columns);
      std::copy_n(from, columns, to);
      if (upper)
        std::fill(to, to + border, T{});
      else
        std::fill(to + border, to + columns, T{});
    }
  });
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  Values in = n.in;
  in[0] = dy[0];
  return {g.add(*n.as<Trilu>(), in)};
}

}  // namespace

const Op Trilu::op{
    .name = "trilu",
    .attrs = &AttrsOf<Trilu>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{"Trilu", 14}, {.type = "Trilu", .domain = "com.microsoft"}},
};

namespace ops {
void define_trilu(OpRegistry& registry) { registry.add(Trilu::op); }
}  // namespace ops
}  // namespace dais
