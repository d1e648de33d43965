#pragma once

#include "ir/op.h"
#include "ir/type.h"

namespace dais {

/// A sequence of the given tensors.
struct SequenceConstruct {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// A sequence of no tensors of some element type.
struct SequenceEmpty {
  DType dtype = DType::f32;
  static constexpr auto fields = std::tuple{field("dtype", &SequenceEmpty::dtype)};
  static const Op op;
};

/// (sequence, position): one element; negative positions count from the end.
struct SequenceAt {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// (sequence, tensor, position?): with the tensor put before that position, or at the end.
struct SequenceInsert {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// (sequence, position?): without that element, or without the last.
struct SequenceErase {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// How many elements there are: i64 scalar.
struct SequenceLength {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// (tensor, split?): pieces along an axis. A scalar split is the size of every piece but a smaller
/// last one; a list holds all sizes; without it pieces are of size 1 and keepdims = 0 drops the
/// axis.
struct SplitToSequence {
  int64_t axis = 0;
  bool keepdims = true;
  static constexpr auto fields = std::tuple{field("axis", &SplitToSequence::axis),
                                            field("keepdims", &SplitToSequence::keepdims)};
  static const Op op;
};

/// The tensors of a sequence joined along an axis, or stacked along a new one.
struct ConcatFromSequence {
  int64_t axis = 0;
  bool new_axis = false;
  static constexpr auto fields = std::tuple{required_field("axis", &ConcatFromSequence::axis),
                                            field("new_axis", &ConcatFromSequence::new_axis)};
  static const Op op;
};

/// Runs region 0 once for each element of the first input. Inputs: `formals` sequences (one element
/// is passed) and tensors (passed whole), then captures. Outputs: sequences of the results.
struct SequenceMap {
  int64_t formals = 1;
  static constexpr auto fields = std::tuple{field("formals", &SequenceMap::formals)};
  static const Op op;
};

class Inference;
class Call;
struct Datum;

/// In the element type of a sequence: a size that differs from element to element.
Dim varying();
/// The type of one element taken out: varying sizes are fresh.
Type element_type(Inference& c, size_t input);
/// A type that both are: sizes that differ are varying.
Type common_element(const Inference& c, const Type& a, const Type& b);
/// The elements of a sequence input.
const std::vector<Datum>& sequence_items(const Call& c, size_t input);

}  // namespace dais
