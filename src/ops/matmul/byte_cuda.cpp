// The host's side of byte_product.cu.
#include "ops/matmul/byte_cuda.h"

#include <algorithm>

namespace dais {
namespace {

constexpr int64_t kTile = 64, kCoreTile = 128;

static_assert(sizeof(ByteFinish) == 8 * 8 + 9 * 4 + 4);

/// What a kernel stores: its STORE and the results' type in its text; null: it has no such kernel.
struct Store {
  int number = 0;
  const char* type = nullptr;
};
Store store_of(const KernelQuery& query, const ByteOperands& with) {
  if (with.a_scale < 0) return {0, query.out_dtype() == DType::i32 ? "int32" : nullptr};
  if (with.y_scale >= 0)
    return {1, is_float8(query.out_dtype()) ? nullptr : byte_name(query.out_dtype())};
  return {2, query.out_dtype() == DType::f32 ? "float" : nullptr};
}

struct Prepared {
  ProductForm form;
  ByteOperands with;
  DType out = DType::undefined;
  bool floats = false;
  std::shared_ptr<DeviceMemory> b;  ///< null: the node's
  std::shared_ptr<const cuda::Program> program;
  cuda::Function function, cores;  ///< cores: null handle where the device has none
};

class BoundBytes : public BoundKernel {
 public:
  BoundBytes(std::shared_ptr<const Prepared> made, const ProductCall& call,
             const ByteFinish& finish)
      : made_(std::move(made)), problem_(call.problem), finish_(finish) {
    const ProductProblem& p = problem_;
    cores_ = made_->cores.handle && p.rows > kTile / 2 && p.columns > kTile / 2;
    const int64_t tile = cores_ ? kCoreTile : kTile;
    blocks_ = cuda::ceil_div(p.rows, tile) * cuda::ceil_div(p.columns, tile) * call.batches;
  }

  Fault run(const Arguments& arguments) noexcept override {
    if (blocks_ == 0) return {};
    finish_.point_to(made_->with, arguments);
    const void* a = arguments.in[made_->form.a];
    const void* b = made_->b ? made_->b->address() : arguments.in[made_->form.b];
    problem_.packs = packs(a, b);
    cuda::Grid grid;
    grid.x = static_cast<unsigned>(blocks_);
    grid.threads = 256;
    cuda::launch(arguments, cores_ ? made_->cores : made_->function, grid, problem_, finish_, a, b,
                 arguments.out[0]);
    return {};
  }

 private:
  /// Which operands can be loaded four at a time: 1 for A, 2 for B.
  int32_t packs(const void* a, const void* b) const noexcept {
    const ProductProblem& p = problem_;
    const auto even = [](const void* address, const int64_t(&batch)[6]) {
      bool out = reinterpret_cast<uintptr_t>(address) % 4 == 0;
      for (const int64_t step : batch) out = out && step % 4 == 0;
      return out;
    };
    const bool matrices = made_->form.mode == ProductMode::matrices;
    const bool left = p.depth % 4 == 0 && (!matrices || (p.a_column == 1 && p.a_row % 4 == 0));
    const bool right = matrices && p.depth % 4 == 0 && p.b_row == 1 && p.b_column % 4 == 0;
    return (left && even(a, p.a_batch) ? 1 : 0) | (right && even(b, p.b_batch) ? 2 : 0);
  }

  std::shared_ptr<const Prepared> made_;
  ProductProblem problem_;
  ByteFinish finish_;
  bool cores_ = false;
  int64_t blocks_ = 0;
};

class ByteKernel : public Kernel {
 public:
  explicit ByteKernel(std::shared_ptr<const Prepared> made) : made_(std::move(made)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const auto call =
        made_->form.call(sizes.in[made_->form.a], sizes.in[made_->form.b], sizes.out[0]);
    constexpr int64_t kMostBlocks = int64_t{1} << 31;
    if (!call) return nullptr;
    const ProductProblem& p = call->problem;
    if (cuda::ceil_div(p.rows, kTile) * cuda::ceil_div(p.columns, kTile) * call->batches >=
        kMostBlocks)
      return nullptr;
    const bool matrices = made_->form.mode == ProductMode::matrices;
    const int64_t rows = matrices ? p.rows : int64_t{p.rows} * p.group;
    const auto finish = byte_finish(made_->with, sizes, matrices, rows, p.columns, made_->out);
    if (!finish) return nullptr;
    return std::make_unique<BoundBytes>(made_, *call, *finish);
  }
  std::string detail() const override {
    if (made_->floats) return "8-bit floats on tensor cores, sums in f32";
    return made_->cores.handle ? "int8 on tensor cores, sums in int32" : "int8, sums in int32";
  }

