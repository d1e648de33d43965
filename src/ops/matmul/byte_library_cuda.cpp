// The host's side of byte_library.cu and the product between its kernels.
#include "ops/matmul/byte_library_cuda.h"

#include <algorithm>

#include "backends/cuda/row.h"
#include "ops/matmul/blas_cuda.h"

namespace dais {
namespace {

constexpr int64_t kMultiple = 4;  ///< of depth and columns, as cuBLASLt takes bytes

/// A zero point that is zero everywhere is none.
int without_zeros(const KernelQuery& query, int input) {
  if (input < 0) return -1;
  const Tensor* zero = query.constant(static_cast<size_t>(input));
  if (!zero) return input;
  const auto* bytes = zero->storage<uint8_t>();
  return std::all_of(bytes, bytes + zero->elements(), [](uint8_t byte) { return byte == 0; })
             ? -1
             : input;
}

struct Prepared {
  ProductForm form;
  ByteOperands with;
  DType out = DType::undefined;
  int64_t depth = 0, columns = 0;
  bool signs = false;    ///< A's bytes get signs first
  bool sums_a = false;   ///< sums of A's rows are needed
  bool finishes = true;  ///< else the sums are the results
  std::shared_ptr<cuda::Device> device;
  std::shared_ptr<DeviceMemory> b, sums_of_b;
  std::shared_ptr<const cuda::Program> program;
  cuda::Function sign_rows, finish_bytes;
  const Tensor* packed = nullptr;  ///< the node's B where nobody reads it
  std::unique_ptr<Kernel> own;     ///< for sizes that the library refuses
};

/// B by columns, as signed bytes.
Tensor turned(const Tensor& b, bool by_columns) {
  const Tensor columns = by_columns ? b : turned_bytes(b);
  const uint8_t flip = b.dtype() == DType::u8 ? 0x80 : 0;
  Tensor out(DType::i8, columns.shape());
  const auto* from = columns.storage<uint8_t>();
  std::transform(from, from + columns.elements(), out.storage<uint8_t>(),
                 [flip](uint8_t byte) { return static_cast<uint8_t>(byte ^ flip); });
  return out;
}

Tensor sums_of_rows(const Tensor& matrix) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Tensor out(DType::i32, Shape{rows});
  const int8_t* from = matrix.storage<int8_t>();
  for (int64_t i = 0; i < rows; ++i, from += columns) {
    int64_t sum = 0;
    for (int64_t k = 0; k < columns; ++k) sum += from[k];
    out.storage<int32_t>()[i] = static_cast<int32_t>(sum);
  }
  return out;
}

class BoundLibraryBytes : public BoundKernel {
 public:
  BoundLibraryBytes(std::shared_ptr<const Prepared> made, std::unique_ptr<BlasCall> call,
                    const ByteFinish& finish, int64_t rows, int64_t lines)
      : made_(std::move(made)),
        call_(std::move(call)),
        finish_(finish),
        rows_(rows),
        lines_(lines) {
    const auto take = [&](bool wanted, int64_t bytes) {
      const size_t at = bytes_;
      if (wanted) bytes_ += static_cast<size_t>((bytes + 63) / 64 * 64);
      return at;
    };
    signed_at_ = take(made_->signs, rows * made_->depth);
    sums_at_ = take(made_->sums_a, rows * 4);
    product_at_ = take(made_->finishes, rows * made_->columns * 4);
    workspace_at_ = take(true, static_cast<int64_t>(call_->workspace_bytes()));
  }
  size_t scratch_bytes() const override { return bytes_; }

  Fault run(const Arguments& arguments) noexcept override {
    const Prepared& made = *made_;
    auto* scratch = static_cast<std::byte*>(arguments.scratch);
    const void* a = arguments.in[made.form.a];
    void* sums_of_a = made.sums_a ? scratch + sums_at_ : nullptr;
    void* y = arguments.out[0];
    void* product = made.finishes ? scratch + product_at_ : y;
    const auto rows = cuda::size32(rows_);
    if (made.signs || made.sums_a) {
      void* to = made.signs ? scratch + signed_at_ : nullptr;
      cuda::Grid grid;
      grid.x = cuda::size32(cuda::ceil_div(rows_, 8));
      grid.threads = 256;
      cuda::launch(arguments, made.sign_rows, grid, a, to, sums_of_a, rows,
                   cuda::size32(made.depth / 4));
      if (to) a = to;
    }
    call_->run(
        *static_cast<cuda::CudaQueue*>(arguments.queue),
        {.a = made.b->address(), .b = a, .d = product, .workspace = scratch + workspace_at_});
    if (!made.finishes) return {};
    finish_.point_to(made.with, arguments);
    cuda::launch(arguments, made.finish_bytes, cuda::grid_of(rows_ * made.columns / 4), finish_,
                 static_cast<const void*>(product), static_cast<const void*>(sums_of_a),
                 static_cast<const void*>(made.sums_of_b->address()), y, rows,
                 cuda::size32(made.columns), cuda::size32(lines_),
                 static_cast<int32_t>(made.depth));
    return {};
  }

