#pragma once

#include <span>

#include "ir/graph.h"

namespace dais {

/// What an op's `infer` sees and sets. Works on symbolic sizes while building and on plain numbers
/// while running; the rules are the same. An infer function first sets each output's element type
/// (so that it stands even when a rank is unknown), then its shape.
class Inference {
 public:
  /// A value known only by type (and perhaps contents) for inference without a graph.
  struct Input {
    const Type* type = nullptr;  ///< null: left out
    std::optional<Dims> known;
    const Tensor* constant = nullptr;
  };
  Inference(const Node& node, std::vector<Input> inputs, size_t outputs,
            std::function<Dim()> fresh);

  const Node& node;

  size_t inputs() const { return inputs_.size(); }
  size_t outputs() const { return types_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].type != nullptr; }
  /// Throws `invalid_model` when input i is left out.
  const Type& type(size_t i) const;
  DType dtype(size_t i) const;
  bool ranked(size_t i) const { return type(i).ranked(); }
  /// Sizes of input i. Leaves `infer` (keeping what was set so far) when its rank is unknown.
  const Dims& shape(size_t i) const;
  size_t rank(size_t i) const { return shape(i).size(); }
  /// Integer contents when known while building: from constants or from shape arithmetic.
  std::optional<Dims> known(size_t i) const;
  /// known() where every entry is a number.
  std::optional<std::vector<int64_t>> known_ints(size_t i) const;
  const Tensor* constant(size_t i) const { return has(i) ? inputs_[i].constant : nullptr; }
  template <typename Struct>
  const Struct& attrs() const {
    return *static_cast<const Struct*>(node.attrs.data());
  }

  void set(size_t i, Type type);
  void set(size_t i, DType dtype) { set(i, Type::tensor(dtype)); }
  void set(size_t i, DType dtype, Dims shape) { set(i, Type::tensor(dtype, std::move(shape))); }
  /// Integer contents of an output, at most 64.
  void set_known(size_t i, Dims values);
  /// A size that depends on data.
  Dim fresh() { return fresh_(); }

  /// Broadcast of two shapes, with an error naming both when constant sizes clash.
  Dims broadcast(const Dims& a, const Dims& b) const;
  size_t axis(int64_t axis, size_t rank) const;
  [[noreturn]] void fail(const std::string& problem, const std::string& remedy = {}) const;
  /// fail() unless the condition holds.
  void require(bool condition, const char* problem) const {
    if (!condition) fail(problem);
  }

  /// Runs op->infer, catching the early leave of shape(). Every output has a type afterwards.
  void run();
  std::vector<Type>& types() { return types_; }
  std::vector<std::optional<Dims>>& knowns() { return knowns_; }

 private:
  std::vector<Input> inputs_;
  std::vector<Type> types_;
  std::vector<std::optional<Dims>> knowns_;
  std::function<Dim()> fresh_;
};

}  // namespace dais
