#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/device.h"

namespace dais::cuda {

/// A descriptor of cuDNN's, destroyed with this. Attributes are set until finalize(); the first
/// failure stands and makes the rest do nothing.
class DnnObject {
 public:
  DnnObject(const CudnnApi& api, DnnKind kind);
  ~DnnObject();
  DnnObject(const DnnObject&) = delete;

  template <typename T>
  DnnObject& set(DnnAttribute attribute, DnnType type, const std::vector<T>& values) {
    return put(attribute, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <typename T>
  DnnObject& set(DnnAttribute attribute, DnnType type, const T& value) {
    return put(attribute, type, 1, &value);
  }
  DnnObject& put(DnnAttribute attribute, DnnType type, int64_t count, const void* values);
  DnnStatus finalize();

  DnnDescriptor get() const { return descriptor_; }
  DnnStatus status() const { return status_; }

 private:
  const CudnnApi& api_;
  DnnDescriptor descriptor_ = nullptr;
  DnnStatus status_;
};

/// A tensor in memory, or one that only the graph knows (`id` below 0).
struct DnnTensor {
  int64_t id = -1;
  DnnData type = DnnData::f32;
  std::vector<int64_t> sizes;
};

/// One convolution with what follows it: a bias of each channel, a tensor that is added, and an
/// activation, in this order.
struct DnnConv {
  DnnTensor x, w, bias, residual, y;  ///< bias or residual without sizes: none
  std::vector<int64_t> strides, dilations, pad_begin, pad_end;
  DnnPointwise activation = DnnPointwise::add;  ///< add: none
  bool exact = true;  ///< f32 products of f32: no engine that rounds its inputs
};

/// An engine's plan for a graph, with its workspace.
class DnnPlan {
 public:
  /// nullptr when no engine takes the graph; `problem` then says what the library said last.
  static std::unique_ptr<DnnPlan> make(Device& device, const DnnConv& conv, std::string& problem);

  size_t workspace_bytes() const { return static_cast<size_t>(workspace_bytes_); }
  /// Puts it on the stream. `pointers` belong to the ids.
  DnnStatus run(const std::vector<int64_t>& ids, const std::vector<void*>& pointers,
                void* workspace, DriverStream stream);

 private:
  explicit DnnPlan(Device& device) : device_(device.shared_from_this()) {}
  bool choose(DnnHandle handle, const DnnObject& graph, DnnHeuristics mode, bool exact,
              std::string& problem);

  std::shared_ptr<Device> device_;
  std::vector<std::unique_ptr<DnnObject>> parts_;
  std::unique_ptr<DnnObject> plan_, pack_;
  std::vector<void*> packed_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace dais::cuda
