// Operators of users, from the files of the example.
#include "ops/custom/custom.h"

#include <gtest/gtest.h>

#include "api/compile.h"
#include "autodiff/autodiff.h"
#include "base/file.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "row_agreement.h"
#include "runtime/session.h"

namespace dais {
namespace {

CustomSpec spec(const std::string& name, const std::string& kernel,
                std::vector<std::string> inputs) {
  const auto file = MappedFile::open("examples/custom_ops/soft_shrink.cu");
  CustomSpec out;
  out.name = name;
  out.file = "soft_shrink.cu";
  out.text.assign(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  out.kernel = kernel;
  out.inputs = std::move(inputs);
  out.outputs = {{"y", "x", "x", {}}};
  out.attributes = {{"lambda", 0.5f}};
  out.arguments = {"x_size", "lambda"};
  out.blocks = "floordiv(x_size + 255, 256)";
  return out;
}

TEST(CustomOperators, RunOnTheCpuAndOnTheDevice) {
  if (!custom_spec("SoftShrink")) add_custom_op(spec("SoftShrink", "soft_shrink", {"x"}));
  for (const bool device : {false, true}) {
    auto graph = std::make_unique<Graph>();
    Value* x = graph->add_input(Type::tensor(DType::f32, Dims{Dim::symbol("n")}), "x");
    graph->outputs = {graph->add(Custom{"SoftShrink", {0.25f}}, {x})};
    CompileOptions options;
    if (device) options.backend = test_backend();
    Session session(compile(std::move(graph), options).plan);
    for (const int64_t n : {5, 700}) {
      const Tensor given = sample<float>({n}, 1);
      const std::vector<Datum> inputs{given};
      const Tensor got = session.run(inputs)[0].tensor;
      for (int64_t i = 0; i < n; ++i) {
        const double v = given.to_double(i);
        const double wanted = v > 0.25 ? v - 0.25 : v < -0.25 ? v + 0.25 : 0;
        ASSERT_NEAR(got.to_double(i), wanted, 1e-6) << i;
      }
    }
  }
}

TEST(CustomOperators, AreDifferentiatedByTheOperatorTheyName) {
  if (!custom_spec("Shrink")) {
    add_custom_op(spec("ShrinkGradient", "soft_shrink_gradient", {"x", "dy"}));
    CustomSpec shrink = spec("Shrink", "soft_shrink", {"x"});
    shrink.gradient = "ShrinkGradient";
    add_custom_op(shrink);
  }
  for (const bool device : {false, true}) {
    auto graph = std::make_unique<Graph>();
    Value* x = graph->add_input(Type::tensor(DType::f32, Dims{64}), "x");
    Value* y = graph->add(Custom{"Shrink", {0.25f}}, {x});
    Value* loss = graph->add(ReduceSum{.keepdims = false}, {graph->add(Mul{}, {y, y})});
    graph->outputs = append_gradients(*graph, loss, Values{x});
    CompileOptions options;
    if (device) options.backend = test_backend();
    Session session(compile(std::move(graph), options).plan);
    const Tensor given = sample<float>({64}, 2);
    const std::vector<Datum> inputs{given};
    const Tensor got = session.run(inputs)[0].tensor;
    for (int64_t i = 0; i < 64; ++i) {
      const double v = given.to_double(i);
      const double shrunk = v > 0.25 ? v - 0.25 : v < -0.25 ? v + 0.25 : 0;
      ASSERT_NEAR(got.to_double(i), 2 * shrunk, 1e-6) << i;  // of the sum of squares
    }
  }
}

TEST(CustomOperators, WrongSpecificationsAreRefused) {
  CustomSpec wrong = spec("Wrong", "soft_shrink", {"x"});
  wrong.outputs[0].type = "float33";
  EXPECT_THROW(add_custom_op(wrong), Error);
  wrong = spec("Wrong", "", {"x"});
  EXPECT_THROW(add_custom_op(wrong), Error);
}

}  // namespace
}  // namespace dais
