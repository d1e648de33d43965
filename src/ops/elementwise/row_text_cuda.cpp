// From nodes with reductions along rows to the text of a kernel. Elementwise lines stand once for
// each pass over the elements that a thread holds: what a pass does not need is not computed in it.
#include "ops/elementwise/row_text_cuda.h"

#include <algorithm>
#include <unordered_set>

#include "ops/elementwise/text_writer_cuda.h"
#include "ops/fused/fused.h"
#include "ops/fused/rows.h"
#include "ops/norm/norm.h"
#include "ops/reduce/reduce.h"
#include "ops/softmax/softmax.h"

namespace dais {
namespace {

constexpr int64_t kMostHeld = 8;
constexpr int64_t kMostThreads = 1024;

/// How a reduction joins elements: the join, what is done to an element before and to the whole
/// after it ("%" stands for it); null: it is not had.
struct JoinText {
  const char* join = nullptr;
  const char* before = "%";
  const char* after = "%";
};
JoinText join_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return {"Plus"};
    case Reduction::mean: return {"Plus", "%", "% / static_cast<float>(space.size)"};
    case Reduction::max: return {"Greater"};
    case Reduction::min: return {"Less"};
    case Reduction::l1: return {"Plus", "fabsf(%)"};
    case Reduction::l2: return {"Plus", "% * %", "sqrtf(%)"};
    case Reduction::sum_square: return {"Plus", "% * %"};
    default: return {};
  }
}

std::string filled(const std::string& text, const std::string& value) {
  std::string out;
  for (const char c : text) out += c == '%' ? value : std::string(1, c);
  return out;
}

class RowWriter : public TextWriter {
 public:
  using TextWriter::TextWriter;

  RowText write() {
    RowText out;
    if (!find_rows() || !write_nodes()) {
      out.reason = reason_;
      return out;
    }
    out.axes = axes_;
    out.size = size_;
    out.threads = static_cast<unsigned>(threads());
    out.text = assemble();
    out.operands = std::move(out_.operands);
    out.numbers = std::move(out_.numbers);
    out.results = std::move(out_.results);
    return out;
  }

 private:
  const Graph& body() const { return *node_.regions[0]; }

  /// The shape that all nodes share, from the first that joins rows.
  bool find_rows() {
    if (!node_.as<Fused>()) return fail("a node of its own");
    for (const auto& node : body().nodes()) {
      const auto axes = joined_axes(*node);
      if (!axes) continue;
      axes_ = *axes;
      full_ = *node->in[0]->type.shape;
      break;
    }
    if (axes_ == 0) return fail("no reduction");
    size_ = 1;
    for (size_t i = full_.size() - axes_; i < full_.size(); ++i) {
      const auto size = full_[i].constant();
      if (!size || *size <= 0) return fail("rows of unknown size");
      size_ *= *size;
    }
    if (size_ > kMostHeld * kMostThreads) return fail("rows of more than 8192 elements");
    row_ = row_shape(full_, axes_);
    return true;
  }

  bool write_nodes() {
    list_inputs();
    for (const auto& node : body().nodes())
      if (!(joined_axes(*node) ? add_joined(*node) : add_elementwise(*node))) return false;
    for (const Value* value : body().outputs) {
      if (!is_full(*value) && !is_row(*value)) return fail("a result of another shape");
      if (!add_result(value)) return false;
    }
    if (!reason_.empty()) return false;
    if (out_.operands.size() > kMostOperands || out_.numbers.size() > kMostNumbers ||
        out_.results.size() > kMostResults)
      return fail("too many values for one kernel");
    return true;
  }

  bool add_elementwise(const Node& node) {
    const Value& out = *node.outs[0];
    if (!out.type.ranked() || (*out.type.shape != full_ && *out.type.shape != row_))
      return fail("another shape");
    return add(node);
  }

  bool is_full(const Value& value) const {
    return value.type.ranked() && *value.type.shape == full_;
  }
  /// One value for each row.
  bool is_row(const Value& value) const {
    return rows_.contains(&value) || (value.type.ranked() && *value.type.shape == row_);
  }

  /// Whether an operand is the same for all elements of a row; nothing: it follows rows unevenly.
  std::optional<bool> repeats(const Value& value) const {
    if (!value.type.ranked() || value.type.shape->size() > full_.size()) return std::nullopt;
    const Dims& dims = *value.type.shape;
    bool ones = true, whole = dims.size() >= axes_;
    for (size_t i = 0; i < std::min(axes_, dims.size()); ++i) {
      const Dim& own = dims[dims.size() - 1 - i];
      ones = ones && own.is(1);
      whole = whole && own == full_[full_.size() - 1 - i];
    }
    if (!ones && !whole) return std::nullopt;
    return ones && !whole;
  }

  std::string operand_name(size_t k, const Value& value) override {
    const auto once = repeats(value);
    if (!once) fail("an operand follows rows unevenly");
    held_.push_back(!once.value_or(true));
    return "x" + text_of(k) + (held_.back() ? "[k]" : "");
  }
  std::string& lines_of(const Value& value) override {
    return is_row(value) && !is_full(value) ? passes_ : body_;
  }

  /// A full value as an operand of what joins rows; empty: not possible.
  std::string element(const Value* value) {
    if (!real_lane(value->type.dtype) || value->type.dtype == DType::f64) {
      fail("rows of type " + std::string(dtype_name(value->type.dtype)));
      return {};
    }
    return read(value);
  }

  /// A value for each row: what `before` makes of an element, joined, and then `after`.
  std::string join(const std::string& kind, const std::string& before, const std::string& after) {
    const std::string name = "r" + text_of(lines_++), sum = name + "_join";
    passes_ += "    float " + sum + " = " + kind + "::start();\n    EACH_HELD(k, i) {\n" + body_ +
               "      " + sum + " = " + kind + "()(" + sum + ", " + before + ");\n    }\n    " +
               sum + " = block_join(" + sum + ", " + kind + "());\n    const float " + name +
               " = " + filled(after, sum) + ";\n";
    return name;
  }

