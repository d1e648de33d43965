// The host's side of stft.cu: which lines are transformed, and the tables of their length.
#include <algorithm>
#include <bit>

#include "backends/cuda/row.h"
#include "ops/stft/fft.h"
#include "ops/stft/stft.h"
#include "ops/strided.h"

namespace dais {
namespace {

constexpr int64_t kNumberBytes = 16;     ///< of a complex number in shared memory
constexpr int64_t kBlockNumbers = 1024;  ///< that the short lines of a block make up together

/// As in stft.cu.
struct Lines {
  uint32_t run, outer, inner, step, count, parts;
};
struct Transform {
  uint32_t lines, together, length, padded;
  int bits, conjugate, mirror;
  uint32_t window;
  double scale;
};

/// What one node does for fixed sizes.
struct Task {
  int64_t lines, length;
  bool inverse, mirror;
  int64_t window;  ///< values of the window
  Lines from, to;
};

/// The one number of a constant input; `without` where it is left out.
int64_t number(const Node& node, size_t input, int64_t without) {
  return node.has(input) ? node.in[input]->constant()->to_ints()[0] : without;
}

/// Nothing: the reference says why not.
std::optional<Task> dft_task(const Node& node, const Sizes& sizes) {
  const auto& attrs = *node.as<Dft>();
  const Shape &in = sizes.in[0], &out = sizes.out[0];
  const auto rank = static_cast<int64_t>(in.rank());
  const int64_t named = number(node, 2, -2), at = named < 0 ? named + rank : named;
  if (at < 0 || at + 1 >= rank || (in.back() != 1 && in.back() != 2)) return std::nullopt;
  const auto axis = static_cast<size_t>(at);
  const bool to_real = attrs.inverse && attrs.onesided;
  const int64_t length = number(node, 1, to_real ? 2 * (in[axis] - 1) : in[axis]);
  const int64_t outer = in.elements(0, axis), inner = in.elements(axis + 1, in.rank() - 1);
  const auto side = [&](const Shape& shape) {
    const int64_t parts = shape.back(), count = shape[axis];
    return Lines{cuda::size32(inner), cuda::size32(count * inner * parts),
                 cuda::size32(parts), cuda::size32(inner * parts),
                 cuda::size32(count), cuda::size32(parts)};
  };
  return Task{outer * inner, length, attrs.inverse, to_real, 0, side(in), side(out)};
}

std::optional<Task> stft_task(const Node& node, const Sizes& sizes) {
  const Shape &in = sizes.in[0], &out = sizes.out[0];
  if (in.rank() != 3 || (in[2] != 1 && in[2] != 2)) return std::nullopt;
  const int64_t window = node.has(2) ? sizes.in[2].elements() : 0;
  const int64_t length = number(node, 3, node.has(2) ? window : in[1]), step = number(node, 1, 0);
  if (step < 1 || length < 1 || length > in[1] || window > length) return std::nullopt;
  const int64_t frames = (in[1] - length) / step + 1, bins = out[2];
  const Lines from{cuda::size32(frames), cuda::size32(in[1] * in[2]), cuda::size32(step * in[2]),
                   cuda::size32(in[2]),  cuda::size32(length),        cuda::size32(in[2])};
  const Lines to{cuda::size32(frames),   cuda::size32(frames * bins * 2),
                 cuda::size32(bins * 2), 2,
                 cuda::size32(bins),     2};
  return Task{in[0] * frames, length, false, false, window, from, to};
}

struct Prepared {
  const Node& node;
  const cuda::CudaBackend& backend;
  std::shared_ptr<const cuda::Program> program;
  cuda::Function function;
  std::optional<Task> (*task)(const Node&, const Sizes&);
};

class BoundDft : public BoundKernel {
 public:
  BoundDft(std::shared_ptr<const Prepared> made, const Task& task)
      : made_(std::move(made)), from_(task.from), to_(task.to) {
    const Fft fft(static_cast<size_t>(task.length), task.inverse);
    const auto padded = static_cast<int64_t>(fft.padded());
    const int64_t together =
        std::clamp<int64_t>(kBlockNumbers / padded, 1, std::max<int64_t>(task.lines, 1));
    transform_ = {.lines = cuda::size32(task.lines),
                  .together = cuda::size32(together),
                  .length = cuda::size32(task.length),
                  .padded = cuda::size32(padded),
                  .bits = std::countr_zero(fft.padded()),
                  .conjugate = task.inverse,
                  .mirror = task.mirror,
                  .window = cuda::size32(task.window),
                  .scale = 1};
    if (task.inverse) transform_.scale /= static_cast<double>(task.length);
    // The way back from the spectrum of the convolution.
    if (!fft.chirp().empty()) transform_.scale /= static_cast<double>(padded);
    grid_.x = static_cast<unsigned>(cuda::ceil_div(task.lines, together));
    grid_.threads = cuda::row_threads(together * padded / 2);
    grid_.shared_bytes = static_cast<unsigned>(together * padded * kNumberBytes);
    roots_ = table(fft.roots());
    chirp_ = table(fft.chirp());
    spectrum_ = table(fft.spectrum());
  }

