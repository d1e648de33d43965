#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/device.h"
#include "backends/cuda/backend.h"
#include "base/span.h"
#include "ir/graph.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"

namespace dais {
namespace {

using nlohmann::json;

struct Timer {
  Queue& queue;
  int repeats;

  /// Median seconds of one call among many put behind each other.
  template <typename Body>
  double operator()(Body&& body) const {
    body();
    queue.wait();
    std::vector<double> times;
    for (int round = 0; round < 7; ++round) {
      const double start = steady_seconds();
      for (int i = 0; i < repeats; ++i) body();
      queue.wait();
      times.push_back((steady_seconds() - start) / repeats);
    }
    std::nth_element(times.begin(), times.begin() + 3, times.end());
    return times[3];
  }
};

/// A node with resident operands of zeros.
class Case {
 public:
  Case(cuda::CudaBackend& backend, Queue& queue) : backend_(backend), queue_(queue) {}

  template <typename Struct>
  void build(Struct attrs, DType dtype, const std::vector<Shape>& inputs) {
    Values values;
    for (const Shape& shape : inputs) {
      const Dims dims(shape.begin(), shape.end());
      values.push_back(graph_.add_input(Type::tensor(dtype, dims), {}));
      in_shapes_.push_back(shape);
      in_.push_back(take(shape, dtype));
    }
    graph_.outputs = graph_.add_node(std::move(attrs), values).outs;
    out_shapes_ = {*graph_.outputs[0]->type.static_shape()};
    out_ = {take(out_shapes_[0], dtype)};
  }

  size_t bytes() const { return bytes_; }

  /// Seconds by row name; rows that do not take the node are left out.
  std::vector<std::pair<std::string, double>> measure(const Timer& timer) {
    std::vector<std::pair<std::string, double>> out;
    const Node& node = *graph_.nodes().front();
    const KernelQuery query{node, Isa::plain, 1, &backend_};
    for (const KernelRow* row : backend_.kernels().rows(*node.op)) {
      if (!row->accepts(query)) continue;
      const auto kernel = row->prepare(query);
      const auto bound = kernel->bind({in_shapes_, out_shapes_});
      if (!bound) continue;
      const auto scratch = queue_.allocate(std::max<size_t>(bound->scratch_bytes(), 1), "scratch");
      const Arguments arguments{in_, out_, scratch->address(), &queue_};
      out.emplace_back(row->name, timer([&] { queue_.run(*bound, arguments, 0); }));
    }
    return out;
  }

 private:
  void* take(const Shape& shape, DType dtype) {
    const size_t size = static_cast<size_t>(shape.elements()) * dtype_size(dtype);
    const std::vector<std::byte> zeros(size);
    memory_.push_back(queue_.allocate(size, "operands"));
    queue_.upload(memory_.back()->address(), zeros.data(), size);
    bytes_ += size;
    return memory_.back()->address();
  }

  cuda::CudaBackend& backend_;
  Queue& queue_;
  Graph graph_;
  std::vector<Shape> in_shapes_, out_shapes_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::vector<std::shared_ptr<DeviceMemory>> memory_;
  size_t bytes_ = 0;
};

double copy_bandwidth(Queue& queue, const Timer& timer, size_t bytes) {
  const auto from = queue.allocate(bytes, "copy"), to = queue.allocate(bytes, "copy");
  const double seconds = timer([&] { queue.copy(to->address(), from->address(), bytes); });
  return 2 * static_cast<double>(bytes) / seconds;
}

class Bench {
 public:
  Bench(cuda::CudaBackend& backend, bool small)
      : backend_(backend), queue_(backend.open_queue()), small_(small) {}

  json run() {
    const Timer timer{*queue_, small_ ? 1 : 20};
    bandwidth_ = copy_bandwidth(*queue_, timer, small_ ? 4096 : size_t{256} << 20);
    json out{{"device", backend_.name()}, {"copy_gb_per_s", bandwidth_ / 1e9}};
    const int64_t n = small_ ? 1024 : int64_t{64} << 20;
    for (const DType dtype : {DType::f32, DType::f16}) {
      moving("relu", Relu{}, dtype, {{n}});
      moving("add", Add{}, dtype, {{n}, {n}});
      moving("add bias", Add{}, dtype, {{n / 1024, 1024}, {1024}});
    }
    const int64_t m = small_ ? 64 : 4096;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      product("matmul", MatMul{}, dtype, {{m, m}, {m, m}}, 2.0 * static_cast<double>(m * m * m));
    const int64_t c = small_ ? 8 : 256, s = small_ ? 6 : 56;
    product("conv 3x3", Conv{.pads = {1, 1, 1, 1}}, DType::f32, {{8, c, s, s}, {c, c, 3, 3}},
            2.0 * 8 * 9 * static_cast<double>(c * c * s * s));
    out["rows"] = rows_;
    return out;
  }

 private:
  template <typename Struct>
  void moving(const char* name, Struct attrs, DType dtype, const std::vector<Shape>& inputs) {
    Case one(backend_, *queue_);
    one.build(std::move(attrs), dtype, inputs);
    for (const auto& [row, seconds] : one.measure({*queue_, small_ ? 1 : 20})) {
      const double rate = static_cast<double>(one.bytes()) / seconds;
      rows_.push_back({{"case", name},
                       {"dtype", dtype_name(dtype)},
                       {"row", row},
                       {"us", seconds * 1e6},
                       {"gb_per_s", rate / 1e9},
                       {"share_of_copy", rate / bandwidth_}});
    }
  }

  template <typename Struct>
  void product(const char* name, Struct attrs, DType dtype, const std::vector<Shape>& inputs,
               double flops) {
    Case one(backend_, *queue_);
    one.build(std::move(attrs), dtype, inputs);
    double library = 0;
    for (const auto& [row, seconds] : one.measure({*queue_, small_ ? 1 : 20})) {
      json entry{{"case", name},
                 {"dtype", dtype_name(dtype)},
                 {"row", row},
                 {"us", seconds * 1e6},
                 {"tflop_per_s", flops / seconds / 1e12}};
      if (row == "product/cublaslt") library = seconds;
      if (library > 0) entry["share_of_library"] = library / seconds;
      rows_.push_back(std::move(entry));
    }
  }

  cuda::CudaBackend& backend_;
  std::unique_ptr<Queue> queue_;
  bool small_;
  double bandwidth_ = 1;
  json rows_ = json::array();
};

int run(int argc, char** argv) {
  std::string device = "gpu";
  bool small = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--small")
      small = true;
    else if (word == "--device" && i + 1 < argc)
      device = argv[++i];
    else
      throw Error(Code::invalid_argument, "'" + word + "' is no flag", "",
                  "Use --device gpu|emulated and --small");
  }
  const DeviceChoice choice = choose_device(device);
  auto* backend = dynamic_cast<cuda::CudaBackend*>(choice.backend.get());
  if (!backend) throw Error(Code::invalid_argument, "'" + device + "' is no GPU");
  std::printf("%s\n", Bench(*backend, small).run().dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace dais

int main(int argc, char** argv) {
  try {
    return dais::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_rows: %s\n", error.what());
    return 2;
  }
}
