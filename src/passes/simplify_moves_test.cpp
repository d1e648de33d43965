#include <gtest/gtest.h>

#include "ir/text.h"
#include "passes/passes.h"

namespace dais {
namespace {

class NoTarget : public Target {
 public:
  bool has_kernel(const Node&) const override { return false; }
  Isa isa() const override { return Isa::plain; }
  int threads() const override { return 1; }
};

/// The nodes of a graph after the pass, one "op(operands)" a line, without names of values: a chain
/// reads as its ops in order.
std::string ops_after(const std::string& text) {
  const auto graph = parse_graph(text);
  simplify_moves(*graph, NoTarget());
  graph->verify();
  std::string out;
  for (const auto& node : graph->nodes()) {
    out += (out.empty() ? "" : " ") + std::string(node->op->name);
    if (const auto attrs = node->attrs.text(); !attrs.empty()) out += "(" + attrs + ")";
  }
  return out + " -> " + graph->outputs[0]->type.text();
}

TEST(SimplifyMoves, DropsWhatChangesNothing) {
  const std::string head =
      "input %x: f32[2,3]\nconstant %one = f32[]{1}\nconstant %none = f32[]{0}\n"
      "constant %shape = i64[2]{2,3}\nconstant %pads = i64[4]{0,0,0,0}\n"
      "constant %from = i64[1]{0}\nconstant %to = i64[1]{9}\nconstant %back = i64[1]{-1}\n";
  const std::string tail = "%y = relu(%t)\noutput %y\n";
  for (const char* line :
       {"%t = mul(%x, %one)\n", "%t = mul(%one, %x)\n", "%t = div(%x, %one)\n",
        "%t = add(%x, %none)\n", "%t = sub(%x, %none)\n", "%t = reshape(%x, %shape)\n",
        "%t = expand(%x, %shape)\n", "%t = pad(%x, %pads)\n", "%t = slice(%x, %from, %to)\n",
        "%t = transpose(%x, perm=[0,1])\n", "%t = concat(%x, axis=0)\n", "%t = cast(%x, to=1)\n"})
    EXPECT_EQ(ops_after(head + line + tail), "relu -> f32[2,3]") << line;
  for (const char* line : {"%t = div(%one, %x)\n", "%t = sub(%none, %x)\n",
                           "%t = transpose(%x, perm=[1,0])\n", "%t = mul(%x, %none)\n"})
    EXPECT_NE(ops_after(head + line + tail).substr(0, 4), "relu") << line;
}

TEST(SimplifyMoves, ReshapesBecomeOne) {
  EXPECT_EQ(ops_after("input %x: f32[2,3,4]\nconstant %s = i64[2]{6,4}\nconstant %a = i64[1]{0}\n"
                      "%t = reshape(%x, %s)\n%u = unsqueeze(%t, %a)\n%v = squeeze(%u, %a)\n"
                      "%y = flatten(%v)\noutput %y\n"),
            "reshape -> f32[6,4]");
  // A shape without zeros serves symbolic sizes as well.
  EXPECT_EQ(ops_after("input %x: f32[N,3,4]\nconstant %s = i64[2]{-1,4}\n"
                      "constant %u = i64[2]{-1,12}\n%t = reshape(%x, %s)\n"
                      "%y = reshape(%t, %u)\noutput %y\n")
                .substr(0, 10),
            "reshape ->");
  // Zeros copy sizes of the input between, so that one must stay.
  EXPECT_EQ(ops_after("input %x: f32[N,3,4]\nconstant %s = i64[2]{-1,4}\n"
                      "constant %u = i64[2]{0,-1}\n%t = reshape(%x, %s)\n"
                      "%y = reshape(%t, %u)\noutput %y\n")
                .substr(0, 15),
            "reshape reshape");
}

TEST(SimplifyMoves, TransposesBecomeOneOrNone) {
  const std::string two =
      "input %x: f32[2,3,4]\n%t = transpose(%x, perm=[1,2,0])\n%u = transpose(%t, perm=";
  EXPECT_EQ(ops_after(two + "[2,0,1])\n%y = relu(%u)\noutput %y\n"), "relu -> f32[2,3,4]");
  EXPECT_EQ(ops_after(two + "[1,2,0])\n%y = relu(%u)\noutput %y\n"),
            "transpose(perm=[2,0,1]) relu -> f32[4,2,3]");
}

TEST(SimplifyMoves, CastsThroughWiderTypesGo) {
  EXPECT_EQ(ops_after("input %x: u8[2]\n%t = cast(%x, to=1)\n%y = cast(%t, to=6)\noutput %y\n"),
            "cast(to=6) -> i32[2]");
  // f32 does not hold every i32.
  EXPECT_EQ(ops_after("input %x: i32[2]\n%t = cast(%x, to=1)\n%y = cast(%t, to=7)\noutput %y\n"),
            "cast(to=1) cast(to=7) -> i64[2]");
}

TEST(SimplifyMoves, LimitsBecomeOne) {
  EXPECT_EQ(ops_after("input %x: f32[2]\n%t = relu(%x)\n%y = relu(%t)\noutput %y\n"),
            "relu -> f32[2]");
  const std::string clips =
      "input %x: f32[2]\nconstant %a = f32[]{-1}\nconstant %b = f32[]{6}\n%t = relu(%x)\n"
      "%y = clip(%t, %a, %b)\noutput %y\n";
  const auto graph = parse_graph(clips);
  simplify_moves(*graph, NoTarget());
  ASSERT_EQ(graph->size(), 1U);
  const Node& clip = *graph->nodes().front();
  EXPECT_EQ(clip.in[1]->constant()->to_double(), 0);
  EXPECT_EQ(clip.in[2]->constant()->to_double(), 6);
}

}  // namespace
}  // namespace dais
