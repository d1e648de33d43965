#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/isa.h"
#include "ir/call.h"
#include "runtime/session.h"

namespace dais {

/// Runs a graph on reference loops and on the rows of every level of this machine, twice with one
/// session, and expects results within `tolerance` of the largest value. Every step must have a row
/// that binds these sizes. `plain` is the same function for the reference loops, where they cannot
/// run the graph itself (fused nodes).
inline void expect_rows_agree(const Graph& graph, const std::vector<Datum>& inputs,
                              double tolerance, const Graph* plain = nullptr) {
  const auto wanted = evaluate(plain ? *plain : graph, inputs);
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512, Isa::amx}) {
    if (isa > cpu::isa()) continue;
    Session session(Plan::create(graph.clone(), {.threads = 2, .isa = isa}));
    for (const Step& step : session.plan().steps()) EXPECT_NE(step.row, nullptr);
    for (int run = 0; run < 2; ++run) {
      const auto& got = session.run(inputs);
      EXPECT_TRUE(session.refused_steps().empty());
      for (size_t i = 0; i < wanted.size(); ++i) {
        const Tensor &a = got[i].tensor, &b = wanted[i].tensor;
        ASSERT_EQ(a.shape(), b.shape());
        double largest = 0, difference = 0;
        for (int64_t k = 0; k < a.elements(); ++k) {
          largest = std::max(largest, std::abs(b.to_double(k)));
          difference = std::max(difference, std::abs(a.to_double(k) - b.to_double(k)));
        }
        EXPECT_LE(difference, tolerance * largest) << "output " << i << ", " << isa_name(isa);
      }
    }
  }
}

}  // namespace dais
