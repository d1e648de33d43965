// Whole kernels of elementwise nodes, and what follows a product inside its kernel.
#include <algorithm>

#include "ops/elementwise/text_writer_cuda.h"
#include "ops/fused/fused.h"
#include "ops/matmul/matmul.h"

namespace dais {
namespace {

class Writer : public TextWriter {
 public:
  using TextWriter::TextWriter;

  EpilogueText write_epilogue(const Node& product) {
    const bool fused = node_.as<Fused>() != nullptr;
    epilogue_ = true;
    list_inputs();
    EpilogueText out;
    out.addend = add_product(product);
    if (fused && reason_.empty()) {
      const Graph& body = *node_.regions[0];
      for (const auto& node : body.nodes())
        if (node.get() != &product && !add(*node)) break;
      if (reason_.empty() && body.outputs.size() != 1) fail("more than one result");
      if (reason_.empty()) add_result(body.outputs[0]);
    } else if (reason_.empty()) {
      add_result(product.outs[0]);
    }
    out.reason = reason_;
    if (!out.reason.empty()) return out;
    if (out_.operands.size() > kMostOperands || out_.numbers.size() > kMostNumbers) {
      out.reason = "too many values for one kernel";
      return out;
    }
    out.text = epilogue_struct(product);
    out.operands = std::move(out_.operands);
    out.numbers = std::move(out_.numbers);
    return out;
  }

  ElementwiseText write() {
    list_inputs();
    if (node_.as<Fused>()) {
      const Graph& body = *node_.regions[0];
      for (const auto& node : body.nodes())
        if (!add(*node)) return refused();
      for (const Value* value : body.outputs)
        if (!add_result(value)) return refused();
    } else {
      if (!add(node_) || !add_result(node_.outs[0])) return refused();
    }
    if (out_.operands.size() > kMostOperands || out_.numbers.size() > kMostNumbers ||
        out_.results.size() > kMostResults) {
      fail("too many values for one kernel");
      return refused();
    }
    out_.text = assemble();
    return std::move(out_);
  }

 private:
  ElementwiseText refused() {
    ElementwiseText out;
    out.reason = reason_;
    return out;
  }
  std::string operand_name(size_t k, const Value&) override {
    return "x" + text_of(k) + (epilogue_ ? "" : "[i]");
  }

  /// The product's sum with its own factors and addend. Gives the addend's operand.
  int add_product(const Node& product) {
    const DType dtype = product.outs[0]->type.dtype;
    if (!element_text(dtype).memory || dtype == DType::boolean) {
      fail("element type " + std::string(dtype_name(dtype)));
      return -1;
    }
    std::string sum = "acc";
    float beta = 1;
    if (const auto* gemm = product.as<Gemm>()) {
      if ((gemm->alpha != 1 || gemm->beta != 1) && !real_lane(dtype)) {
        fail("whole numbers times alpha or beta");
        return -1;
      }
      const char* lane = element_text(dtype).lane;
      if (gemm->alpha != 1) sum = "acc * " + parameter(gemm->alpha, lane);
      beta = gemm->beta;
    }
    int addend = -1;
    // The gradient of a convolution's data takes sizes there.
    if (product.has(2) && beta != 0 && product.in[2]->type.dtype == dtype) {
      const size_t before = out_.operands.size();
      std::string operand = read(product.in[2]);
      if (operand.empty()) return -1;
      if (out_.operands.size() > before) addend = static_cast<int>(before);
      if (beta != 1) operand += " * " + parameter(beta, element_text(dtype).lane);
      sum = "s_add(" + sum + ", " + operand + ")";
    }
    define(product.outs[0], wrapped(sum, dtype));
    return addend;
  }