 private:
  std::shared_ptr<const Prepared> made_;
  std::unique_ptr<BlasCall> call_;
  ByteFinish finish_;
  int64_t rows_, lines_;
  size_t signed_at_ = 0, sums_at_ = 0, product_at_ = 0, workspace_at_ = 0, bytes_ = 0;
};

class LibraryByteKernel : public Kernel {
 public:
  explicit LibraryByteKernel(std::shared_ptr<const Prepared> made) : made_(std::move(made)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape& a = sizes.in[made_->form.a];
    constexpr int64_t kMost = int64_t{1} << 31;
    const int64_t rows = a.elements() / made_->depth;
    if (rows == 0 || a.elements() >= kMost || rows * made_->columns >= kMost)
      return made_->own->bind(sizes);
    const int64_t lines = a.rank() > 1 ? a[a.rank() - 2] : 1;
    const auto finish = byte_finish(made_->with, sizes, true, lines, made_->columns, made_->out);
    if (!finish) return made_->own->bind(sizes);
    auto call =
        BlasCall::find(*made_->device, {.compute = cuda::BlasCompute::i32,
                                        .a = {cuda::DataKind::i8, made_->depth, made_->columns},
                                        .b = {cuda::DataKind::i8, made_->depth, rows},
                                        .d = {cuda::DataKind::i32, made_->columns, rows},
                                        .turn_a = true});
    if (!call) return with_note(made_->own->bind(sizes), std::string(kBlasKnowsNoWay));
    return std::make_unique<BoundLibraryBytes>(made_, std::move(call), *finish, rows, lines);
  }
  bool packs(const Tensor& constant) const override { return &constant == made_->packed; }
  std::string detail() const override { return "int8 by cuBLASLt, sums in int32"; }

 private:
  std::shared_ptr<const Prepared> made_;
};

}  // namespace

Verdict accepts_library_bytes(const KernelQuery& query, const ProductForm& form,
                              const ByteOperands& with) {
  cuda::Device& device = cuda::device_of(query);
  const auto& report = device.tables().cublaslt.report;
  if (!report.usable()) return no("cuBLASLt " + report.problem);
  if (device.info().arch < 75) return no("the device lacks the matrix instruction of bytes");
  if (is_float8(query.in_dtype(form.a))) return no("floats of 8 bits");
  const Tensor* b = query.constant(form.b);
  if (!b || b->rank() != 2) return no("cuBLASLt takes bytes turned, and B is no constant matrix");
  for (const int64_t size : b->shape())
    if (size % kMultiple != 0 || size == 0)
      return no("cuBLASLt takes bytes in multiples of 4, not B of " + b->shape().text());
  if (query.in(form.a).ranked() && query.in(form.a).shape->empty()) return no("A is a scalar");
  return accepts_bytes(query, form, with);
}

std::unique_ptr<Kernel> prepare_library_bytes(const KernelQuery& query, const ProductForm& form,
                                              const ByteOperands& with, bool turned_b) {
  cuda::Device& device = cuda::device_of(query);
  if (!device.cublaslt()) return prepare_bytes(query, form, with);
  auto made = std::make_shared<Prepared>();
  made->device = device.shared_from_this();
  made->form = form;
  made->with = with;
  made->with.a_zero = without_zeros(query, with.a_zero);
  made->with.b_zero = without_zeros(query, with.b_zero);
  made->out = query.out_dtype();
  const Tensor b = turned(*query.constant(form.b), turned_b);
  made->columns = b.shape()[0];
  made->depth = b.shape()[1];
  made->b = cuda::uploaded(query, b);
  // Bytes without a sign have got one there, so that the own kernel reads them where they were.
  const bool same_bytes = query.in_dtype(form.b) == DType::i8;
  made->packed = same_bytes ? query.constant(form.b) : nullptr;
  made->own = prepare_bytes(query, form, with, same_bytes ? made->b : nullptr);
  made->sums_of_b = cuda::uploaded(query, sums_of_rows(b));
  made->signs = query.in_dtype(form.a) == DType::u8;
  made->sums_a = made->with.b_zero >= 0 || query.in_dtype(form.b) == DType::u8;
  made->finishes = with.a_scale >= 0 || made->signs || made->sums_a || made->with.a_zero >= 0;
  made->program = cuda::program_of(query, "byte_library.cu", byte_options(query, form, with));
  made->sign_rows = made->program->function("sign_rows");
  made->finish_bytes = made->program->function("finish_bytes");
  return std::make_unique<LibraryByteKernel>(std::move(made));
}

}  // namespace dais
