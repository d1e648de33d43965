#pragma once

#include <array>
#include <optional>
#include <string>

#include "ops/elementwise/loops.h"
#include "ops/elementwise/scalar_functions.h"
#include "runtime/kernel.h"

namespace dais {

/// One pass over a tile. Values are numbered: operands first, then the steps' results.
struct TileStep {
  enum class Kind : uint8_t { function, convert, load, store, wrap };
  Kind kind = Kind::function;
  Scalar scalar = Scalar::add;
  Lane lane = Lane::f32;        ///< of the operands (for `where`: of the data; for load: made)
  Lane out = Lane::f32;         ///< of the result; for store: that which is narrowed
  Narrow narrow = Narrow::f16;  ///< load, store, wrap
  std::array<int, 3> in{-1, -1, -1};
  std::array<double, 2> parameters{};
  /// Functions without a tile loop run the reference's loop.
  ScalarLoop<double> real = nullptr;
  ScalarLoop<int64_t> whole = nullptr;

  size_t operands() const { return in[1] < 0 ? 1 : in[2] < 0 ? 2 : 3; }
};

/// A value that the program reads: an input of the node, or a constant.
struct TileOperand {
  int input = -1;
  Tensor constant;
  DType dtype = DType::f32;
};

/// What an elementwise node, or a body of such nodes, does to each element of one iteration space:
/// a list of passes over tiles. All results have the shape of the space, all operands broadcast to
/// it. Independent of sizes; immutable.
struct TileProgram {
  std::vector<TileOperand> operands;
  std::vector<TileStep> steps;
  std::vector<int> results;  ///< per output: the value that is stored
  std::vector<DType> result_types;

  size_t element_size(int value) const;
};

inline constexpr size_t kMaxTileOperands = 24;
inline constexpr size_t kMaxTileSteps = 96;
inline constexpr size_t kMaxTileResults = 8;

/// Whether one node may be part of a program, looking at its op and types alone.
bool is_tile_node(const Node& node);

/// The program of an elementwise or Cast node, or of a Fused node whose body has only such; else
/// the reason why not. Constants of the program share the node's.
struct CompiledProgram {
  std::optional<TileProgram> program;
  std::string reason;
};
CompiledProgram compile_tiles(const Node& node);

/// Fixes sizes. Null when an operand does not broadcast to the outputs.
std::unique_ptr<BoundKernel> bind_tiles(const TileProgram& program, const TileLoops& loops,
                                        const Sizes& sizes);

}  // namespace dais
