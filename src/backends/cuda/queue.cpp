#include "backends/cuda/queue.h"

#include <utility>

#include "backends/cuda/check.h"

namespace dais::cuda {
namespace {

DevicePointer number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

class PoolMemory : public DeviceMemory {
 public:
  PoolMemory(std::shared_ptr<Stream> stream, size_t bytes, const std::string& holder)
      : stream_(std::move(stream)),
        bytes_(bytes),
        memory_(stream_->device().allocate(bytes, holder, stream_->handle())) {}
  ~PoolMemory() override { stream_->device().release(memory_, stream_->handle()); }
  void* address() const override { return reinterpret_cast<void*>(memory_); }
  size_t bytes() const override { return bytes_; }

 private:
  std::shared_ptr<Stream> stream_;
  size_t bytes_;
  DevicePointer memory_;
};

/// A graph of the driver.
class GraphRecording : public Recording {
 public:
  explicit GraphRecording(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~GraphRecording() override {
    const DriverApi& driver = stream_->device().driver();
    if (exec) driver.graph_exec_destroy(exec);
    if (graph) driver.graph_destroy(graph);
  }
  DriverGraph graph = nullptr;
  DriverGraphExec exec = nullptr;
  bool may_fault = false;

 private:
  std::shared_ptr<Stream> stream_;
};

const char* problem_text(int problem) {
  switch (static_cast<Problem>(problem)) {
    case Problem::index_outside: return "an index lies outside its axis";
    case Problem::box_too_large: return "a box is too large to be sampled";
    case Problem::box_not_finite: return "a box is not finite";
    default: return "a kernel reported an unknown problem";
  }
}

}  // namespace

CudaQueue::CudaQueue(std::shared_ptr<Device> device)
    : stream_(std::make_shared<Stream>(std::move(device))), staging_(stream_) {}

CudaQueue::~CudaQueue() = default;

std::shared_ptr<DeviceMemory> CudaQueue::allocate(size_t bytes, const std::string& holder) {
  return std::make_shared<PoolMemory>(stream_, bytes, holder);
}

void CudaQueue::upload(void* to, const void* from, size_t bytes) {
  device().enter();
  staging_.upload(number(to), from, bytes);
}

void CudaQueue::download(void* to, const void* from, size_t bytes) {
  device().enter();
  staging_.download(to, number(from), bytes);
}

void CudaQueue::copy(void* to, const void* from, size_t bytes) {
  device().enter();
  const DriverApi& driver = device().driver();
  check(driver, driver.memcpy_dtod_async(number(to), number(from), bytes, stream()),
        "copying on the device");
}

void CudaQueue::run(BoundKernel& kernel, Arguments arguments, int step) {
  device().enter();
  step_ = step;
  failure_ = nullptr;
  kernel.run(arguments);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

std::unique_ptr<Recording> CudaQueue::record(const std::function<void()>& body) {
  device().enter();
  const DriverApi& driver = device().driver();
  auto made = std::make_unique<GraphRecording>(stream_);
  const bool fault_before = std::exchange(may_fault_, false);
  check(driver, driver.stream_begin_capture(stream(), CaptureMode::thread_local_only),
        "beginning a recording");
  std::exception_ptr failure;
  try {
    body();
  } catch (...) {
    failure = std::current_exception();
  }
  const DriverResult ended = driver.stream_end_capture(stream(), &made->graph);
  if (failure) std::rethrow_exception(failure);
  check(driver, ended, "ending a recording");
  check(driver, driver.graph_instantiate(&made->exec, made->graph, 0), "preparing a recording");
  made->may_fault = may_fault_;
  may_fault_ = fault_before;
  return made;
}

void CudaQueue::replay(Recording& recording) {
  device().enter();
  auto& made = static_cast<GraphRecording&>(recording);
  may_fault_ = may_fault_ || made.may_fault;
  check(device().driver(), device().driver().graph_launch(made.exec, stream()),
        "starting a recording");
}

void CudaQueue::fail(std::exception_ptr failure) noexcept {
  if (!failure_) failure_ = std::move(failure);
}

FaultRecord* CudaQueue::faults() {
  if (!faults_) {
    faults_ = allocate(sizeof(FaultRecord), "fault records");
    const DriverApi& driver = device().driver();
    check(driver,
          driver.memset_d8_async(number(faults_->address()), 0, sizeof(FaultRecord), stream()),
          "clearing the fault record");
  }
  may_fault_ = true;
  return static_cast<FaultRecord*>(faults_->address());
}

std::optional<QueueFault> CudaQueue::wait() {
  // When this throws, what was asked for may have no place to go to any more.
  const std::unique_ptr<Staging, void (*)(Staging*)> guard(
      &staging_, [](Staging* staging) { staging->drop(); });
  device().enter();
  const DriverApi& driver = device().driver();
  FaultRecord found;
  if (may_fault_)
    check(driver,
          driver.memcpy_dtoh_async(&found, number(faults_->address()), sizeof found, stream()),
          "reading the fault record");
  check(driver, driver.stream_synchronize(stream()), "waiting for the device");
  staging_.land();
  may_fault_ = false;
  if (found.problem == 0) return std::nullopt;
  check(driver,
        driver.memset_d8_async(number(faults_->address()), 0, sizeof(FaultRecord), stream()),
        "clearing the fault record");
  return QueueFault{{problem_text(found.problem), found.index}, found.step};
}

}  // namespace dais::cuda
