#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/backend.h"
#include "backends/cuda/emulated/emulated.h"
#include "runtime/row_test.h"

namespace dais {

/// The device of these tests, opened once for all of them: the emulated one, or the machine's first
/// GPU when DAIS_TEST_DEVICE is "gpu".
inline const std::shared_ptr<cuda::CudaBackend>& test_backend() {
  static const auto backend = [] {
    const char* named = std::getenv("DAIS_TEST_DEVICE");
    const bool hardware = named && std::string(named) == "gpu";
    return std::make_shared<cuda::CudaBackend>(
        cuda::Device::open(hardware ? cuda::system_tables() : cuda::emulated_tables(), 0));
  }();
  return backend;
}
inline bool on_hardware() { return test_backend()->device().info().hardware; }

/// Runs one row of the device on given inputs; false when it does not bind these sizes.
inline bool run_device_row(const Kernel& kernel, Queue& queue, std::span<const Datum> inputs,
                           std::vector<Tensor>& outputs) {
  std::vector<Shape> in, out;
  std::vector<std::shared_ptr<DeviceMemory>> memory;
  std::vector<const void*> in_pointers;
  std::vector<void*> out_pointers;
  const auto take = [&](size_t bytes) {
    memory.push_back(queue.allocate(std::max<size_t>(bytes, 1), "test"));
    return memory.back()->address();
  };
  for (const Datum& input : inputs) {
    in.push_back(input.has_value() ? input.tensor.shape() : Shape{});
    in_pointers.push_back(nullptr);
    if (!input.has_value()) continue;
    void* at = take(input.tensor.bytes());
    if (input.tensor.bytes() > 0) queue.upload(at, input.tensor.raw(), input.tensor.bytes());
    in_pointers.back() = at;
  }
  for (Tensor& output : outputs) {
    out.push_back(output.shape());
    out_pointers.push_back(take(output.bytes()));
  }
  const auto bound = kernel.bind({in, out});
  if (!bound) return false;
  Arguments arguments{in_pointers, out_pointers, take(bound->scratch_bytes()), &queue};
  queue.run(*bound, arguments, 0);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].bytes() > 0)
      queue.download(outputs[i].raw(), out_pointers[i], outputs[i].bytes());
  EXPECT_FALSE(queue.wait().has_value());
  return true;
}

/// Runs the only node of `graph` on its reference and on every row of the emulated device that
/// accepts it, and compares. Kernels are watched: any fault that the device finds fails the test.
/// Gives how many rows ran.
inline int check_device_rows(const Graph& graph, std::span<const Datum> inputs,
                             const RowTolerance& tolerance = {}) {
  const Node& node = *graph.nodes().front();
  const auto wanted = evaluate_node(node, inputs);
  const auto queue = test_backend()->open_queue();
  const KernelQuery query{node, Isa::plain, 1, test_backend().get()};
  int ran = 0;
  for (const KernelRow* row : test_backend()->kernels().rows(*node.op)) {
    if (!row->accepts(query)) continue;
    std::vector<Tensor> outputs;
    for (const Datum& output : wanted)
      outputs.emplace_back(output.tensor.dtype(), output.tensor.shape());
    if (!run_device_row(*row->prepare(query), *queue, inputs, outputs)) continue;
    ++ran;
    for (const auto& finding : cuda::emulated::take_findings()) ADD_FAILURE() << finding.text();
    for (size_t i = 0; i < wanted.size(); ++i)
      expect_close(outputs[i], wanted[i].tensor, tolerance,
                   std::string(row->name) + " for " + node.where());
  }
  return ran;
}

/// The same for an op and its inputs; those listed in `constants` are constants of the graph.
template <typename Struct>
int check_device_rows(Struct attrs, const std::vector<Tensor>& inputs,
                      const RowTolerance& tolerance = {}, const std::vector<size_t>& constants = {},
                      size_t outputs = 1) {
  OneNode one;
  one.build(std::move(attrs), inputs, constants, outputs);
  return check_device_rows(one.graph, one.data, tolerance);
}

}  // namespace dais