  Fault run(const Arguments& arguments) noexcept override {
    const auto at = [](const std::shared_ptr<DeviceMemory>& memory) {
      return memory ? memory->address() : static_cast<const void*>(nullptr);
    };
    const void* window = transform_.window > 0 ? arguments.in[2] : nullptr;
    if (grid_.x > 0)
      cuda::launch(arguments, made_->function, grid_, arguments.in[0], window, arguments.out[0],
                   at(roots_), at(chirp_), at(spectrum_), transform_, from_, to_);
    return {};
  }

 private:
  std::shared_ptr<DeviceMemory> table(const std::vector<std::complex<double>>& numbers) const {
    if (numbers.empty()) return nullptr;
    Tensor list(DType::c128, Shape{static_cast<int64_t>(numbers.size())});
    std::copy(numbers.begin(), numbers.end(), list.data<std::complex<double>>().begin());
    return made_->backend.upload(list, "roots of unity of " + made_->node.where());
  }

  std::shared_ptr<const Prepared> made_;
  Lines from_, to_;
  Transform transform_{};
  cuda::Grid grid_;
  std::shared_ptr<DeviceMemory> roots_, chirp_, spectrum_;
};

class DftKernel : public Kernel {
 public:
  explicit DftKernel(std::shared_ptr<const Prepared> made) : made_(std::move(made)) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    constexpr int64_t kMost = int64_t{1} << 31;
    if (sizes.in[0].elements() >= kMost || sizes.out[0].elements() >= kMost) return nullptr;
    const auto task = made_->task(made_->node, sizes);
    if (!task || task->length < 1) return nullptr;
    // A line and its padding must fit; the padding is less than four times as long.
    const int64_t most = made_->backend.device().info().max_shared_bytes / kNumberBytes;
    const auto length = static_cast<uint64_t>(task->length);
    if (task->length > most || static_cast<int64_t>(std::bit_ceil(
                                   std::has_single_bit(length) ? length : 2 * length - 1)) > most)
      return nullptr;
    return std::make_unique<BoundDft>(made_, *task);
  }

 private:
  std::shared_ptr<const Prepared> made_;
};

template <size_t... constants>
Verdict accepts(const KernelQuery& query) {
  if (query.in_dtype(0) != DType::f64)
    if (const Verdict floats = cuda::accepts_floats(query); !floats) return floats;
  const auto known = [&](size_t i) {
    const Tensor* constant = query.constant(i);
    return !query.node.has(i) || (constant && constant->elements() == 1);
  };
  if (!(known(constants) && ...)) return no("the length, step or axis is not constant");
  return query.in(0).ranked() ? yes() : no("the rank is unknown");
}

Verdict accepts_stft(const KernelQuery& query) {
  if (query.node.has(2) && query.in_dtype(2) != query.in_dtype(0))
    return no("a window of another type");
  return accepts<1, 3>(query);
}

template <auto task>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const bool wide = query.in_dtype(0) == DType::f64;
  auto program =
      cuda::program_of(query, "stft.cu",
                       {wide ? "-DELEMENT=double" : cuda::element_option(query.in_dtype(0)),
                        wide ? "-DWIDE=double" : "-DWIDE=float"});
  const auto& backend = *static_cast<const cuda::CudaBackend*>(query.backend);
  const cuda::Function function =
      program->function("dft", backend.device().info().max_shared_bytes);
  return std::make_unique<DftKernel>(std::make_shared<Prepared>(
      Prepared{query.node, backend, std::move(program), function, task}));
}

}  // namespace

namespace ops {
void register_stft_cuda(Kernels& kernels) {
  kernels.add(
      {.name = "dft/cuda", .op = &Dft::op, .accepts = accepts<1, 2>, .prepare = prepare<dft_task>});
  kernels.add({.name = "stft/cuda",
               .op = &Stft::op,
               .accepts = accepts_stft,
               .prepare = prepare<stft_task>});
}
}  // namespace ops
}  // namespace dais
