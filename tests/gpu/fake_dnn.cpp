#include "fake_dnn.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "ir/float_formats.h"
#include "stand_in.h"

namespace dais::cuda {
namespace {

struct Attribute {
  DnnType type = DnnType::int64;
  int64_t count = 0;
  std::vector<unsigned char> bytes;
};

struct Object {
  DnnKind kind = DnnKind::tensor;
  bool finalised = false;
  std::map<DnnAttribute, Attribute> attributes;

  template <typename T>
  std::vector<T> list(DnnAttribute which) const {
    const auto found = attributes.find(which);
    if (found == attributes.end()) return {};
    std::vector<T> out(found->second.bytes.size() / sizeof(T));
    std::memcpy(out.data(), found->second.bytes.data(), out.size() * sizeof(T));
    return out;
  }
  template <typename T>
  T one(DnnAttribute which, T otherwise = {}) const {
    const auto values = list<T>(which);
    return values.empty() ? otherwise : values[0];
  }
  const Object* object(DnnAttribute which) const {
    return static_cast<const Object*>(one<DnnDescriptor>(which));
  }
};

FakeDnnCounts counts;
FakeEngines engines = FakeEngines::all;

size_t size_of(DnnType type) {
  switch (type) {
    case DnnType::boolean: return 1;
    case DnnType::handle:
    case DnnType::int64:
    case DnnType::pointer:
    case DnnType::descriptor: return 8;
    default: return 4;
  }
}

/// What a descriptor of a kind must have, with its type.
std::vector<std::pair<DnnAttribute, DnnType>> needed(DnnKind kind) {
  using enum DnnAttribute;
  switch (kind) {
    case DnnKind::tensor:
      return {{tensor_type, DnnType::data_type},
              {tensor_sizes, DnnType::int64},
              {tensor_strides, DnnType::int64},
              {tensor_id, DnnType::int64},
              {tensor_alignment, DnnType::int64}};
    case DnnKind::convolution:
      return {{convolution_precision, DnnType::data_type},
              {convolution_mode, DnnType::convolution_mode},
              {convolution_spatial_axes, DnnType::int64},
              {convolution_dilations, DnnType::int64},
              {convolution_strides, DnnType::int64},
              {convolution_pre_paddings, DnnType::int64},
              {convolution_post_paddings, DnnType::int64}};
    case DnnKind::convolution_forward:
      return {{forward_convolution, DnnType::descriptor},
              {forward_x, DnnType::descriptor},
              {forward_w, DnnType::descriptor},
              {forward_y, DnnType::descriptor},
              {forward_alpha, DnnType::f32},
              {forward_beta, DnnType::f32}};
    case DnnKind::pointwise:
      return {{pointwise_mode, DnnType::pointwise_mode}, {pointwise_precision, DnnType::data_type}};
    case DnnKind::operation_pointwise:
      return {{operation_pointwise, DnnType::descriptor},
              {operation_pointwise_x, DnnType::descriptor},
              {operation_pointwise_y, DnnType::descriptor}};
    case DnnKind::operation_graph:
      return {{graph_handle, DnnType::handle}, {graph_operations, DnnType::descriptor}};
    case DnnKind::engine_heuristics:
      return {{heuristics_graph, DnnType::descriptor}, {heuristics_mode, DnnType::heuristics_mode}};
    case DnnKind::execution_plan:
      return {{plan_handle, DnnType::handle}, {plan_config, DnnType::descriptor}};
    case DnnKind::variant_pack:
      return {{pack_ids, DnnType::int64},
              {pack_pointers, DnnType::pointer},
              {pack_workspace, DnnType::pointer}};
    default: return {};
  }
}

DnnStatus finalize(DnnDescriptor descriptor) {
  auto& object = *static_cast<Object*>(descriptor);
  for (const auto& [attribute, type] : needed(object.kind)) {
    const auto found = object.attributes.find(attribute);
    if (found == object.attributes.end()) return DnnStatus::bad_param;
    if (found->second.type != type) return DnnStatus::bad_param_attribute_type;
  }
  for (const auto& [attribute, value] : object.attributes) {
    if (value.type != DnnType::descriptor) continue;
    for (const DnnDescriptor other : object.list<DnnDescriptor>(attribute))
      if (!other || !static_cast<Object*>(other)->finalised)
        return DnnStatus::bad_param_not_finalized;
  }
  if (object.kind == DnnKind::variant_pack &&
      object.list<int64_t>(DnnAttribute::pack_ids).size() !=
          object.list<void*>(DnnAttribute::pack_pointers).size())
    return DnnStatus::bad_param;
  object.finalised = true;
  return DnnStatus::success;
}

DnnStatus get(DnnDescriptor descriptor, DnnAttribute attribute, DnnType, int64_t wanted,
              int64_t* count, void* elements) {
  auto& object = *static_cast<Object*>(descriptor);
  if (!object.finalised) return DnnStatus::bad_param_not_finalized;
  *count = 1;
  switch (attribute) {
    case DnnAttribute::heuristics_results: {
      if (engines == FakeEngines::none) {
        *count = 0;
        return DnnStatus::success;
      }
      auto& config = **static_cast<Object**>(elements);
      config.finalised = true;
      config.attributes[DnnAttribute::heuristics_graph] =
          object.attributes[DnnAttribute::heuristics_graph];
      return wanted > 0 ? DnnStatus::success : DnnStatus::bad_param;
    }
    case DnnAttribute::config_engine:
      (*static_cast<Object**>(elements))->finalised = true;
      return DnnStatus::success;
    case DnnAttribute::engine_numerical_notes:
      *static_cast<int*>(elements) = static_cast<int>(DnnNote::tensor_core);
      *count = engines == FakeEngines::rounding ? 1 : 0;
      return DnnStatus::success;
    case DnnAttribute::plan_workspace_bytes:
      *static_cast<int64_t*>(elements) = 512;
      return DnnStatus::success;
    default: return DnnStatus::bad_param;
  }
}

double load(DnnData type, const void* from, int64_t at) {
  switch (type) {
    case DnnData::f16: return static_cast<float>(static_cast<const Float16*>(from)[at]);
    case DnnData::bf16: return static_cast<float>(static_cast<const BFloat16*>(from)[at]);
    default: return static_cast<const float*>(from)[at];
  }
}
void store(DnnData type, void* to, int64_t at, double value) {
  const auto narrow = static_cast<float>(value);
  switch (type) {
    case DnnData::f16: static_cast<Float16*>(to)[at] = Float16(narrow); break;
    case DnnData::bf16: static_cast<BFloat16*>(to)[at] = BFloat16(narrow); break;
    default: static_cast<float*>(to)[at] = narrow;
  }
}

/// A graph read back into one convolution.
struct Work {
  using Five = std::array<int64_t, 5>;  ///< batch, channels and three spatial axes
  Five x{}, w{}, y{};
  std::array<int64_t, 3> strides{1, 1, 1}, dilations{1, 1, 1}, pads{0, 0, 0};
  DnnData type = DnnData::f32;
  const void *from = nullptr, *weights = nullptr, *bias = nullptr, *residual = nullptr;
  void* to = nullptr;
  DnnPointwise activation = DnnPointwise::add;

