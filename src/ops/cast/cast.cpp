#include "ops/cast/cast.h"

#include <algorithm>
#include <charconv>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/elementwise/elements.h"

namespace dais {
namespace {

constexpr int64_t kChunk = 256;

void infer_cast(Inference& c) {
  const Cast& cast = c.attrs<Cast>();
  c.require(cast.to != DType::undefined, "'to' names no element type");
  if ((is_complex(cast.to) || is_complex(c.dtype(0))) && cast.to != c.dtype(0))
    c.fail("complex numbers cannot be cast");
  if (cast.round_mode != "up" && cast.round_mode != "down" && cast.round_mode != "nearest")
    c.fail("round_mode is '" + cast.round_mode + "'", "Use up, down or nearest");
  c.set(0, cast.to);
  c.set(0, cast.to, c.shape(0));
  const bool sizes = IntegerTypes::contains(cast.to) && dtype_bits(cast.to) >= 32;
  if (auto known = c.known(0); known && sizes) c.set_known(0, std::move(*known));
}

Float8E8M0::Rounding rounding_of(const std::string& mode) {
  if (mode == "down") return Float8E8M0::Rounding::down;
  return mode == "nearest" ? Float8E8M0::Rounding::nearest : Float8E8M0::Rounding::up;
}

using Float8Types =
    DTypes<DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0>;

void store_float8(Tensor& y, int64_t first, int64_t n, const double* from, const Cast& cast) {
  visit_dtype<Float8Types>(y.dtype(), [&]<typename T>() {
    T* to = y.data<T>().data() + first;
    for (int64_t i = 0; i < n; ++i) {
      const auto value = static_cast<float>(from[i]);
      if constexpr (std::is_same_v<T, Float8E8M0>)
        to[i] = T(value, cast.saturate, rounding_of(cast.round_mode));
      else
        to[i] = T(value, cast.saturate);
    }
  });
}

void cast_numbers(const Tensor& x, Tensor& y, const Cast& cast) {
  const bool to_float8 = Float8Types::contains(y.dtype());
  visit_compute(to_float8 ? Wide::real : wide_of(x.dtype()), [&]<typename C>() {
    std::array<C, kChunk> values;
    for (int64_t done = 0; done < x.elements(); done += kChunk) {
      const int64_t n = std::min(kChunk, x.elements() - done);
      load_elements(x, done, 1, n, values.data());
      if constexpr (std::is_same_v<C, double>)
        if (to_float8) {
          store_float8(y, done, n, values.data(), cast);
          continue;
        }
      store_elements(y, done, 1, n, values.data());
    }
  });
}

void cast_to_text(const Tensor& x, Tensor& y) {
  auto text = y.data<std::string>();
  if (x.dtype() == DType::f64) {
    std::transform(x.data<double>().begin(), x.data<double>().end(), text.begin(),
                   [](double value) { return number_text(value); });
    return;
  }
  visit_compute(wide_of(x.dtype()), [&]<typename C>() {
    const auto values = widen<C>(x);
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<C, double>)
        text[i] = number_text(static_cast<float>(values[i]));
      else
        text[i] = std::to_string(values[i]);
    }
  });
}

/// Whole numbers beyond 2^53 must not pass through a double.
template <typename C>
C parse_whole(const std::string& text, double value) {
  C whole{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), whole);
  return status == std::errc{} && end == text.data() + text.size() ? whole : saturated<C>(value);
}

void cast_from_text(Call& c, const Tensor& x, Tensor& y) {
  const auto text = x.data<std::string>();
  visit_compute(wide_of(y.dtype()), [&]<typename C>() {
    std::vector<C> values(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
      const auto number = parse_number(text[i]);
      if (!number) c.fail("'" + text[i].substr(0, 40) + "' is not a number");
      if constexpr (std::is_same_v<C, double>)
        values[i] = *number;
      else
        values[i] = parse_whole<C>(text[i], *number);
    }
    store_elements(y, 0, 1, y.elements(), values.data());
  });
}