  std::string epilogue_struct(const Node& product) const {
    const ElementText y = element_text(out_.results[0]);
    const std::string sum_lane = element_text(product.outs[0]->type.dtype).lane;
    std::string text = "#include \"elementwise.cuh\"\n#define LANE " + sum_lane +
                       "\n#define A_TYPE " + element_text(product.in[0]->type.dtype).memory +
                       "\n#define B_TYPE " + element_text(product.in[1]->type.dtype).memory +
                       "\n#define Y_TYPE " + y.memory + "\n";
    text += "struct Operand {\n  const void* data;\n  int64 batch, row, column;\n};\n";
    text += "struct Epilogue {\n  Numbers<" + text_of(std::max<size_t>(out_.numbers.size(), 1)) +
            "> numbers;\n  Operand operands[" + text_of(std::max<size_t>(out_.operands.size(), 1)) +
            "];\n";
    text += "  __device__ __forceinline__ " + std::string(y.lane) +
            " apply(LANE acc, int64 batch, int64 row, int64 column) const {\n";
    for (size_t k = 0; k < out_.operands.size(); ++k) {
      const ElementText type = element_text(out_.operands[k].dtype);
      const std::string operand = "operands[" + text_of(k) + "]";
      text += "    const " + std::string(type.lane) + " x" + text_of(k) + " = widen<" + type.lane +
              ">(static_cast<const " + type.memory + "*>(" + operand + ".data)[batch * " + operand +
              ".batch + row * " + operand + ".row + column * " + operand + ".column]);\n";
    }
    return text + body_ + "    return " + results_[0] + ";\n  }\n};\n";
  }

  std::string parameters() const {
    std::string out = "SpaceHere space, NumbersHere numbers";
    for (size_t i = 0; i < out_.operands.size(); ++i)
      out += ", const " + std::string(element_text(out_.operands[i].dtype).memory) + "* a" +
             text_of(i);
    for (size_t i = 0; i < out_.results.size(); ++i)
      out += ", " + std::string(element_text(out_.results[i]).memory) + "* r" + text_of(i);
    return out;
  }

  std::string arguments() const {
    std::string out = "space, numbers";
    for (size_t i = 0; i < out_.operands.size(); ++i) out += ", a" + text_of(i);
    for (size_t i = 0; i < out_.results.size(); ++i) out += ", r" + text_of(i);
    return out;
  }

  std::string assemble() {
    size_t widest = 1;
    for (const TextOperand& operand : out_.operands)
      widest = std::max(widest, dtype_size(operand.dtype));
    for (const DType dtype : out_.results) widest = std::max(widest, dtype_size(dtype));
    out_.width = static_cast<int>(std::min<size_t>(16 / widest, 8));
    const std::string operands = text_of(std::max<size_t>(out_.operands.size(), 1));
    std::string text =
        "#include \"elementwise.cuh\"\n\nusing SpaceHere = Space<" + operands +
        ">;\nusing NumbersHere = Numbers<" + text_of(std::max<size_t>(out_.numbers.size(), 1)) +
        ">;\n\ntemplate <int V>\n__device__ __forceinline__ void compute(" + parameters() + ") {\n";
    text += "  for (int64 pack = first_pack(); pack < space.packs; pack += pack_step()) {\n";
    text += "    int64 at[" + operands + "];\n    locate<V>(space, pack, at);\n";
    for (size_t i = 0; i < out_.operands.size(); ++i) {
      const std::string k = text_of(i);
      text += "    " + std::string(element_text(out_.operands[i].dtype).lane) + " x" + k +
              "[V];\n    read<V>(a" + k + " + at[" + k + "], space.inner[" + k + "], x" + k +
              ");\n";
    }
    for (size_t i = 0; i < out_.results.size(); ++i)
      text +=
          "    " + std::string(element_text(out_.results[i]).lane) + " y" + text_of(i) + "[V];\n";
    text += "#pragma unroll\n    for (int i = 0; i < V; ++i) {\n" + body_;
    for (size_t i = 0; i < results_.size(); ++i)
      text += "      y" + text_of(i) + "[i] = " + results_[i] + ";\n";
    text += "    }\n";
    for (size_t i = 0; i < out_.results.size(); ++i)
      text += "    write<V>(r" + text_of(i) + " + pack * V, y" + text_of(i) + ");\n";
    text += "  }\n}\n";
    text += kernel(1);
    if (out_.width > 1) text += kernel(out_.width);
    return text;
  }

  std::string kernel(int width) const {
    return "\nextern \"C\" __global__ void __launch_bounds__(256) pack_" + std::to_string(width) +
           "(" + parameters() + ") {\n  compute<" + std::to_string(width) + ">(" + arguments() +
           ");\n}\n";
  }

  bool epilogue_ = false;
};

}  // namespace

ElementwiseText elementwise_text(const Node& node) { return Writer(node).write(); }

EpilogueText epilogue_text(const Node& node, const Node& product) {
  return Writer(node).write_epilogue(product);
}

}  // namespace dais
