#include "train/fixed_inputs.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/generate/generate.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"

namespace dais::train {
namespace {

/// Nothing means positions.
using Content = std::optional<double>;

std::string join(const std::vector<std::string>& parts, const std::string& between) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : between) + part;
  return out;
}

class Fixer {
 public:
  explicit Fixer(onnx::Model& model) : model_(model), g_(*model.graph) {}

  void run(const std::vector<std::string>& rules) {
    for (const auto& rule : rules) read(rule);
    Values left;
    for (Value* input : g_.inputs) {
      if (contents_.contains(input->name)) continue;
      left.push_back(input);
      data_ = input;
    }
    if (left.size() != 1)
      problems_.push_back(left.empty()
                              ? "no input is left for the data"
                              : "the data feed one input, and " + std::to_string(left.size()) +
                                    " are open: " + input_list(left));
    if (problems_.empty()) replace();
    if (!problems_.empty())
      throw Error(Code::invalid_argument, join(problems_, "; "), g_.name,
                  "Fix all inputs but the data's, for example --fix-input attention_mask=1 "
                  "--fix-input position_ids=positions");
  }

 private:
  void read(const std::string& rule) {
    const size_t at = rule.rfind('=');
    const std::string name = rule.substr(0, at);
    std::vector<std::string> names;
    for (const Value* input : g_.inputs) names.push_back(input->name);
    if (std::ranges::count(names, name) == 0) {
      const std::string near = nearest(name, names);
      return problems_.push_back("there is no input '" + name + "'" +
                                 (near.empty() ? "" : ", did you mean '" + near + "'?"));
    }
    const std::string text = at == std::string::npos ? "" : rule.substr(at + 1);
    double number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text == "positions")
      contents_[name] = std::nullopt;
    else if (failed == std::errc() && end == text.data() + text.size())
      contents_[name] = number;
    else
      problems_.push_back("'" + rule + "' is neither NAME=NUMBER nor NAME=positions");
  }

  void replace() {
    const Values inputs = g_.inputs;
    const Graph::InsertBefore first(g_, g_.nodes().empty() ? nullptr : g_.nodes().front().get());
    for (Value* input : inputs) {
      const auto found = contents_.find(input->name);
      if (found == contents_.end()) continue;
      if (Value* value = content_of(*input, found->second)) g_.replace_uses(input, value);
    }
    if (!problems_.empty()) return;
    g_.inputs = {data_};
    std::erase_if(model_.inputs, [this](const auto& name) { return contents_.contains(name); });
  }

  Value* content_of(const Value& input, const Content& content) {
    const auto refuse = [&](const std::string& what) {
      problems_.push_back("'" + input.name + "' " + input.type.text() + " " + what);
      return nullptr;
    };
    if (!input.type.ranked()) return refuse("has no known number of axes");
    const DType dtype = input.type.dtype;
    if (!is_float(dtype) && !is_integer(dtype) && dtype != DType::boolean)
      return refuse("holds no real numbers");
    if (!content && input.type.shape->empty()) return refuse("has no axis for positions");
    std::vector<Value*> sizes;
    for (size_t axis = 0; axis < input.type.shape->size(); ++axis) {
      Value* size = size_of((*input.type.shape)[axis], axis);
      if (!size) return refuse("has a size that the data do not tell");
      sizes.push_back(size);
    }
    Value* shape = sizes.empty() ? g_.add_constant(Tensor(DType::i64, {0}))
                                 : g_.add(Concat{0}, Values(sizes.begin(), sizes.end()));
    if (content)
      return cast(g_.add(ConstantOfShape{Tensor::of<double>({1}, {*content})}, {shape}), dtype);
    Value* ones = g_.add(ConstantOfShape{Tensor::of<int64_t>({1}, {1})}, {shape});
    Value* last = g_.add_constant(Tensor::scalar(static_cast<int64_t>(sizes.size()) - 1));
    return cast(g_.add(CumSum{.exclusive = true}, {ones, last}), dtype);
  }

  Value* cast(Value* value, DType dtype) {
    return value->type.dtype == dtype ? value : g_.add(Cast{.to = dtype}, {value});
  }

  Value* size_of(const Dim& dim, size_t axis) {
    if (const auto number = dim.constant())
      return g_.add_constant(Tensor::of<int64_t>({1}, {*number}));
    if (!data_->type.ranked()) return nullptr;
    const Dims& dims = *data_->type.shape;
    const auto same = std::ranges::find(dims, dim);
    if (same != dims.end()) axis = static_cast<size_t>(same - dims.begin());
    if (axis >= dims.size()) return nullptr;
    const auto start = static_cast<int64_t>(axis);
    return g_.add(ShapeOf{start, start + 1}, {data_});
  }

  onnx::Model& model_;
  Graph& g_;
  std::map<std::string, Content> contents_;
  std::vector<std::string> problems_;
  Value* data_ = nullptr;
};

}  // namespace

std::string input_list(std::span<Value* const> inputs) {
  std::vector<std::string> parts;
  for (const Value* input : inputs) parts.push_back("'" + input->name + "' " + input->type.text());
  return join(parts, ", ");
}

void fix_inputs(onnx::Model& model, const std::vector<std::string>& rules) {
  Fixer(model).run(rules);
}

}  // namespace dais::train
