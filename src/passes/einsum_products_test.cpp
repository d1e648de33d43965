#include <gtest/gtest.h>

#include "ir/call.h"
#include "ir/text.h"
#include "ops/run_op.h"
#include "passes/passes.h"

namespace dais {
namespace {

class NoTarget : public Target {
 public:
  bool has_kernel(const Node&) const override { return false; }
  Isa isa() const override { return Isa::plain; }
  int threads() const override { return 1; }
};

/// The ops that the pass makes of an equation, after a check that they give the same.
std::string ops_of(const std::string& equation, const std::vector<Shape>& shapes,
                   const std::string& types = "") {
  std::string text, operands;
  std::vector<Datum> data;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string name = "%x" + std::to_string(i);
    data.emplace_back(test_tensor(shapes[i], static_cast<int>(i) + 1));
    text += "input " + name + ": " +
            (i == 0 && !types.empty() ? types : data[i].tensor.describe()) + "\n";
    operands += (i ? ", " : "") + name;
  }
  text += "%y = einsum(" + operands + ", equation=\"" + equation + "\")\noutput %y\n";
  const auto graph = parse_graph(text);
  const auto wanted = evaluate(*graph, data);
  einsum_products(*graph, NoTarget());
  graph->verify();
  const auto got = evaluate(*graph, data);
  EXPECT_EQ(got[0].tensor.shape(), wanted[0].tensor.shape()) << equation;
  EXPECT_LE(test_distance(got[0].tensor, wanted[0].tensor), 1e-5) << equation;
  std::string ops;
  for (const auto& node : graph->nodes())
    ops += (ops.empty() ? "" : " ") + std::string(node->op->name);
  return ops;
}

TEST(EinsumProducts, MatricesOfHeads) {
  EXPECT_EQ(ops_of("bhqd,bhkd->bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}}), "transpose mat_mul");
  EXPECT_EQ(ops_of("bqhd,bkhd->bhqk", {{2, 4, 3, 5}, {2, 6, 3, 5}}), "transpose transpose mat_mul");
  EXPECT_EQ(ops_of("bhqk,bkhd->bqhd", {{2, 3, 4, 6}, {2, 6, 3, 5}}), "transpose mat_mul transpose");
  EXPECT_EQ(ops_of("...ij,...jk->...ik", {{2, 3, 4}, {2, 4, 5}}), "mat_mul");
}

TEST(EinsumProducts, SeveralIndicesInOnePart) {
  EXPECT_EQ(ops_of("btd,dhk->bthk", {{2, 3, 4}, {4, 5, 6}}), "reshape mat_mul reshape");
  EXPECT_EQ(ops_of("bthk,hkd->btd", {{2, 3, 4, 5}, {4, 5, 6}}), "reshape reshape mat_mul");
  EXPECT_EQ(ops_of("abcx,xdea->bdcea", {{2, 3, 4, 5}, {5, 6, 7, 2}}),
            "transpose reshape reshape mat_mul reshape transpose");
  EXPECT_EQ(ops_of("bi,bj->bij", {{2, 3}, {2, 4}}), "reshape reshape mat_mul");
  EXPECT_EQ(ops_of("i,i->", {{4}, {4}}), "reshape reshape mat_mul reshape");
  EXPECT_EQ(ops_of("i,ij->j", {{4}, {4, 5}}), "reshape mat_mul reshape");
  EXPECT_EQ(ops_of("ab,cd->ac", {{2, 3}, {4, 5}}), "reduce_sum reduce_sum reshape reshape mat_mul");
}

TEST(EinsumProducts, SymbolicSizes) {
  EXPECT_EQ(ops_of("btd,dhk->bthk", {{2, 3, 4}, {4, 5, 6}}, "f32[N,T,4]"),
            "reshape mat_mul reshape");
}

TEST(EinsumProducts, OneOperand) {
  EXPECT_EQ(ops_of("bij->bji", {{2, 3, 4}}), "transpose");
  EXPECT_EQ(ops_of("bij->jb", {{2, 3, 4}}), "reduce_sum transpose");
}

TEST(EinsumProducts, LeavesDiagonalsAndBroadcastSizes) {
  EXPECT_EQ(ops_of("ii->i", {{3, 3}}), "einsum");
  EXPECT_EQ(ops_of("bij,bjk->bik", {{1, 3, 4}, {2, 4, 5}}), "einsum");
}

}  // namespace
}  // namespace dais
