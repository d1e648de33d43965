#include "ops/transpose/moves_cuda.h"

#include "backends/cuda/row.h"

namespace dais {
namespace {

constexpr size_t kMostAxes = 8;
constexpr int64_t kWide = 16;  ///< bytes that one thread moves at once

/// As in copies.cu.
struct Box {
  uint32_t sizes[kMostAxes] = {};
  int32_t from_steps[kMostAxes] = {};
  int32_t to_steps[kMostAxes] = {};
  int rank = 0;
};

/// One launch: where it starts in bytes, and a box in words.
struct Launch {
  size_t in = 0, out = 0;
  int64_t from = 0, to = 0, count = 0;
  bool wide = false;
  Box box = {};
};

struct Axis {
  int64_t size, from, to;
};

/// Axes longer than 1, the last one first, neighbours merged where both sides walk them evenly.
std::vector<Axis> axes_of(const Move& move) {
  std::vector<Axis> out;
  for (size_t i = move.space.rank(); i-- > 0;) {
    const Axis axis{move.space[i], move.from_steps[i], move.to_steps[i]};
    if (axis.size == 1) continue;
    if (!out.empty() && axis.from == out.back().from * out.back().size &&
        axis.to == out.back().to * out.back().size)
      out.back().size *= axis.size;
    else
      out.push_back(axis);
  }
  if (out.empty()) out.push_back({1, 1, 1});
  return out;
}

/// Whether every address is a multiple of the wide word, and runs are made of such.
bool goes_wide(const Move& move, const std::vector<Axis>& axes, int64_t element) {
  const auto fits = [&](int64_t elements) { return elements * element % kWide == 0; };
  bool out = element < kWide && axes[0].from == 1 && axes[0].to == 1 && fits(axes[0].size) &&
             fits(move.from) && fits(move.to);
  for (size_t i = 1; i < axes.size(); ++i) out = out && fits(axes[i].from) && fits(axes[i].to);
  return out;
}

std::optional<Launch> launch_of(const Move& move, int64_t element) {
  std::vector<Axis> axes = axes_of(move);
  if (axes.size() > kMostAxes) return std::nullopt;
  Launch out{.in = move.in,
             .out = move.out,
             .from = move.from * element,
             .to = move.to * element,
             .count = move.space.elements()};
  out.wide = goes_wide(move, axes, element);
  if (out.wide) {
    const int64_t together = kWide / element;
    axes[0].size /= together;
    out.count /= together;
    for (size_t i = 1; i < axes.size(); ++i) {
      axes[i].from /= together;
      axes[i].to /= together;
    }
  }
  out.box.rank = static_cast<int>(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    out.box.sizes[i] = cuda::size32(axes[i].size);
    out.box.from_steps[i] = static_cast<int32_t>(axes[i].from);
    out.box.to_steps[i] = static_cast<int32_t>(axes[i].to);
  }
  return out;
}

/// The kernel for words of the element's size, and that for wide ones.
struct Made {
  std::shared_ptr<const cuda::Program> programs[2];
  cuda::Function functions[2];
};

class BoundMoves : public BoundKernel {
 public:
  BoundMoves(std::shared_ptr<const Made> made, std::vector<Launch> launches)
      : made_(std::move(made)), launches_(std::move(launches)) {}

  Fault run(const Arguments& arguments) noexcept override {
    for (const Launch& launch : launches_) {
      const void* from = static_cast<const std::byte*>(arguments.in[launch.in]) + launch.from;
      void* to = static_cast<std::byte*>(arguments.out[launch.out]) + launch.to;
      cuda::launch(arguments, made_->functions[launch.wide], cuda::grid_of(launch.count), from, to,
                   cuda::size32(launch.count), launch.box);
    }
    return {};
  }

 private:
  std::shared_ptr<const Made> made_;
  std::vector<Launch> launches_;
};

class MovesKernel : public Kernel {
 public:
  MovesKernel(const KernelQuery& query, ListMoves list) : node_(query.node), list_(list) {
    auto made = std::make_shared<Made>();
    const size_t element = dtype_size(query.in_dtype(0));
    for (const bool wide : {false, true}) {
      made->programs[wide] =
          cuda::program_of(query, "copies.cu", {cuda::word_option(wide ? kWide : element)});
      made->functions[wide] = made->programs[wide]->function("copy_box");
    }
    made_ = std::move(made);
  }

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    constexpr int64_t kMostElements = int64_t{1} << 31;
    for (const auto& shapes : {sizes.in, sizes.out})
      for (const Shape& shape : shapes)
        if (shape.elements() >= kMostElements) return nullptr;
    const auto moves = list_(node_, sizes.in, sizes.out);
    if (!moves) return nullptr;
    std::vector<Launch> launches;
    for (const Move& move : *moves) {
      if (move.space.elements() == 0) continue;
      const auto launch =
          launch_of(move, static_cast<int64_t>(dtype_size(node_.in[0]->type.dtype)));
      if (!launch) return nullptr;
      launches.push_back(*launch);
    }
    return std::make_unique<BoundMoves>(made_, std::move(launches));
  }
  std::string detail() const override { return "copies.cu"; }

 private:
  const Node& node_;
  ListMoves list_;
  std::shared_ptr<const Made> made_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_moves_cuda(const KernelQuery& query, ListMoves list) {
  return std::make_unique<MovesKernel>(query, list);
}

}  // namespace dais
