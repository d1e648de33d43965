// Runs tile programs: the space is cut into tiles that fit the first-level cache; every step passes
// over one tile. Operands are read where they lie when a tile sees them as one run or as one
// repeated element, and are spread into a buffer otherwise.
#include <algorithm>
#include <cstring>

#include "base/threads.h"
#include "ops/elementwise/program_cpu.h"
#include "ops/strided.h"

namespace dais {
namespace {

constexpr size_t kStackBytes = 96 * 1024;
constexpr size_t kCacheBytes = 32 * 1024;
constexpr int64_t kLongestTile = 8192;
constexpr int64_t kShortestTile = 128;
/// Elements of a cheap pass that are worth waking another thread for.
constexpr int64_t kParallelElements = 32768;
constexpr size_t kMaxValues = 2 * kMaxTileOperands + kMaxTileSteps;

int64_t weight(const TileStep& step) {
  if (step.kind != TileStep::Kind::function) return 1;
  switch (step.scalar) {
    case Scalar::exp:
    case Scalar::log:
    case Scalar::tanh:
    case Scalar::erf:
    case Scalar::sigmoid:
    case Scalar::swish:
    case Scalar::gelu:
    case Scalar::gelu_tanh:
    case Scalar::elu:
    case Scalar::selu:
    case Scalar::celu:
    case Scalar::softplus:
    case Scalar::mish:
    case Scalar::sin:
    case Scalar::cos: return 6;
    case Scalar::pow: return 40;
    default: return step.real || step.whole ? 20 : 1;
  }
}

/// The iteration space after merging axes that all operands walk evenly.
struct Space {
  std::vector<int64_t> sizes;
  std::vector<std::vector<int64_t>> strides;  ///< per operand

  int64_t inner() const { return sizes.back(); }
};

std::optional<Space> make_space(const Shape& full, std::span<const Shape> operands) {
  Space space;
  space.strides.resize(operands.size());
  std::vector<Strides> steps;
  for (const Shape& operand : operands) {
    if (operand.elements() == 1) {
      steps.emplace_back();
      continue;
    }
    if (operand.rank() > full.rank()) return std::nullopt;
    const size_t lead = full.rank() - operand.rank();
    for (size_t axis = 0; axis < operand.rank(); ++axis)
      if (operand[axis] != 1 && operand[axis] != full[lead + axis]) return std::nullopt;
    steps.push_back(broadcast_strides(operand, full));
  }
  for (size_t axis = 0; axis < full.rank(); ++axis) {
    if (full[axis] == 1) continue;
    bool even = !space.sizes.empty();
    for (size_t k = 0; k < operands.size() && even; ++k)
      even = space.strides[k].back() == steps[k][axis] * full[axis];
    if (!even) {
      space.sizes.push_back(1);
      for (auto& strides : space.strides) strides.push_back(0);
    }
    space.sizes.back() *= full[axis];
    for (size_t k = 0; k < operands.size(); ++k) space.strides[k].back() = steps[k][axis];
  }
  if (space.sizes.empty()) {
    space.sizes.push_back(1);
    for (auto& strides : space.strides) strides.push_back(0);
  }
  return space;
}

/// How a step sees an operand.
struct Source {
  enum class Form : uint8_t {
    dense,   ///< runs along with the results
    scalar,  ///< one element for the whole space
    row,     ///< the run that its row starts at (a tile lies within one row)
    spread,  ///< copied to a buffer, tile by tile
    fixed,   ///< copied to a buffer once: the same for every tile
  };
  size_t operand = 0;
  bool expanded = false;
  Form form = Form::dense;
  int64_t size = 4;   ///< bytes of an element
  size_t buffer = 0;  ///< its offset
};

template <typename T>
void spread_row(const std::byte* from, int64_t step, int64_t n, std::byte* to) {
  T* out = reinterpret_cast<T*>(to);
  const T* in = reinterpret_cast<const T*>(from);
  if (step == 0)
    std::fill_n(out, n, *in);
  else if (n > 16)
    std::memcpy(out, in, static_cast<size_t>(n) * sizeof(T));
  else
    for (int64_t i = 0; i < n; ++i) out[i] = in[i];
}

using SpreadRow = void (*)(const std::byte*, int64_t, int64_t, std::byte*);
SpreadRow spread_row_of(int64_t size) {
  switch (size) {
    case 1: return spread_row<uint8_t>;
    case 2: return spread_row<uint16_t>;
    case 4: return spread_row<uint32_t>;
    default: return spread_row<uint64_t>;
  }
}

class BoundTiles : public BoundKernel {
 public:
  BoundTiles(const TileProgram& program, Space space, std::span<const int> overwrites)
      : program_(program),
        space_(std::move(space)),
        overwrites_(overwrites.begin(), overwrites.end()) {}

