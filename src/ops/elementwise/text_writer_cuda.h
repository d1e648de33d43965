#pragma once

#include <unordered_map>

#include "ir/graph.h"
#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/text_cuda.h"

namespace dais {

/// What an element type is in memory and while it is computed with; null: no kernel has it.
struct ElementText {
  const char* memory = nullptr;
  const char* lane = nullptr;
};
ElementText element_text(DType dtype);
/// Whether a type is computed with in floating point.
bool real_lane(DType dtype);

inline constexpr size_t kMostOperands = 20;
inline constexpr size_t kMostNumbers = 64;
inline constexpr size_t kMostResults = 8;

/// Elementwise nodes as lines of a kernel: operands, numbers and results as they are met, one
/// definition for each node. What surrounds the lines is for the derived writer.
class TextWriter {
 public:
  explicit TextWriter(const Node& node) : node_(node) {}
  virtual ~TextWriter() = default;

 protected:
  bool fail(std::string reason);
  std::string number(double real);
  std::string add_number(int64_t bits);
  std::string parameter(double value, const char* lane);
  /// A constant of one element is a number of the launch, not of the text.
  std::string constant(const Tensor& tensor);
  /// The expression of a value; empty: not possible.
  std::string read(const Value* value);
  bool add(const Node& node);
  std::string variadic(const Node& node, const ScalarCall& call, const std::string& name);
  std::string plain(const Node& node, const ScalarCall& call, const std::string& name, DType in);
  /// A bound of Clip may have any rank with one element; a rank above the result's would widen it.
  bool bound(const Value& value);
  std::string limit(DType dtype, bool low);
  /// Integers are computed in 64 bits and then wrapped to their type.
  static std::string wrapped(std::string expression, DType dtype);
  bool add_cast(const Node& node, const Cast&);
  static std::string converted(const std::string& x, DType from, DType to);
  bool define(const Value* value, const std::string& expression);
  bool add_result(const Value* value);
  /// How lines call operand `k`, whose value that is.
  virtual std::string operand_name(size_t k, const Value& value) = 0;
  /// The text that a definition of this value goes to.
  virtual std::string& lines_of(const Value& value);
  /// Finds the node's inputs, or those of the body of a Fused node.
  void list_inputs();

  const Node& node_;
  ElementwiseText out_;
  std::string reason_, body_;
  size_t lines_ = 0;
  std::vector<std::string> results_;
  std::unordered_map<const Value*, int> inputs_;
  std::unordered_map<const Value*, std::string> names_;
};

inline std::string text_of(size_t number) { return std::to_string(number); }

}  // namespace dais
