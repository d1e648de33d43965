#include "train/fixed_inputs.h"

#include <gtest/gtest.h>

#include "api/compile.h"
#include "dais/nn.h"
#include "runtime/session.h"

namespace dais::train {
namespace {

/// x * scale + offset, each an input.
onnx::Model network(const std::vector<nn::Extent>& scale = {"batch", "width"}) {
  nn::Network net("several", 1);
  const nn::Value x = net.input("x", {"batch", "width"});
  const nn::Value s = net.input("scale", scale), offset = net.input("offset", {"batch", "width"});
  net.output("y", x * s + offset);
  const auto bytes = net.onnx();
  return onnx::import_model(Bytes(bytes));
}

std::vector<float> answer(onnx::Model& model, const Tensor& x) {
  Session session(compile(std::move(model.graph), {}).plan);
  const Datum input(x);
  const auto y = session.run(std::span(&input, 1))[0].tensor.data<float>();
  return {y.begin(), y.end()};
}

std::string problem_of(const std::vector<std::string>& rules,
                       const std::vector<nn::Extent>& scale = {"batch", "width"}) {
  onnx::Model model = network(scale);
  try {
    fix_inputs(model, rules);
  } catch (const Error& error) {
    return error.problem();
  }
  return {};
}

TEST(FixedInputs, HoldANumberOrPositions) {
  onnx::Model model = network();
  fix_inputs(model, {"scale=2", "offset=positions"});
  model.graph->verify();
  ASSERT_EQ(model.graph->inputs.size(), 1U);
  EXPECT_EQ(model.inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(model.graph->outputs[0]->type.text(), "f32[batch,width]");
  EXPECT_EQ(answer(model, Tensor::of<float>({2, 3}, {1, 1, 1, 5, 6, 7})),
            (std::vector<float>{2, 3, 4, 10, 13, 16}));
}

TEST(FixedInputs, SizesMayBeNumbers) {
  onnx::Model model = network({1, 3});
  fix_inputs(model, {"scale=-0.5", "offset=1"});
  EXPECT_EQ(answer(model, Tensor::of<float>({1, 3}, {2, 4, 6})), (std::vector<float>{0, -1, -2}));
}

TEST(FixedInputs, AllThatIsWrongIsTold) {
  const std::string all = problem_of({"scal=1", "offset=many"});
  EXPECT_NE(all.find("did you mean 'scale'"), std::string::npos) << all;
  EXPECT_NE(all.find("'offset=many' is neither"), std::string::npos) << all;
  EXPECT_NE(all.find("3 are open"), std::string::npos) << all;
  EXPECT_NE(problem_of({"x=1", "scale=1", "offset=1"}).find("no input is left"), std::string::npos);
  EXPECT_NE(problem_of({"scale=1", "offset=1"}, {"a", "b", "c"}).find("that the data do not tell"),
            std::string::npos);
}

}  // namespace
}  // namespace dais::train