  /// False when the program needs more memory than a tile may take.
  bool prepare(const TileLoops& loops) {
    total_ = 1;
    for (const int64_t size : space_.sizes) total_ *= size;
    choose_loops(loops);
    place_results();
    return cut_tiles();
  }

  Fault run(const Arguments& arguments) noexcept override {
    if (total_ == 0) return {};
    parallel_for(tiles_, grain_,
                 [&](int64_t first, int64_t last) { run_tiles(arguments, first, last); });
    return {};
  }

 private:
  struct Pass {
    TileLoop loop = nullptr;
    ScalarLoop<double> real = nullptr;
    ScalarLoop<int64_t> whole = nullptr;
    std::array<int, 3> in{-1, -1, -1};  ///< sources, then passes
    size_t operands = 1;
    const double* parameters = nullptr;
    int64_t size = 4;   ///< bytes of a result
    int result = -1;    ///< the output that it is written to, or
    size_t buffer = 0;  ///< the buffer
  };
  struct Copy {
    int value;
    size_t result;
    int64_t size;
  };

  bool repeats(size_t operand) const {
    const auto& strides = space_.strides[operand];
    if (strides.back() != 0) return false;
    return within_rows() ||
           std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 0; });
  }

  /// Long rows are cut; short ones are put together.
  bool within_rows() const { return space_.sizes.size() > 1 && space_.inner() >= 512; }

  int source(size_t operand, bool expanded) {
    for (size_t i = 0; i < sources_.size(); ++i)
      if (sources_[i].operand == operand && sources_[i].expanded == expanded)
        return static_cast<int>(i);
    Source made{.operand = operand, .expanded = expanded};
    made.size = static_cast<int64_t>(program_.element_size(static_cast<int>(operand)));
    made.form = form_of(operand, expanded);
    sources_.push_back(made);
    return static_cast<int>(sources_.size()) - 1;
  }

