// Texts that are put together when a plan is made also compile by NVRTC, where it is installed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "backends/cuda/program.h"
#include "backends/cuda/text.h"
#include "ir/graph.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/row_text_cuda.h"
#include "ops/elementwise/text_cuda.h"
#include "ops/fused/fused.h"
#include "ops/matmul/matmul.h"
#include "ops/norm/norm.h"
#include "ops/softmax/softmax.h"

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
        const bool cores = dtype == DType::f16 || (dtype != DType::f64 && arch >= 80);
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

TEST(GeneratedKernels, RowsCompile) {
  if (!compiler()) GTEST_SKIP() << "NVRTC is not installed";
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const int64_t size : {40, 768, 8192}) {
      const auto shape = Type::tensor(dtype, Dims{Dim(8), Dim(size)});
      auto body = std::make_unique<Graph>();
      Value *x = body->add_input(shape, "x"), *residual = body->add_input(shape, "r");
      Value* scale = body->add_input(Type::tensor(dtype, Dims{Dim(size)}), "s");
      Value* sum = body->add(Add{}, {x, residual});
      Value* normed = body->add(LayerNormalization{}, {sum, scale});
      body->outputs = {body->add(Softmax{}, {body->add(Gelu{}, {normed})}), sum};
      Graph graph;
      std::vector<std::unique_ptr<Graph>> regions;
      regions.push_back(std::move(body));
      const Node& node =
          graph.add_node(Fused::op, Attrs::of(Fused{}),
                         {graph.add_input(shape, "x"), graph.add_input(shape, "r"),
                          graph.add_input(Type::tensor(dtype, Dims{Dim(size)}), "s")},
                         2, "rows", std::move(regions));
      const RowText made = row_text(node);
      ASSERT_EQ(made.reason, "");
      for (const int arch : {75, 80, 90, 100})
        EXPECT_NO_THROW(compiled_image(*compiler(), arch, {"rows", made.text}))
            << dtype_name(dtype) << " sm_" << arch << " rows of " << size;
      if (const char* folder = std::getenv("DAIS_GENERATED_TEXTS"))
        std::ofstream(std::string(folder) + "/rows_" + std::string(dtype_name(dtype)) + "_" +
                      std::to_string(size) + ".cu")
            << made.text;
    }
}

}  // namespace
}  // namespace dais::cuda
