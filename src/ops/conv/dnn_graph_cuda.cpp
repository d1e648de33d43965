#include "ops/conv/dnn_graph_cuda.h"

#include <algorithm>

namespace dais::cuda {
namespace {

constexpr int64_t kAlignment = 64;  ///< of the arena's offsets
constexpr int64_t kMostWorkspace = int64_t{256} << 20;
constexpr int64_t kMostConfigs = 16;

std::vector<int64_t> dense(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> out(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i-- > 0;) out[i] = out[i + 1] * sizes[i + 1];
  return out;
}

/// Makes descriptors and keeps them alive for the plan.
class Builder {
 public:
  Builder(const CudnnApi& api, std::vector<std::unique_ptr<DnnObject>>& parts)
      : api_(api), parts_(parts) {}

  DnnObject& make(DnnKind kind) {
    parts_.push_back(std::make_unique<DnnObject>(api_, kind));
    return *parts_.back();
  }
  DnnObject& finished(DnnObject& object) {
    if (const DnnStatus status = object.finalize(); status_ == DnnStatus::success) status_ = status;
    return object;
  }
  DnnObject& tensor(const DnnTensor& tensor) {
    DnnObject& out = make(DnnKind::tensor);
    const bool hidden = tensor.id < 0;
    out.set(DnnAttribute::tensor_type, DnnType::data_type, tensor.type)
        .set(DnnAttribute::tensor_sizes, DnnType::int64, tensor.sizes)
        .set(DnnAttribute::tensor_strides, DnnType::int64, dense(tensor.sizes))
        .set(DnnAttribute::tensor_id, DnnType::int64, hidden ? next_hidden_++ : tensor.id)
        .set(DnnAttribute::tensor_alignment, DnnType::int64, kAlignment);
    if (hidden) out.set(DnnAttribute::tensor_virtual, DnnType::boolean, true);
    return finished(out);
  }
  DnnObject& convolution(const DnnConv& conv) {
    const auto axes = static_cast<int64_t>(conv.strides.size());
    return finished(
        make(DnnKind::convolution)
            .set(DnnAttribute::convolution_precision, DnnType::data_type, DnnData::f32)
            .set(DnnAttribute::convolution_mode, DnnType::convolution_mode,
                 DnnConvolution::correlation)
            .set(DnnAttribute::convolution_spatial_axes, DnnType::int64, axes)
            .set(DnnAttribute::convolution_dilations, DnnType::int64, conv.dilations)
            .set(DnnAttribute::convolution_strides, DnnType::int64, conv.strides)
            .set(DnnAttribute::convolution_pre_paddings, DnnType::int64, conv.pad_begin)
            .set(DnnAttribute::convolution_post_paddings, DnnType::int64, conv.pad_end));
  }
  DnnObject& pointwise(DnnPointwise mode, const DnnObject& x, const DnnObject* b,
                       const DnnObject& y) {
    const DnnObject& how =
        finished(make(DnnKind::pointwise)
                     .set(DnnAttribute::pointwise_mode, DnnType::pointwise_mode, mode)
                     .set(DnnAttribute::pointwise_precision, DnnType::data_type, DnnData::f32));
    DnnObject& out = make(DnnKind::operation_pointwise);
    out.set(DnnAttribute::operation_pointwise, DnnType::descriptor, how.get())
        .set(DnnAttribute::operation_pointwise_x, DnnType::descriptor, x.get());
    if (b) out.set(DnnAttribute::operation_pointwise_b, DnnType::descriptor, b->get());
    out.set(DnnAttribute::operation_pointwise_y, DnnType::descriptor, y.get());
    return finished(out);
  }
  DnnStatus status() const { return status_; }

