// Runs a model in ONNX Runtime for the comparison harness:  ort_runner LIBONNXRUNTIME.so [plain]
// `plain` leaves the graph as it is, to see how far the peer's own answers spread.
// It calls the C API, so that no language binding is charged to the peer.

#include <dlfcn.h>

#include <cstdio>
#include <map>
#include <stdexcept>
#include <string_view>

#include "ort_api.h"
#include "protocol.h"

namespace dais::peers {
namespace {

size_t element_size(int type) {
  switch (type) {
    case 2:
    case 3:
    case 9: return 1;
    case 4:
    case 5:
    case 10:
    case 16: return 2;
    case 1:
    case 6:
    case 12: return 4;
    case 7:
    case 11:
    case 13: return 8;
    default: throw std::runtime_error("output of element type " + std::to_string(type));
  }
}

class OrtEngine final : public Engine {
 public:
  OrtEngine(const char* library, ort::OptimizationLevel level);
  ~OrtEngine() override;
  OrtEngine(const OrtEngine&) = delete;
  OrtEngine& operator=(const OrtEngine&) = delete;

  std::string version() const override { return version_; }
  void load(const std::string& model, int threads) override;
  void set_input(Tensor tensor) override;
  void run() override;
  void release_outputs() override;
  void save_outputs(const std::string& folder) override;

 private:
  struct Input {
    Tensor tensor;
    ort::Value* value = nullptr;
  };

  template <class Entry, class... Args>
  void call(Args... args) const;
  template <class Entry, class Object>
  void release(Object*& object) const;
  void list_inputs();
  void save_output(size_t index, const std::string& path);

  ort::OptimizationLevel level_;
  const void* const* table_ = nullptr;
  std::string version_;
  ort::Env* env_ = nullptr;
  ort::MemoryInfo* memory_ = nullptr;
  ort::Session* session_ = nullptr;
  std::map<std::string, Input> inputs_;
  std::vector<const char*> input_names_, output_names_;
  std::vector<const ort::Value*> input_values_;
  std::vector<ort::Value*> outputs_;
};

template <class Entry, class... Args>
void OrtEngine::call(Args... args) const {
  ort::Status* status = Entry::call(table_, args...);
  if (!status) return;
  const std::string message = ort::GetErrorMessage::call(table_, status);
  ort::ReleaseStatus::call(table_, status);
  throw std::runtime_error(message);
}

template <class Entry, class Object>
void OrtEngine::release(Object*& object) const {
  if (object) Entry::call(table_, object);
  object = nullptr;
}

OrtEngine::OrtEngine(const char* library, ort::OptimizationLevel level) : level_(level) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(dlerror());
  const auto base = reinterpret_cast<const ort::ApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  if (!base) throw std::runtime_error(std::string(library) + " is not ONNX Runtime");
  version_ = base()->version_string();
  table_ = base()->get_api(1);
  if (!table_) throw std::runtime_error("this ONNX Runtime no longer offers API version 1");
  call<ort::CreateEnv>(ort::log_error, "peers", &env_);
  call<ort::CreateCpuMemoryInfo>(ort::device_allocator, ort::default_memory, &memory_);
}

OrtEngine::~OrtEngine() {
  release_outputs();
  for (auto& [name, input] : inputs_) release<ort::ReleaseValue>(input.value);
  release<ort::ReleaseSession>(session_);
  release<ort::ReleaseMemoryInfo>(memory_);
  release<ort::ReleaseEnv>(env_);
}

void OrtEngine::load(const std::string& model, int threads) {
  ort::SessionOptions* options = nullptr;
  call<ort::CreateSessionOptions>(&options);
  call<ort::SetGraphOptimizationLevel>(options, level_);
  call<ort::SetIntraOpThreads>(options, threads);
  call<ort::SetInterOpThreads>(options, 1);
  call<ort::CreateSession>(env_, model.c_str(), options, &session_);
  release<ort::ReleaseSessionOptions>(options);
  size_t count = 0;
  ort::Allocator* allocator = nullptr;
  call<ort::SessionOutputCount>(session_, &count);
  call<ort::DefaultAllocator>(&allocator);
  for (size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    call<ort::SessionOutputName>(session_, i, allocator, &name);
    output_names_.push_back(name);
  }
  outputs_.resize(count);
}

void OrtEngine::set_input(Tensor tensor) {
  Input& input = inputs_[tensor.name];
  release<ort::ReleaseValue>(input.value);
  input.tensor = std::move(tensor);
  call<ort::CreateTensorWithData>(memory_, static_cast<void*>(input.tensor.bytes.data()),
                                  input.tensor.bytes.size(), input.tensor.dims.data(),
                                  input.tensor.dims.size(), input.tensor.type, &input.value);
  list_inputs();
}

void OrtEngine::list_inputs() {
  input_names_.clear();
  input_values_.clear();
  for (const auto& [name, input] : inputs_) {
    input_names_.push_back(name.c_str());
    input_values_.push_back(input.value);
  }
}

void OrtEngine::run() {
  const ort::RunOptions* options = nullptr;
  call<ort::Run>(session_, options, input_names_.data(), input_values_.data(), input_values_.size(),
                 output_names_.data(), outputs_.size(), outputs_.data());
}

void OrtEngine::release_outputs() {
  for (ort::Value*& output : outputs_) release<ort::ReleaseValue>(output);
}

void OrtEngine::save_outputs(const std::string& folder) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    save_output(i, folder + "/output_" + std::to_string(i) + ".pb");
  }
}

void OrtEngine::save_output(size_t index, const std::string& path) {
  if (!outputs_[index]) throw std::runtime_error("save before run");
  ort::ShapeInfo* info = nullptr;
  int type = 0;
  size_t rank = 0;
  void* data = nullptr;
  call<ort::TensorTypeAndShape>(outputs_[index], &info);
  call<ort::ElementType>(info, &type);
  call<ort::DimensionCount>(info, &rank);
  std::vector<int64_t> dims(rank);
  call<ort::Dimensions>(info, dims.data(), rank);
  release<ort::ReleaseShapeInfo>(info);
  call<ort::TensorData>(outputs_[index], &data);
  size_t size = element_size(type);
  for (const int64_t dim : dims) size *= static_cast<size_t>(dim);
  write_tensor(path, output_names_[index], type, dims, data, size);
}

}  // namespace
}  // namespace dais::peers

int main(int argc, char** argv) {
  using dais::peers::ort::OptimizationLevel;
  const bool plain = argc == 3 && std::string_view(argv[2]) == "plain";
  if (argc != 2 && !plain) {
    std::fputs("usage: ort_runner LIBONNXRUNTIME.so [plain]\n", stderr);
    return 2;
  }
  try {
    const auto level = plain ? OptimizationLevel::optimize_none : OptimizationLevel::optimize_all;
    dais::peers::OrtEngine engine(argv[1], level);
    return dais::peers::answer_commands(engine);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ort_runner: %s\n", error.what());
    return 1;
  }
}
