// Casts that the generated elementwise kernels do not know: those of types that take a byte in
// memory and are no bytes. And bits that are taken as another type, which are copied.
#include "backends/cuda/row.h"
#include "ops/cast/cast.h"
#include "ops/transpose/moves_cuda.h"

namespace dais {
namespace {

/// As in small_types.cuh and float8.cuh; null: no float of 8 or 4 bits.
const char* code_name(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3fn: return "f8e4m3";
    case DType::f8e5m2: return "f8e5m2";
    case DType::f8e4m3fnuz: return "f8e4m3fnuz";
    case DType::f8e5m2fnuz: return "f8e5m2fnuz";
    case DType::f8e8m0: return "f8e8m0";
    case DType::f4e2m1: return "f4e2m1";
    default: return nullptr;
  }
}

/// Null: no integer of 4 or 2 bits.
const char* small_name(DType dtype) {
  switch (dtype) {
    case DType::i4: return "i4";
    case DType::u4: return "u4";
    case DType::i2: return "i2";
    case DType::u2: return "u2";
    default: return nullptr;
  }
}

/// Null: none that casts to or from the types above know.
const char* plain_name(DType dtype) {
  switch (dtype) {
    case DType::i8: return "int8";
    case DType::u8: return "uint8";
    case DType::i16: return "int16";
    case DType::u16: return "uint16";
    case DType::i32: return "int32";
    case DType::i64: return "int64";
    default: return cuda::float_name(dtype);
  }
}

const char* type_name(DType dtype) {
  if (const char* code = code_name(dtype)) return code;
  const char* small = small_name(dtype);
  return small ? small : plain_name(dtype);
}

void run(const cuda::RowCall& call) noexcept {
  const auto& cast = *call.node.as<Cast>();
  const int64_t count = call.sizes.in[0].elements();
  if (count == 0) return;
  const int rounding = cast.round_mode == "up" ? 0 : cast.round_mode == "down" ? 1 : 2;
  call.launch(0, cuda::grid_of(count), call.in(0), call.out(0), cuda::size32(count),
              static_cast<int>(cast.saturate), rounding);
}

Verdict accepts(const KernelQuery& query) {
  const DType from = query.in_dtype(0), to = query.out_dtype();
  const auto ours = [](DType dtype) { return code_name(dtype) || small_name(dtype); };
  if (!ours(from) && !ours(to))
    return no("not a float or integer of fewer bits than a byte's type");
  if (!type_name(from) || !type_name(to) || from == to)
    return no("from " + std::string(dtype_name(from)) + " to " + std::string(dtype_name(to)));
  // The CPU rounds these twice.
  if (from == DType::i64 && code_name(to)) return no("from i64 to a float of few bits");
  return query.in(0).ranked() ? yes() : no("the rank is unknown");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(query,
                                {.text = "cast.cu",
                                 .options = {std::string("-DFROM=") + type_name(query.in_dtype(0)),
                                             std::string("-DTO=") + type_name(query.out_dtype())},
                                 .kernels = {"cast"},
                                 .run = run});
}

/// Bits that are valid in either type: booleans are 0 and 1, and types of fewer bits keep to them.
Verdict accepts_bits(const KernelQuery& query) {
  const DType to = query.out_dtype();
  if (to == DType::boolean || dtype_bits(to) < 8)
    return no("bits that " + std::string(dtype_name(to)) + " has not");
  return accepts_copy<>(query);
}

}  // namespace

namespace ops {
void register_cast_cuda(Kernels& kernels) {
  kernels.add({.name = "cast/cuda", .op = &Cast::op, .accepts = accepts, .prepare = prepare});
  kernels.add({.name = "bit_cast/cuda",
               .op = &BitCast::op,
               .accepts = accepts_bits,
               .prepare = device_copies<same_moves>});
}
}  // namespace ops
}  // namespace dais
