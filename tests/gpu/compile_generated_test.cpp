// Texts that are put together when a plan is made also compile by NVRTC, where it is installed.
#include <gtest/gtest.h>

#include "backends/cuda/program.h"
#include "backends/cuda/text.h"
#include "ir/graph.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/text_cuda.h"
#include "ops/matmul/matmul.h"

namespace dais::cuda {
namespace {

/// The tables with the system's compiler; images are not kept on disk.
const Tables* compiler() {
  static const Tables tables = [] {
    Tables out;
    out.nvrtc = load_nvrtc(0);
    out.hardware = false;
    return out;
  }();
  return tables.nvrtc.report.usable() ? &tables : nullptr;
}

Value* matrix(Graph& graph, DType dtype) {
  return graph.add_input(Type::tensor(dtype, Dims{Dim(8), Dim(8)}), {});
}

TEST(GeneratedKernels, ProductsCompile) {
  if (!compiler()) GTEST_SKIP() << "NVRTC is not installed";
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const int arch : {75, 90})
      for (int mode = 0; mode < 4; ++mode) {
        Graph graph;
        const Node& product =
            graph.add_node(MatMul{}, {matrix(graph, dtype), matrix(graph, dtype)});
        const EpilogueText epilogue = epilogue_text(product, product);
        ASSERT_EQ(epilogue.reason, "");
        std::string all = epilogue.text + "#define MODE " + std::to_string(mode) + "\n";
        all += text("product.cu");
        const bool cores = dtype == DType::f16 || (dtype == DType::bf16 && arch >= 80);
        if (cores) all += text("product_cores.cu");
        EXPECT_NO_THROW(compiled_image(*compiler(), arch, {"product.cu", all}))
            << dtype_name(dtype) << " sm_" << arch << " mode " << mode;
      }
}

TEST(GeneratedKernels, ElementwiseChainsCompile) {
  if (!compiler()) GTEST_SKIP() << "NVRTC is not installed";
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const int arch : {75, 100}) {
      Graph graph;
      Value* x = matrix(graph, dtype);
      const Node& node = graph.add_node(Gelu{}, {x});
      const ElementwiseText made = elementwise_text(node);
      ASSERT_EQ(made.reason, "");
      EXPECT_NO_THROW(compiled_image(*compiler(), arch, {"elementwise", made.text}))
          << dtype_name(dtype) << " sm_" << arch;
    }
}

}  // namespace
}  // namespace dais::cuda
