// Runs a model in dais for the comparison harness:  dais_runner

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "api/compile.h"
#include "onnx/importer.h"
#include "protocol.h"
#include "runtime/session.h"

namespace dais::peers {
namespace {

class DaisEngine final : public Engine {
 public:
  std::string version() const override { return "dais"; }

  void load(const std::string& path, int threads) override {
    onnx::Model model = onnx::import_model(path);
    outputs_ = model.outputs;
    for (const Value* input : model.graph->inputs) names_.push_back(input->name);
    inputs_.resize(names_.size());
    held_.resize(names_.size());
    CompileOptions options;
    options.threads = threads;
    session_ = std::make_unique<Session>(compile(std::move(model.graph), options).plan);
  }

  void set_input(Tensor tensor) override {
    const auto found = std::find(names_.begin(), names_.end(), tensor.name);
    if (found == names_.end()) throw std::runtime_error("no input " + tensor.name);
    const auto index = static_cast<size_t>(found - names_.begin());
    held_[index] = std::move(tensor);
    Tensor& held = held_[index];
    const auto dtype = dtype_from_onnx(held.type);
    if (!dtype) throw std::runtime_error("element type " + std::to_string(held.type));
    inputs_[index] = dais::Tensor::view(*dtype, Shape(held.dims), held.bytes.data());
  }

  void run() override { results_ = &session_->run(inputs_); }

  void release_outputs() override {}

  void save_outputs(const std::string& folder) override {
    for (size_t i = 0; i < results_->size(); ++i) {
      const dais::Tensor& tensor = (*results_)[i].tensor;
      write_tensor(folder + "/output_" + std::to_string(i) + ".pb", outputs_[i],
                   static_cast<int32_t>(tensor.dtype()), tensor.shape().vector(), tensor.raw(),
                   tensor.bytes());
    }
  }

 private:
  std::unique_ptr<Session> session_;
  std::vector<std::string> names_, outputs_;
  std::vector<Tensor> held_;
  std::vector<Datum> inputs_;
  const std::vector<Datum>* results_ = nullptr;
};

}  // namespace
}  // namespace dais::peers

int main() {
  dais::peers::DaisEngine engine;
  return dais::peers::answer_commands(engine);
}
