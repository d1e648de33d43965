#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace dais {

/// How much of constants' contents the text holds.
enum class Contents {
  small,  ///< up to 16 elements; longer ones as {...}, which does not parse back
  all,    ///< everything: parse_graph(text) gives an equal graph
};

std::string graph_text(const Graph& graph, Contents contents);

/// Reads the text form. Throws `invalid_argument` with line and column for broken text, and what
/// inference throws for graphs that break an op's rules. Safe for hostile text.
std::unique_ptr<Graph> parse_graph(std::string_view text);

/// A type in its text form: "f32[N,3]", "f32[...]", "seq(i64[])".
Type parse_type(std::string_view text);

}  // namespace dais
