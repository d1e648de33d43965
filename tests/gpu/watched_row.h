#pragma once

#include "ops/wide.h"
#include "row_agreement.h"

namespace dais {

/// How a row ran, for expectations on its traffic. On hardware nothing is counted, and the
/// expectations hold for nothing.
struct WatchedRun {
  std::string row;  ///< empty: none took the node
  std::vector<cuda::emulated::LaunchRecord> launches = {};

  void expect_launches(size_t count) const {
    EXPECT_TRUE(on_hardware() || launches.size() == count) << row << ": " << launches.size();
  }
  /// Nothing moves between memory and kernels that no thread asked for.
  void expect_coalesced() const {
    for (const auto& launch : launches) {
      EXPECT_EQ(launch.traffic.reads.efficiency(), 1.0) << row << ", " << launch.kernel;
      expect_coalesced_writes();
    }
  }
  void expect_coalesced_writes() const {
    for (const auto& launch : launches)
      EXPECT_EQ(launch.traffic.writes.efficiency(), 1.0) << row << ", " << launch.kernel;
  }
  void expect_bytes(uint64_t read, uint64_t written) const {
    uint64_t reads = 0, writes = 0;
    for (const auto& launch : launches) {
      reads += launch.traffic.reads.bytes;
      writes += launch.traffic.writes.bytes;
    }
    EXPECT_TRUE(on_hardware() || reads == read) << row << ": " << reads;
    EXPECT_TRUE(on_hardware() || writes == written) << row << ": " << writes;
  }
  void expect_no_bank_conflicts() const {
    for (const auto& launch : launches) EXPECT_EQ(launch.traffic.shared.conflicts, 0u) << row;
  }
};

struct WatchedCase {
  RowTolerance tolerance = {1e-5, 1e-6};
  std::vector<size_t> constants = {};  ///< inputs that the graph holds
  size_t outputs = 1;
};

/// Runs the op by the first row of the test's device that takes it and compares with the reference.
/// Whatever the emulated device finds wrong fails the test, and so does that there is no row.
template <typename Struct>
WatchedRun watch_row(Struct attrs, const std::vector<Tensor>& inputs, const WatchedCase& how = {}) {
  OneNode one;
  one.build(std::move(attrs), inputs, how.constants, how.outputs);
  const Node& node = *one.graph.nodes().front();
  const auto wanted = evaluate_node(node, one.data);
  const auto queue = test_backend()->open_queue();
  const KernelQuery query{node, Isa::plain, 1, test_backend().get()};
  for (const KernelRow* row : test_backend()->kernels().rows(*node.op)) {
    if (!row->accepts(query)) continue;
    std::vector<Tensor> outputs;
    for (const Datum& output : wanted)
      outputs.emplace_back(output.tensor.dtype(), output.tensor.shape());
    const auto kernel = row->prepare(query);
    cuda::emulated::set_recording(true);
    cuda::emulated::take_launches();
    const bool ran = run_device_row(*kernel, *queue, one.data, outputs);
    cuda::emulated::set_recording(false);
    for (const auto& finding : cuda::emulated::take_findings()) ADD_FAILURE() << finding.text();
    if (!ran) continue;
    for (size_t i = 0; i < wanted.size(); ++i)
      expect_close(outputs[i], wanted[i].tensor, how.tolerance,
                   std::string(row->name) + " for " + node.where());
    return {std::string(row->name), cuda::emulated::take_launches()};
  }
  ADD_FAILURE() << "no row takes " << node.where();
  return {};
}

/// The first output of an op by its reference.
template <typename Struct>
Tensor run_reference(Struct attrs, const std::vector<Tensor>& inputs) {
  OneNode one;
  one.build(std::move(attrs), inputs);
  return evaluate_node(*one.graph.nodes().front(), one.data)[0].tensor;
}

/// The same values in another floating-point type.
inline Tensor narrowed(const Tensor& from, DType dtype) {
  Tensor to(dtype, from.shape());
  const auto values = to_wide<float>(from);
  store_wide(to, 0, values.data(), from.elements());
  return to;
}

}  // namespace dais
