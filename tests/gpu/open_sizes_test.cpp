// Rows whose sizes a run brings.
#include <algorithm>

#include "api/compile.h"
#include "ops/resize/resize.h"
#include "row_agreement.h"
#include "runtime/session.h"

namespace dais {
namespace {

/// Images of any size, enlarged.
std::unique_ptr<Graph> enlarging(const Resize& attrs) {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->add_input(
      Type::tensor(DType::f32, Dims{Dim::symbol("n"), Dim(2), Dim::symbol("h"), Dim::symbol("w")}),
      "x");
  Value* scales = graph->add_constant(Tensor::of<float>({4}, {1, 1, 2, 3}));
  graph->outputs = {graph->add(attrs, {x, nullptr, scales})};
  return graph;
}

TEST(OpenSizes, ImagesAreEnlargedOnTheDevice) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    const Resize attrs{.mode = mode};
    CompileOptions options;
    options.backend = test_backend();
    Session session(compile(enlarging(attrs), options).plan), plain(compile(enlarging(attrs)).plan);
    EXPECT_TRUE(session.plan().warnings().empty()) << session.plan().warnings()[0];
    for (const Shape& shape : {Shape{1, 2, 6, 4}, Shape{3, 2, 2, 8}, Shape{1, 2, 6, 4}}) {
      const std::vector<Datum> inputs{sample<float>(shape)};
      expect_close(session.run(inputs)[0].tensor, plain.run(inputs)[0].tensor, {1e-5, 1e-5}, mode);
    }
    for (const auto& finding : cuda::emulated::take_findings()) ADD_FAILURE() << finding.text();
  }
}

}  // namespace
}  // namespace dais