  Source::Form form_of(size_t operand, bool expanded) const {
    using Form = Source::Form;
    const auto& strides = space_.strides[operand];
    const bool still =
        std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 0; });
    if (still) return expanded ? Form::fixed : Form::scalar;
    int64_t dense = 1;
    bool is_dense = true;
    for (size_t axis = strides.size(); axis-- > 0;) {
      is_dense = is_dense && strides[axis] == dense;
      dense *= space_.sizes[axis];
    }
    if (is_dense) return Form::dense;
    if (within_rows()) return expanded && strides.back() == 0 ? Form::spread : Form::row;
    const bool periodic =
        std::all_of(strides.begin(), strides.end() - 1, [](int64_t stride) { return stride == 0; });
    return periodic ? Form::fixed : Form::spread;
  }

  static constexpr int kFirstPass = 10000;

  void choose_loops(const TileLoops& loops) {
    const auto count = static_cast<int>(program_.operands.size());
    for (const TileStep& step : program_.steps) {
      Pass pass;
      pass.operands = step.operands();
      pass.real = step.real;
      pass.whole = step.whole;
      pass.parameters = step.parameters.data();
      unsigned mask = 0;
      for (size_t i = 0; i < pass.operands; ++i)
        if (step.in[i] < count && repeats(static_cast<size_t>(step.in[i]))) mask |= 1U << i;
      mask = choose_loop(loops, step, mask, pass);
      for (size_t i = 0; i < pass.operands; ++i) {
        const int value = step.in[i];
        const bool single = (mask >> i & 1) != 0;
        pass.in[i] = value >= count ? kFirstPass + value - count
                                    : source(static_cast<size_t>(value),
                                             !single && repeats(static_cast<size_t>(value)));
      }
      pass.size =
          static_cast<int64_t>(program_.element_size(count + static_cast<int>(passes_.size())));
      weight_ += weight(step);
      passes_.push_back(pass);
    }
    for (Pass& pass : passes_)
      for (int& in : pass.in)
        if (in >= kFirstPass) in += static_cast<int>(sources_.size()) - kFirstPass;
  }

  /// Sets the pass's loop; gives the operands that it takes as single elements.
  static unsigned choose_loop(const TileLoops& loops, const TileStep& step, unsigned mask,
                              Pass& pass) {
    const auto lane = static_cast<size_t>(step.lane), out = static_cast<size_t>(step.out);
    const auto narrow = static_cast<size_t>(step.narrow);
    switch (step.kind) {
      case TileStep::Kind::convert: pass.loop = loops.convert[lane][out]; return 0;
      case TileStep::Kind::load: pass.loop = loops.load[narrow]; return 0;
      case TileStep::Kind::store: pass.loop = loops.store[narrow]; return 0;
      case TileStep::Kind::wrap: pass.loop = loops.wrap[narrow]; return 0;
      case TileStep::Kind::function: break;
    }
    if (step.real || step.whole) return 0;
    for (unsigned tried = mask; tried != 0; tried = (tried - 1) & mask)
      if ((pass.loop = loops.function(step.scalar, step.lane, tried))) return tried;
    pass.loop = loops.function(step.scalar, step.lane, 0);
    return 0;
  }

  /// Results go straight to their outputs, unless that is the memory of an input which a later pass
  /// reads.
  void place_results() {
    const auto base = static_cast<int>(sources_.size());
    const auto count = static_cast<int>(program_.operands.size());
    for (size_t i = 0; i < program_.results.size(); ++i) {
      const size_t at = static_cast<size_t>(program_.results[i] - count);
      Pass& pass = passes_[at];
      if (pass.result >= 0 || read_after(i, at))
        copies_.push_back({base + static_cast<int>(at), i, pass.size});
      else
        pass.result = static_cast<int>(i);
    }
    place_buffers();
  }

  /// Whether a pass behind pass `at` reads the memory that a result lies in.
  bool read_after(size_t result, size_t at) const {
    if (result >= overwrites_.size() || overwrites_[result] < 0) return false;
    for (size_t k = at + 1; k < passes_.size(); ++k)
      for (const int in : passes_[k].in)
        if (in >= 0 && static_cast<size_t>(in) < sources_.size() &&
            program_.operands[sources_[static_cast<size_t>(in)].operand].input ==
                overwrites_[result])
          return true;
    return false;
  }

  /// Buffers of passes are reused after their last reader; sizes are in bytes per tile element.
  void place_buffers() {
    for (Source& source : sources_)
      if (source.form == Source::Form::spread || source.form == Source::Form::fixed) {
        source.buffer = bytes_;
        bytes_ += static_cast<size_t>(source.size);
      }
    const size_t base = sources_.size();
    std::vector<size_t> last(passes_.size(), 0);
    for (size_t k = 0; k < passes_.size(); ++k)
      for (const int in : passes_[k].in)
        if (in >= static_cast<int>(base)) last[static_cast<size_t>(in) - base] = k;
    for (const Copy& copy : copies_) last[static_cast<size_t>(copy.value) - base] = passes_.size();
    std::vector<std::pair<size_t, size_t>> held;  // offset of 8 bytes, free after this pass
    for (size_t k = 0; k < passes_.size(); ++k) {
      if (passes_[k].result >= 0) continue;
      auto place =
          std::find_if(held.begin(), held.end(), [&](const auto& slot) { return slot.second < k; });
      if (place == held.end()) {
        held.emplace_back(bytes_, 0);
        bytes_ += 8;
        place = held.end() - 1;
      }
      place->second = std::max(last[k], k);
      passes_[k].buffer = place->first;
    }
  }

  bool cut_tiles() {
    if (total_ == 0) return true;
    int64_t longest = kLongestTile;
    if (bytes_ > 0) {
      longest = std::clamp<int64_t>(static_cast<int64_t>(kCacheBytes / bytes_) / 64 * 64,
                                    kShortestTile, 2048);
      if (static_cast<size_t>(longest) * bytes_ > kStackBytes) return false;
    }
    const int64_t inner = space_.inner(), rows = inner > 0 ? total_ / inner : 0;
    if (space_.sizes.size() == 1 || within_rows()) {
      pieces_ = std::max<int64_t>(1, (inner + longest - 1) / longest);
      tile_ = ((inner + pieces_ - 1) / pieces_ + 15) / 16 * 16;
      tile_ = std::min(tile_, longest);
      pieces_ = std::max<int64_t>(1, (inner + tile_ - 1) / tile_);
      tiles_ = rows * pieces_;
    } else {
      rows_per_tile_ = std::max<int64_t>(1, longest / inner);
      if (inner > longest) return false;
      tile_ = rows_per_tile_ * inner;
      tiles_ = (rows + rows_per_tile_ - 1) / rows_per_tile_;
    }
    buffer_room_ = (static_cast<size_t>(tile_) + 15) / 16 * 16;
    const int64_t elements = std::max<int64_t>(1024, kParallelElements / (1 + weight_));
    grain_ = std::max<int64_t>(1, elements / std::max<int64_t>(tile_, 1));
    return true;
  }

  int64_t row_offset(size_t operand, int64_t row) const {
    const auto& strides = space_.strides[operand];
    int64_t offset = 0;
    for (size_t axis = strides.size() - 1; axis-- > 0 && row > 0;) {
      const int64_t size = space_.sizes[axis];
      if (axis == 0) return offset + row * strides[0];
      offset += row % size * strides[axis];
      row /= size;
    }
    return offset;
  }

  void spread(const Source& source, const std::byte* from, int64_t first_row, int64_t n,
              std::byte* to) const {
    const int64_t step = space_.strides[source.operand].back();
    const SpreadRow copy = spread_row_of(source.size);
    const int64_t inner = rows_per_tile_ > 0 ? space_.inner() : n;
    for (int64_t done = 0, row = first_row; done < n; done += inner, ++row)
      copy(from + row_offset(source.operand, row) * source.size, step, inner,
           to + done * source.size);
  }

  void run_tiles(const Arguments& arguments, int64_t first, int64_t last) const {
    alignas(64) std::byte memory[kStackBytes];
    const void* at[kMaxValues];
    const std::byte* bases[2 * kMaxTileOperands];
    for (size_t i = 0; i < sources_.size(); ++i) {
      const Source& source = sources_[i];
      const TileOperand& operand = program_.operands[source.operand];
      bases[i] = static_cast<const std::byte*>(
          operand.input >= 0 ? arguments.in[static_cast<size_t>(operand.input)]
                             : operand.constant.raw());
      at[i] = bases[i];
      if (source.form != Source::Form::fixed) continue;
      std::byte* buffer = memory + source.buffer * buffer_room_;
      const int64_t n = std::min(tile_, total_);
      if (rows_per_tile_ > 0)
        spread(source, bases[i], 0, n, buffer);
      else
        spread_row_of(source.size)(bases[i], 0, n, buffer);
      at[i] = buffer;
    }
    for (int64_t tile = first; tile < last; ++tile) run_tile(arguments, tile, bases, at, memory);
  }

  void run_tile(const Arguments& arguments, int64_t tile, const std::byte* const* bases,
                const void** at, std::byte* memory) const {
    int64_t row, column = 0, n = 0;
    if (rows_per_tile_ > 0) {
      row = tile * rows_per_tile_;
      n = std::min(tile_, total_ - tile * tile_);
    } else {
      row = tile / pieces_;
      column = tile % pieces_ * tile_;
      n = std::min(tile_, space_.inner() - column);
    }
    const int64_t start = row * space_.inner() + column;
    for (size_t i = 0; i < sources_.size(); ++i) {
      const Source& source = sources_[i];
      if (source.form == Source::Form::dense) {
        at[i] = bases[i] + start * source.size;
      } else if (source.form == Source::Form::row) {
        const int64_t along = space_.strides[source.operand].back() * column;
        at[i] = bases[i] + (row_offset(source.operand, row) + along) * source.size;
      } else if (source.form == Source::Form::spread) {
        std::byte* buffer = memory + source.buffer * buffer_room_;
        spread(source, bases[i], row, n, buffer);
        at[i] = buffer;
      }
    }
    const void** results = at + sources_.size();
    for (size_t k = 0; k < passes_.size(); ++k) {
      const Pass& pass = passes_[k];
      std::byte* out =
          pass.result >= 0
              ? static_cast<std::byte*>(arguments.out[static_cast<size_t>(pass.result)]) +
                    start * pass.size
              : memory + pass.buffer * buffer_room_;
      run_pass(pass, at, out, n);
      results[k] = out;
    }
    for (const Copy& copy : copies_)
      std::memcpy(static_cast<std::byte*>(arguments.out[copy.result]) + start * copy.size,
                  at[copy.value], static_cast<size_t>(n * copy.size));
  }

  static void run_pass(const Pass& pass, const void* const* at, std::byte* out, int64_t n) {
    const void* in[3] = {nullptr, nullptr, nullptr};
    for (size_t i = 0; i < pass.operands; ++i) in[i] = at[pass.in[i]];
    if (pass.loop) return pass.loop(in, out, n, pass.parameters);
    if (pass.real) {
      const double* wide[3];
      for (size_t i = 0; i < 3; ++i) wide[i] = static_cast<const double*>(in[i]);
      return pass.real(wide, reinterpret_cast<double*>(out), n, pass.parameters);
    }
    const int64_t* wide[3];
    for (size_t i = 0; i < 3; ++i) wide[i] = static_cast<const int64_t*>(in[i]);
    pass.whole(wide, reinterpret_cast<int64_t*>(out), n, pass.parameters);
  }

  const TileProgram& program_;
  Space space_;
  std::vector<int> overwrites_;
  std::vector<Source> sources_;
  std::vector<Pass> passes_;
  std::vector<Copy> copies_;
  size_t bytes_ = 0;  ///< of all buffers, per element of a tile
  int64_t total_ = 0, weight_ = 0;
  int64_t tile_ = 0, tiles_ = 0, grain_ = 1;
  size_t buffer_room_ = 0;  ///< elements between buffers: tile_, and aligned for every type
  int64_t pieces_ = 1, rows_per_tile_ = 0;
};

}  // namespace

std::unique_ptr<BoundKernel> bind_tiles(const TileProgram& program, const TileLoops& loops,
                                        const Sizes& sizes) {
  std::vector<Shape> operands;
  for (const TileOperand& operand : program.operands)
    operands.push_back(operand.input >= 0 ? sizes.in[static_cast<size_t>(operand.input)]
                                          : operand.constant.shape());
  for (const Shape& shape : sizes.out)
    if (!(shape == sizes.out[0])) return nullptr;
  auto space = make_space(sizes.out[0], operands);
  if (!space) return nullptr;
  auto bound = std::make_unique<BoundTiles>(program, std::move(*space), sizes.overwrites);
  return bound->prepare(loops) ? std::move(bound) : nullptr;
}

}  // namespace dais