  double finish(double value) const {
    switch (activation) {
      case DnnPointwise::relu: return std::max(value, 0.0);
      case DnnPointwise::sigmoid: return 1 / (1 + std::exp(-value));
      case DnnPointwise::tanh: return std::tanh(value);
      default: return value;
    }
  }
  double sum(int64_t n, int64_t k, const std::array<int64_t, 3>& at) const {
    const int64_t groups = x[1] / w[1], first = k / (y[1] / groups) * w[1];
    double out = 0;
    for (int64_t c = 0; c < w[1]; ++c)
      for (int64_t a = 0; a < w[2]; ++a)
        for (int64_t b = 0; b < w[3]; ++b)
          for (int64_t d = 0; d < w[4]; ++d) {
            const std::array<int64_t, 3> tap{a, b, d};
            int64_t cell = n * x[1] + first + c;
            bool inside = true;
            for (size_t i = 0; i < 3; ++i) {
              const int64_t in = at[i] * strides[i] + tap[i] * dilations[i] - pads[i];
              inside = inside && in >= 0 && in < x[i + 2];
              cell = cell * x[i + 2] + in;
            }
            if (!inside) continue;
            const int64_t weight = (((k * w[1] + c) * w[2] + a) * w[3] + b) * w[4] + d;
            out += load(type, from, cell) * load(type, weights, weight);
          }
    return out;
  }
  DriverResult operator()() const {
    ++counts.runs;
    int64_t i = 0;
    for (int64_t n = 0; n < y[0]; ++n)
      for (int64_t k = 0; k < y[1]; ++k)
        for (int64_t a = 0; a < y[2]; ++a)
          for (int64_t b = 0; b < y[3]; ++b)
            for (int64_t c = 0; c < y[4]; ++c) {
              const double added =
                  (bias ? load(type, bias, k) : 0) + (residual ? load(type, residual, i) : 0);
              store(type, to, i++, finish(sum(n, k, {a, b, c}) + added));
            }
    return DriverResult::success;
  }
};

Work::Five five(const Object& tensor) {
  const auto sizes = tensor.list<int64_t>(DnnAttribute::tensor_sizes);
  Work::Five out{1, 1, 1, 1, 1};
  out[0] = sizes[0];
  out[1] = sizes[1];
  std::copy(sizes.begin() + 2, sizes.end(), out.end() - std::ssize(sizes) + 2);
  return out;
}
size_t bytes_of(const Work::Five& sizes, DnnData type) {
  size_t out = type == DnnData::f32 ? 4 : 2;
  for (const int64_t size : sizes) out *= static_cast<size_t>(size);
  return out;
}

DriverStream stream_now = nullptr;

DnnStatus execute(DnnHandle, DnnDescriptor plan, DnnDescriptor pack_given) {
  const auto& pack = *static_cast<const Object*>(pack_given);
  const Object& config = *static_cast<const Object*>(plan)->object(DnnAttribute::plan_config);
  const Object& graph = *config.object(DnnAttribute::heuristics_graph);
  const auto ids = pack.list<int64_t>(DnnAttribute::pack_ids);
  const auto pointers = pack.list<void*>(DnnAttribute::pack_pointers);
  const auto address = [&](const Object& tensor) -> void* {
    const auto id = tensor.one<int64_t>(DnnAttribute::tensor_id);
    const auto found = std::find(ids.begin(), ids.end(), id);
    return found == ids.end() ? nullptr : pointers[static_cast<size_t>(found - ids.begin())];
  };
  Work work;
  const Object* last = nullptr;
  for (const DnnDescriptor each : graph.list<DnnDescriptor>(DnnAttribute::graph_operations)) {
    const auto& operation = *static_cast<const Object*>(each);
    if (operation.kind == DnnKind::convolution_forward) {
      const Object& how = *operation.object(DnnAttribute::forward_convolution);
      const Object &x = *operation.object(DnnAttribute::forward_x),
                   &w = *operation.object(DnnAttribute::forward_w);
      last = operation.object(DnnAttribute::forward_y);
      work.x = five(x);
      work.w = five(w);
      work.y = five(*last);
      work.type = x.one<DnnData>(DnnAttribute::tensor_type);
      work.from = address(x);
      work.weights = address(w);
      const auto read = [&](DnnAttribute which, std::array<int64_t, 3>& to) {
        const auto values = how.list<int64_t>(which);
        std::copy(values.begin(), values.end(), to.end() - std::ssize(values));
      };
      read(DnnAttribute::convolution_strides, work.strides);
      read(DnnAttribute::convolution_dilations, work.dilations);
      read(DnnAttribute::convolution_pre_paddings, work.pads);
      continue;
    }
    const auto mode = operation.object(DnnAttribute::operation_pointwise)
                          ->one<DnnPointwise>(DnnAttribute::pointwise_mode);
    if (mode == DnnPointwise::add) {
      const Object& b = *operation.object(DnnAttribute::operation_pointwise_b);
      const Work::Five each{1, work.y[1], 1, 1, 1};
      if (five(b) != each && five(b) != work.y) return DnnStatus::not_supported;
      (five(b) == each && !work.bias ? work.bias : work.residual) = address(b);
    } else {
      work.activation = mode;
    }
    last = operation.object(DnnAttribute::operation_pointwise_y);
  }
  work.to = address(*last);
  StandIn& driver = StandIn::instance();
  const auto* workspace = pack.one<void*>(DnnAttribute::pack_workspace);
  const Work::Five channels{1, work.y[1], 1, 1, 1};
  const auto may_read = [&](const void* memory, const Work::Five& sizes) {
    return !memory || driver.covers(memory, bytes_of(sizes, work.type), "a convolution");
  };
  std::vector<const void*> reads{work.from, work.weights};
  for (const void* one : {work.bias, work.residual})
    if (one) reads.push_back(one);
  const bool inside = work.to && may_read(work.bias, channels) && may_read(work.residual, work.y) &&
                      driver.covers(work.from, bytes_of(work.x, work.type), "a convolution") &&
                      driver.covers(work.weights, bytes_of(work.w, work.type), "a convolution") &&
                      driver.covers(work.to, bytes_of(work.y, work.type), "a convolution") &&
                      driver.covers(workspace, 512, "a convolution's workspace");
  if (!inside) return DnnStatus::execution_failed;
  driver.put(stream_now, reads, work.to, work);
  return DnnStatus::success;
}

}  // namespace

FakeDnnCounts fake_dnn_counts() { return counts; }
void set_fake_dnn_engines(FakeEngines now) { engines = now; }

Loaded<CudnnApi> fake_cudnn() {
  Loaded<CudnnApi> out;
  out.report = {"cuDNN", "of the tests", "0.0", {}, {}};
  CudnnApi& api = out.api;
  api.get_version = [] { return size_t{90000}; };
  api.get_cudart_version = [] { return size_t{12000}; };
  api.get_error_string = [](DnnStatus) { return "a status of the tests"; };
  api.create = [](DnnHandle* handle) {
    *handle = reinterpret_cast<DnnHandle>(new int(0));
    ++counts.live;
    return DnnStatus::success;
  };
  api.destroy = [](DnnHandle handle) {
    delete reinterpret_cast<int*>(handle);
    --counts.live;
    return DnnStatus::success;
  };
  api.set_stream = [](DnnHandle, DriverStream stream) {
    stream_now = stream;
    return DnnStatus::success;
  };
  api.descriptor_create = [](DnnKind kind, DnnDescriptor* descriptor) {
    auto* made = new Object;
    made->kind = kind;
    *descriptor = made;
    ++counts.live;
    return DnnStatus::success;
  };
  api.descriptor_destroy = [](DnnDescriptor descriptor) {
    delete static_cast<Object*>(descriptor);
    --counts.live;
    return DnnStatus::success;
  };
  api.finalize = finalize;
  api.set_attribute = [](DnnDescriptor descriptor, DnnAttribute attribute, DnnType type,
                         int64_t count, const void* elements) {
    auto& object = *static_cast<Object*>(descriptor);
    if (object.finalised || count < 1 || !elements) return DnnStatus::bad_param;
    const auto* first = static_cast<const unsigned char*>(elements);
    object.attributes[attribute] = {
        type, count, {first, first + static_cast<size_t>(count) * size_of(type)}};
    return DnnStatus::success;
  };
  api.get_attribute = get;
  api.execute = execute;
  return out;
}

}  // namespace dais::cuda
