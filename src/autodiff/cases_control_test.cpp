#include "autodiff/gradient_case.h"
#include "ops/control/control.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"

namespace dais {
namespace {

using Region = std::unique_ptr<Graph>;

Value* formal(Graph& region, const Value* like) { return region.add_input(like->type, {}); }

/// One branch multiplies the first two captures, the other takes the sine of the third.
Values branches(Graph& graph, const Values& in) {
  auto yes = std::make_unique<Graph>(), no = std::make_unique<Graph>();
  Value *a = formal(*yes, in[1]), *b = formal(*yes, in[2]);
  yes->outputs = {yes->add(Mul{}, {a, b}), a};
  Value* c = formal(*no, in[3]);
  no->outputs = {no->add(Sin{}, {c}), c};
  std::vector<Region> regions;
  regions.push_back(std::move(yes));
  regions.push_back(std::move(no));
  const Values captures{in[0], in[1], in[2], in[3]};
  return graph.add_node(If::op, Attrs::of(If{2}), captures, 2, "branch", std::move(regions)).outs;
}

/// state = tanh(state * slice + weight), and the square of the new state as a stacked output.
Region recurrent_body(const Type& state_type, const Type& slice_type, const Type& weight_type) {
  auto body = std::make_unique<Graph>();
  Value* state = body->add_input(state_type, {});
  Value* slice = body->add_input(slice_type, {});
  Value* weight = body->add_input(weight_type, {});
  Value* sum = body->add(Add{}, {body->add(Mul{}, {state, slice}), weight});
  Value* next = body->add(Tanh{}, {sum});
  body->outputs = {next, body->add(Mul{}, {next, next})};
  return body;
}

void scans(GradientCases& cases) {
  for (const int64_t direction : {0, 1})
    for (const int64_t axis : {0, 1}) {
      const auto build = [=](Graph& graph, const Values& in) {
        Type slice = in[1]->type;
        slice.shape->erase(slice.shape->begin() + axis);
        std::vector<Region> regions;
        regions.push_back(recurrent_body(in[0]->type, slice, in[2]->type));
        const Scan attrs{.states = 1,
                         .scans = 1,
                         .input_axes = {axis},
                         .input_directions = {direction},
                         .output_axes = {1},
                         .output_directions = {1 - direction}};
        return graph.add_node(Scan::op, Attrs::of(attrs), in, 2, "scan", std::move(regions)).outs;
      };
      cases.add(Scan::op, build, {real({2}), axis == 0 ? real({3, 2}) : real({2, 3}), real({1})},
                "scan");
    }
}

void loops(GradientCases& cases) {
  const auto build = [](Graph& graph, const Values& in) {
    auto body = std::make_unique<Graph>();
    Value* trip = body->add_input(Type::tensor(DType::i64, Dims{}), {});
    Value* go = body->add_input(Type::tensor(DType::boolean, Dims{}), {});
    Value* state = formal(*body, in[1]);
    Value* weight = formal(*body, in[2]);
    // Sooner than the number of trips says, the condition ends the loop.
    Value* limit = body->add_constant(Tensor::scalar<int64_t>(2));
    Value* more = body->add(Less{}, {trip, limit});
    Value* next = body->add(Sin{}, {body->add(Mul{}, {state, weight})});
    body->outputs = {body->add(And{}, {more, go}), next, body->add(Add{}, {next, weight})};
    std::vector<Region> regions;
    regions.push_back(std::move(body));
    return graph
        .add_node(Loop::op, Attrs::of(Loop{1}), {in[0], nullptr, in[1], in[2]}, 2, "loop",
                  std::move(regions))
        .outs;
  };
  for (const int64_t trips : {1, 2, 9})
    cases.add(Loop::op, build, {fixed(Tensor::scalar(trips)), real({2}), real({2})}, "loop");
}

}  // namespace

void control_cases(GradientCases& cases) {
  for (const bool yes : {true, false})
    cases.add(If::op, branches,
              {fixed(Tensor::scalar(yes)), real({2, 3}), real({2, 3}), real({2, 3})}, "if");
  scans(cases);
  loops(cases);
}

}  // namespace dais