 private:
  const CudnnApi& api_;
  std::vector<std::unique_ptr<DnnObject>>& parts_;
  DnnStatus status_ = DnnStatus::success;
  int64_t next_hidden_ = 100;
};

/// The operations of a convolution and what follows it.
std::vector<DnnDescriptor> operations(Builder& build, const DnnConv& conv) {
  std::vector<const DnnTensor*> added;
  for (const DnnTensor* one : {&conv.bias, &conv.residual})
    if (!one->sizes.empty()) added.push_back(one);
  const bool active = conv.activation != DnnPointwise::add;
  DnnTensor between = conv.y;
  between.id = -1;
  between.type = DnnData::f32;
  const DnnObject& x = build.tensor(conv.x);
  const DnnObject& w = build.tensor(conv.w);
  const DnnObject& y = build.tensor(conv.y);
  const DnnObject* current = !added.empty() || active ? &build.tensor(between) : &y;
  const float one = 1, none = 0;
  const DnnObject& how = build.convolution(conv);
  std::vector<DnnDescriptor> out;
  out.push_back(
      build
          .finished(build.make(DnnKind::convolution_forward)
                        .set(DnnAttribute::forward_convolution, DnnType::descriptor, how.get())
                        .set(DnnAttribute::forward_x, DnnType::descriptor, x.get())
                        .set(DnnAttribute::forward_w, DnnType::descriptor, w.get())
                        .set(DnnAttribute::forward_y, DnnType::descriptor, current->get())
                        .set(DnnAttribute::forward_alpha, DnnType::f32, one)
                        .set(DnnAttribute::forward_beta, DnnType::f32, none))
          .get());
  for (const DnnTensor* one : added) {
    const DnnObject& term = build.tensor(*one);
    const DnnObject& sum = active || one != added.back() ? build.tensor(between) : y;
    out.push_back(build.pointwise(DnnPointwise::add, *current, &term, sum).get());
    current = &sum;
  }
  if (active) out.push_back(build.pointwise(conv.activation, *current, nullptr, y).get());
  return out;
}

/// Whether an engine of a configuration computes with rounded inputs.
bool rounds(const CudnnApi& api, DnnDescriptor config) {
  DnnObject engine(api, DnnKind::engine);
  DnnDescriptor asked = engine.get();
  int64_t count = 0;
  if (api.get_attribute(config, DnnAttribute::config_engine, DnnType::descriptor, 1, &count,
                        &asked) != DnnStatus::success)
    return true;
  int notes[10] = {};
  if (api.get_attribute(asked, DnnAttribute::engine_numerical_notes, DnnType::numerical_note, 10,
                        &count, notes) != DnnStatus::success)
    return true;
  return std::any_of(notes, notes + std::min<int64_t>(count, 10), [](int note) {
    return note == static_cast<int>(DnnNote::tensor_core) ||
           note == static_cast<int>(DnnNote::down_converts);
  });
}

}  // namespace

DnnObject::DnnObject(const CudnnApi& api, DnnKind kind) : api_(api) {
  status_ = api_.descriptor_create(kind, &descriptor_);
}
DnnObject::~DnnObject() {
  if (descriptor_) api_.descriptor_destroy(descriptor_);
}
DnnObject& DnnObject::put(DnnAttribute attribute, DnnType type, int64_t count, const void* values) {
  if (status_ == DnnStatus::success)
    status_ = api_.set_attribute(descriptor_, attribute, type, count, values);
  return *this;
}
DnnStatus DnnObject::finalize() {
  if (status_ == DnnStatus::success) status_ = api_.finalize(descriptor_);
  return status_;
}

bool DnnPlan::choose(DnnHandle handle, const DnnObject& graph, DnnHeuristics mode, bool exact,
                     std::string& problem) {
  const CudnnApi& api = device_->tables().cudnn.api;
  DnnObject heuristics(api, DnnKind::engine_heuristics);
  heuristics.set(DnnAttribute::heuristics_graph, DnnType::descriptor, graph.get())
      .set(DnnAttribute::heuristics_mode, DnnType::heuristics_mode, mode);
  if (const DnnStatus status = heuristics.finalize(); status != DnnStatus::success) {
    problem = api.get_error_string(status);
    return false;
  }
  std::vector<std::unique_ptr<DnnObject>> configs;
  std::vector<DnnDescriptor> raw;
  for (int64_t i = 0; i < kMostConfigs; ++i) {
    configs.push_back(std::make_unique<DnnObject>(api, DnnKind::engine_config));
    raw.push_back(configs.back()->get());
  }
  int64_t found = 0;
  api.get_attribute(heuristics.get(), DnnAttribute::heuristics_results, DnnType::descriptor,
                    kMostConfigs, &found, raw.data());
  for (int64_t i = 0; i < std::min(found, kMostConfigs); ++i) {
    const auto at = static_cast<size_t>(i);
    if (exact && rounds(api, raw[at])) {
      problem = "its engines would round f32 inputs";
      continue;
    }
    auto plan = std::make_unique<DnnObject>(api, DnnKind::execution_plan);
    plan->set(DnnAttribute::plan_handle, DnnType::handle, handle)
        .set(DnnAttribute::plan_config, DnnType::descriptor, raw[at]);
    int64_t count = 0;
    if (const DnnStatus status = plan->finalize(); status != DnnStatus::success) {
      problem = api.get_error_string(status);
      continue;
    }
    if (api.get_attribute(plan->get(), DnnAttribute::plan_workspace_bytes, DnnType::int64, 1,
                          &count, &workspace_bytes_) != DnnStatus::success ||
        workspace_bytes_ > kMostWorkspace) {
      problem = "its engines want more workspace than 256 MiB";
      continue;
    }
    plan_ = std::move(plan);
    parts_.push_back(std::move(configs[at]));
    return true;
  }
  if (found == 0) problem = "it knows no engine for this";
  return false;
}

std::unique_ptr<DnnPlan> DnnPlan::make(Device& device, const DnnConv& conv, std::string& problem) {
  std::unique_ptr<DnnPlan> out(new DnnPlan(device));
  const CudnnApi& api = device.tables().cudnn.api;
  DnnLibrary* library = device.cudnn();
  if (!library) {
    problem = "its handle cannot be made";
    return nullptr;
  }
  const std::lock_guard lock(library->mutex);
  device.enter();
  Builder build(api, out->parts_);
  const auto list = operations(build, conv);
  DnnObject& graph =
      build.finished(build.make(DnnKind::operation_graph)
                         .set(DnnAttribute::graph_operations, DnnType::descriptor, list)
                         .set(DnnAttribute::graph_handle, DnnType::handle, library->handle));
  if (build.status() != DnnStatus::success) {
    problem = api.get_error_string(build.status());
    return nullptr;
  }
  for (const DnnHeuristics mode : {DnnHeuristics::best, DnnHeuristics::fallback})
    if (out->choose(library->handle, graph, mode, conv.exact, problem)) return out;
  return nullptr;
}

DnnStatus DnnPlan::run(const std::vector<int64_t>& ids, const std::vector<void*>& pointers,
                       void* workspace, DriverStream stream) {
  const CudnnApi& api = device_->tables().cudnn.api;
  DnnLibrary& library = *device_->cudnn();
  std::vector<void*> now = pointers;
  now.push_back(workspace);
  if (!pack_ || now != packed_) {
    pack_ = std::make_unique<DnnObject>(api, DnnKind::variant_pack);
    pack_->set(DnnAttribute::pack_ids, DnnType::int64, ids)
        .set(DnnAttribute::pack_pointers, DnnType::pointer, pointers)
        .set(DnnAttribute::pack_workspace, DnnType::pointer, workspace);
    packed_ = std::move(now);
    if (const DnnStatus status = pack_->finalize(); status != DnnStatus::success) return status;
  }
  const std::lock_guard lock(library.mutex);
  const DnnStatus status = api.set_stream(library.handle, stream);
  if (status != DnnStatus::success) return status;
  return api.execute(library.handle, plan_->get(), pack_->get());
}

}  // namespace dais::cuda