void reference_cast(Call& c) {
  const Cast& cast = c.attrs<Cast>();
  const Tensor& x = c.in(0);
  Tensor& y = c.out(0, cast.to, x.shape());
  if (x.dtype() == cast.to)
    visit_storage(cast.to,
                  [&]<typename U>() { std::copy_n(x.storage<U>(), x.elements(), y.storage<U>()); });
  else if (cast.to == DType::string)
    cast_to_text(x, y);
  else if (x.dtype() == DType::string)
    cast_from_text(c, x, y);
  else
    cast_numbers(x, y, cast);
}

/// Opset 1 named the type by text.
Values import_cast_1(OnnxImport& i) {
  constexpr std::pair<std::string_view, DType> names[] = {
      {"FLOAT", DType::f32},   {"UINT8", DType::u8},      {"INT8", DType::i8},
      {"UINT16", DType::u16},  {"INT16", DType::i16},     {"INT32", DType::i32},
      {"INT64", DType::i64},   {"STRING", DType::string}, {"BOOL", DType::boolean},
      {"FLOAT16", DType::f16}, {"DOUBLE", DType::f64},    {"UINT32", DType::u32},
      {"UINT64", DType::u64}};
  const std::string wanted = i.text("to", "");
  for (const auto& [name, dtype] : names)
    if (name == wanted) return i.emit(Cast{.to = dtype}, i.in);
  i.fail("'to' is '" + wanted + "', which is no element type");
}

/// The second input only lends its element type.
Values import_cast_like(OnnxImport& i) {
  if (!i.has(0) || !i.has(1)) i.fail("two inputs are expected");
  Cast cast = i.attrs<Cast>();
  cast.to = i.in[1]->type.dtype;
  return i.emit(cast, {i.in[0]});
}

void infer_bit_cast(Inference& c) {
  const DType to = c.attrs<BitCast>().to;
  c.require(to != DType::undefined, "'to' names no element type");
  if (dtype_bits(to) == 0 || dtype_bits(to) != dtype_bits(c.dtype(0)))
    c.fail(std::string(dtype_name(c.dtype(0))) + " and " + std::string(dtype_name(to)) +
           " differ in width");
  c.set(0, to);
  c.set(0, to, c.shape(0));
}

void reference_bit_cast(Call& c) {
  const Tensor& x = c.in(0);
  Tensor& y = c.out(0, c.attrs<BitCast>().to, x.shape());
  const auto* from = static_cast<const uint8_t*>(x.raw());
  auto* to = static_cast<uint8_t*>(y.raw());
  // Booleans and the packed types must stay within their range: two and four bits are kept in a
  // byte, signed ones extended.
  visit_dtype<AllTypes>(y.dtype(), [&]<typename T>() {
    if constexpr (std::is_same_v<T, bool>) {
      for (int64_t i = 0; i < x.elements(); ++i) to[i] = from[i] != 0;
    } else if constexpr (requires { T::max; }) {
      for (int64_t i = 0; i < x.elements(); ++i)
        y.data<T>()[static_cast<size_t>(i)] = T(int{from[i]});
    } else if constexpr (std::is_same_v<T, Float4E2M1>) {
      for (int64_t i = 0; i < x.elements(); ++i) to[i] = from[i] & 0xf;
    } else if constexpr (!std::is_same_v<T, std::string>) {
      std::copy_n(from, x.bytes(), to);
    }
  });
}

Values gradient_cast(Graph& g, const Node& n, std::span<Value* const> dy) {
  if (!is_float(n.in[0]->type.dtype)) return {nullptr};
  return {g.add(Cast{.to = n.in[0]->type.dtype}, {dy[0]})};
}

}  // namespace

const Op Cast::op{
    .name = "cast",
    .attrs = &AttrsOf<Cast>::info,
    .infer = infer_cast,
    .reference = reference_cast,
    .gradient = gradient_cast,
    .onnx = {{.type = "Cast", .since = 1, .until = 5, .import = import_cast_1},
             {.type = "Cast", .since = 6},
             {.type = "CastLike", .since = 15, .import = import_cast_like}},
};

const Op BitCast::op{
    .name = "bit_cast",
    .attrs = &AttrsOf<BitCast>::info,
    .infer = infer_bit_cast,
    .reference = reference_bit_cast,
    .onnx = {{"BitCast", 26}},
};

namespace ops {
void define_cast(OpRegistry& registry) {
  registry.add(Cast::op);
  registry.add(BitCast::op);
}
}  // namespace ops
}  // namespace dais
