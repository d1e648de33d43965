#pragma once

// For tests: one case shows one op at one setting of attributes and shapes; its gradients must
// agree with central differences.

#include <functional>

#include "ir/graph.h"

namespace dais {

struct CaseInput {
  Tensor value;         ///< absent: the input is left out
  bool varied = false;  ///< f64, and the gradient with respect to it is checked
  bool batch = false;   ///< axis 0 is made symbolic in the second form of the case
};

/// Even steps from `low` to `high` in a scrambled order, so that no two elements are equal, moved
/// away from the points listed in `avoid`.
struct Spread {
  double low = -2, high = 2;
  std::vector<double> avoid = {0};
};
CaseInput real(const Shape& shape, const Spread& spread = {});
/// The same with axis 0 as a batch.
CaseInput batched(const Shape& shape, const Spread& spread = {});
/// Inputs that stay as they are.
CaseInput fixed(Tensor value);
CaseInput fixed_ints(const std::vector<int64_t>& values);
CaseInput none();

struct GradientCase {
  const Op* op = nullptr;
  std::function<Values(Graph&, const Values&)> build;
  std::vector<CaseInput> inputs;
  std::string text;
};

class GradientCases {
 public:
  /// `results`: which outputs carry the gradient; empty: every one of a float type.
  template <typename Struct>
  void add(Struct attrs, std::vector<CaseInput> inputs, size_t outputs = 1,
           std::vector<size_t> results = {}) {
    const Attrs held = Attrs::of(attrs);
    add(
        Struct::op,
        [held, outputs, results](Graph& graph, const Values& in) {
          const Values all = graph.add_node(Struct::op, held, in, outputs).outs;
          if (results.empty()) return all;
          Values chosen;
          for (const size_t i : results) chosen.push_back(all[i]);
          return chosen;
        },
        std::move(inputs), std::string(Struct::op.name) + " " + held.text());
  }
  void add(const Op& op, std::function<Values(Graph&, const Values&)> build,
           std::vector<CaseInput> inputs, std::string text);

  const std::vector<GradientCase>& all() const { return cases_; }

 private:
  std::vector<GradientCase> cases_;
};

/// What is wrong with a case's gradients, or "".
std::string check_gradients(const GradientCase& one);

// The cases, by family.
void elementwise_cases(GradientCases& cases);
void shape_cases(GradientCases& cases);
void product_cases(GradientCases& cases);
void window_cases(GradientCases& cases);
void norm_cases(GradientCases& cases);
void sequence_cases(GradientCases& cases);
void signal_cases(GradientCases& cases);
void control_cases(GradientCases& cases);

}  // namespace dais