 private:
  std::shared_ptr<const Prepared> made_;
};

/// What floats of 8 bits need beyond what all bytes do.
Verdict accepts_float8(const KernelQuery& query, const ProductForm& form,
                       const ByteOperands& with) {
  if (!is_float8(query.in_dtype(form.a)) || !is_float8(query.in_dtype(form.b)))
    return no("floats of 8 bits times integers");
  if (form.mode != ProductMode::matrices || with.a_scale < 0 || with.y_scale >= 0)
    return no("floats of 8 bits but in matrix products that give f32");
  if (with.a_zero >= 0 || with.b_zero >= 0) return no("a zero point of floats");
  const cuda::Device& device = cuda::device_of(query);
  if (device.info().arch < 89) return no("the device has no products of 8-bit floats");
  int major = 0, minor = 0;
  device.tables().nvrtc.api.version(&major, &minor);
  if (major == 12 && minor < 4) return no("NVRTC knows products of 8-bit floats from 12.4 on");
  return yes();
}

/// The same products with B turned in memory.
std::function<std::optional<ProductCall>(const Shape&, const Shape&, const Shape&)> with_turned_b(
    const decltype(ProductForm::call)& call) {
  return [call](const Shape& a, const Shape& b, const Shape& y) {
    auto out = call(a, b, y);
    if (out) {
      out->problem.b_row = 1;
      out->problem.b_column = out->problem.depth;
      out->problem.columns_first_b = false;
    }
    return out;
  };
}

}  // namespace

void ByteFinish::point_to(const ByteOperands& with, const Arguments& arguments) noexcept {
  const auto in = [&](int i) -> const void* {
    return i < 0 ? nullptr : arguments.in[static_cast<size_t>(i)];
  };
  a_zero = in(with.a_zero);
  b_zero = in(with.b_zero);
  a_scale = in(with.a_scale);
  b_scale = in(with.b_scale);
  y_scale = in(with.y_scale);
  y_zero = in(with.y_zero);
  bias = in(with.bias);
  added = in(with.added);
}

std::optional<ByteFinish> byte_finish(const ByteOperands& with, const Sizes& sizes, bool matrices,
                                      int64_t rows, int64_t columns, DType out) {
  ByteFinish finish;
  bool fits = true;
  const auto step = [&](int input, int64_t lines) -> int32_t {
    if (input < 0) return 0;
    const int64_t count = sizes.in[static_cast<size_t>(input)].elements();
    fits = fits && (count == 1 || count == lines);
    return count == 1 ? 0 : 1;
  };
  finish.a_zero_step = step(with.a_zero, rows);
  finish.a_scale_step = step(with.a_scale, rows);
  // A convolution's input has one scale and zero point.
  finish.b_zero_step = step(with.b_zero, matrices ? columns : 1);
  finish.b_scale_step = step(with.b_scale, matrices ? columns : 1);
  if (matrices)
    finish.bias_column_step = step(with.bias, columns);
  else
    finish.bias_row_step = step(with.bias, rows);
  for (const int one : {with.y_scale, with.y_zero}) step(one, 1);
  if (with.added >= 0)
    fits = fits && sizes.in[static_cast<size_t>(with.added)].elements() == columns;
  if (!fits) return std::nullopt;
  finish.alpha = with.alpha;
  finish.least = out == DType::i8 ? -128 : 0;
  finish.most = out == DType::i8 ? 127 : 255;
  return finish;
}

const char* byte_name(DType dtype) {
  switch (dtype) {
    case DType::i8: return "int8";
    case DType::u8: return "uint8";
    case DType::f8e4m3fn: return "f8e4m3";
    case DType::f8e5m2: return "f8e5m2";
    default: return nullptr;
  }
}

bool is_float8(DType dtype) { return dtype == DType::f8e4m3fn || dtype == DType::f8e5m2; }

std::vector<std::string> byte_options(const KernelQuery& query, const ProductForm& form,
                                      const ByteOperands& with) {
  const Store store = store_of(query, with);
  std::vector<std::string> out{std::string("-DA_TYPE=") + byte_name(query.in_dtype(form.a)),
                               std::string("-DB_TYPE=") + byte_name(query.in_dtype(form.b)),
                               std::string("-DY_TYPE=") + store.type,
                               "-DSTORE=" + std::to_string(store.number)};
  if (is_float8(query.in_dtype(form.a))) out.emplace_back("-DFLOATS");
  return out;
}

Verdict accepts_bytes(const KernelQuery& query, const ProductForm& form, const ByteOperands& with) {
  for (const size_t i : {form.a, form.b}) {
    if (!byte_name(query.in_dtype(i)))
      return no("element type " + std::string(dtype_name(query.in_dtype(i))));
    if (!query.in(i).ranked()) return no("a rank is unknown");
  }
  if (!store_of(query, with).type) return no("results of another element type");
  if (is_float8(query.in_dtype(form.a)) || is_float8(query.in_dtype(form.b)))
    if (const Verdict verdict = accepts_float8(query, form, with); !verdict.accepted)
      return verdict;
  const auto is = [&](int input, DType dtype) {
    return input < 0 || query.in_dtype(static_cast<size_t>(input)) == dtype;
  };
  if (!is(with.a_scale, DType::f32) || !is(with.b_scale, DType::f32) ||
      !is(with.y_scale, DType::f32) || !is(with.added, DType::f32))
    return no("scales or a bias of another element type than f32");
  if (!is(with.a_zero, query.in_dtype(form.a)) || !is(with.b_zero, query.in_dtype(form.b)) ||
      !is(with.y_zero, query.out_dtype()) || !is(with.bias, DType::i32))
    return no("a zero point or bias of another element type");
  return yes();
}

std::unique_ptr<Kernel> prepare_bytes(const KernelQuery& query, const ProductForm& form,
                                      const ByteOperands& with,
                                      std::shared_ptr<DeviceMemory> turned_b) {
  auto made = std::make_shared<Prepared>();
  made->form = form;
  if (turned_b) made->form.call = with_turned_b(form.call);
  made->b = std::move(turned_b);
  made->with = with;
  made->out = query.out_dtype();
  made->floats = is_float8(query.in_dtype(form.a));
  std::vector<std::string> options = byte_options(query, form, with);
  options.push_back("-DMODE=" + std::to_string(static_cast<int>(form.mode)));
  const bool cores = cuda::device_of(query).info().arch >= 80;
  if (cores) options.emplace_back("-DCORES");
  made->program = cuda::program_of(query, "byte_product.cu", std::move(options));
  made->function = made->program->function("byte_product");
  if (cores) made->cores = made->program->function("byte_cores");
  return std::make_unique<ByteKernel>(std::move(made));
}

}  // namespace dais