  bool add_joined(const Node& node) {
    if (*joined_axes(node) != axes_ || !is_full(*node.in[0])) return fail("rows of another shape");
    const std::string x = element(node.in[0]);
    if (x.empty() || !element_text(node.outs[0]->type.dtype).memory) return fail("element type");
    if (node.as<Softmax>() || node.as<LogSoftmax>()) return add_softmax(node, x);
    if (const auto* norm = node.as<LayerNormalization>())
      return add_norm(node, x, norm->epsilon, true);
    if (const auto* norm = node.as<RMSNormalization>())
      return add_norm(node, x, norm->epsilon, false);
    const JoinText text = join_of(*reduction_of(*node.op));
    if (!text.join) return fail(std::string(node.op->name) + " of rows");
    names_[node.outs[0]] = join(text.join, filled(text.before, x), text.after);
    rows_.insert(node.outs[0]);
    return true;
  }

  bool add_softmax(const Node& node, const std::string& x) {
    const std::string top = join("Greater", x, "%");
    const std::string total = join("Plus", "expf(" + x + " - " + top + ")", "%");
    if (node.as<Softmax>()) return define(node.outs[0], "expf(" + x + " - " + top + ") / " + total);
    return define(node.outs[0], x + " - " + top + " - logf(" + total + ")");
  }

  /// Scale and bias follow the elements of a row, or are one number.
  bool add_norm(const Node& node, const std::string& x, float epsilon, bool centred) {
    const std::string mean = "% / static_cast<float>(space.size)";
    std::string value = x;
    if (centred) value = "(" + x + " - " + join("Plus", x, mean) + ")";
    const std::string scale =
        join("Plus", value + " * " + value,
             "1 / sqrtf(" + mean + " + " + parameter(static_cast<double>(epsilon), "float") + ")");
    std::string y = value + " * " + scale;
    for (size_t i = 1; i < node.in.size(); ++i) {
      if (!node.has(i)) continue;
      if (!real_lane(node.in[i]->type.dtype)) return fail("a scale of another element type");
      const std::string operand = read(node.in[i]);
      if (operand.empty()) return false;
      y = i == 1 ? y + " * " + operand : "(" + y + ") + " + operand;
    }
    return define(node.outs[0], y);
  }

  int64_t threads() const {
    const int64_t wanted = size_ <= 2048 ? 256 : kMostThreads;
    return std::clamp<int64_t>((size_ + 31) / 32 * 32, 32, wanted);
  }

  std::string assemble() const {
    const std::string count = text_of(std::max<size_t>(out_.operands.size(), 1));
    const int64_t held = (size_ + threads() - 1) / threads();
    std::string text = "#define HELD " + std::to_string(held) + "\n#include \"rows.cuh\"\n\n";
    text += "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(threads()) +
            ")\n    rows(RowSpace<" + count + "> space, Numbers<" +
            text_of(std::max<size_t>(out_.numbers.size(), 1)) + "> numbers";
    for (size_t k = 0; k < out_.operands.size(); ++k)
      text += ", const " + std::string(element_text(out_.operands[k].dtype).memory) +
              "* __restrict__ a" + text_of(k);
    for (size_t i = 0; i < out_.results.size(); ++i)
      text += ", " + std::string(element_text(out_.results[i]).memory) + "* __restrict__ y" +
              text_of(i);
    text +=
        ") {\n  for (int64 row = blockIdx.x; row < space.rows; row += gridDim.x) {\n    int64 at[" +
        count + "];\n    locate_row(space, row, at);\n";
    return text + loads() + passes_ + stores() + "  }\n}\n";
  }

  /// Each operand once: rows into registers, what repeats as one number.
  std::string loads() const {
    std::string arrays, text;
    for (size_t k = 0; k < out_.operands.size(); ++k) {
      const std::string lane = element_text(out_.operands[k].dtype).lane, at = text_of(k);
      if (held_[k]) {
        arrays += "    " + lane + " x" + at + "[HELD];\n";
        text += "      x" + at + "[k] = widen<" + lane + ">(a" + at + "[at[" + at + "] + i]);\n";
      } else {
        arrays += "    const " + lane + " x" + at + " = widen<" + lane + ">(a" + at + "[at[" + at +
                  "]]);\n";
      }
    }
    return text.empty() ? arrays : arrays + "    EACH_HELD(k, i) {\n" + text + "    }\n";
  }

  std::string stores() const {
    std::string full, single;
    for (size_t i = 0; i < out_.results.size(); ++i) {
      const std::string memory = element_text(out_.results[i]).memory;
      if (is_full(*body().outputs[i]))
        full += "      y" + text_of(i) + "[row * space.size + i] = narrow<" + memory + ">(" +
                results_[i] + ");\n";
      else
        single += "      y" + text_of(i) + "[row] = narrow<" + memory + ">(" + results_[i] + ");\n";
    }
    std::string text;
    if (!full.empty()) text += "    EACH_HELD(k, i) {\n" + body_ + full + "    }\n";
    if (!single.empty()) text += "    if (threadIdx.x == 0) {\n" + single + "    }\n";
    return text;
  }

  size_t axes_ = 0;
  int64_t size_ = 0;
  Dims full_, row_;
  std::string passes_;  ///< the kernel's lines from the loads on
  std::unordered_set<const Value*> rows_;
  std::vector<bool> held_;
};

}  // namespace

RowText row_text(const Node& node) { return RowWriter(node).write(); }

}  // namespace dais
