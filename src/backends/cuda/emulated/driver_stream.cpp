#include <utility>

#include "backends/cuda/emulated/driver_state.h"

// Streams, events and graphs. Work is done when it is submitted, in the order of the host's calls,
// which every order that streams and events promise allows.
namespace dais::cuda::emulated {
namespace {

DeviceState& state() { return DeviceState::instance(); }

StreamObject* object(DriverStream stream) { return reinterpret_cast<StreamObject*>(stream); }
EventObject* object(DriverEvent event) { return reinterpret_cast<EventObject*>(event); }
GraphObject* object(DriverGraph graph) { return reinterpret_cast<GraphObject*>(graph); }
GraphObject* object(DriverGraphExec exec) { return reinterpret_cast<GraphObject*>(exec); }

/// A handle of a new object.
template <typename Object, typename Handle>
DriverResult create(Handle* handle, Object contents = {}) {
  if (!handle) return DriverResult::invalid_value;
  auto* made = new Object(std::move(contents));
  state().learn(made);
  *handle = reinterpret_cast<Handle>(made);
  return DriverResult::success;
}

template <typename Handle>
DriverResult destroy(Handle handle) {
  if (!state().forget(handle)) return DriverResult::invalid_handle;
  delete object(handle);
  return DriverResult::success;
}

/// The null stream is always there.
bool valid(DriverStream stream) { return !stream || state().knows(stream); }

DriverResult wait_for_event(DriverStream stream, DriverEvent event, unsigned) {
  if (!valid(stream) || !state().knows(event)) return DriverResult::invalid_handle;
  GraphObject* capture = object(event)->capture;
  if (!capture) return state().ready();
  // An event of a capture draws the waiting stream into it.
  if (!stream || !state().knows(capture)) return DriverResult::stream_capture_invalidated;
  object(stream)->capture = capture;
  return DriverResult::success;
}

DriverResult begin_capture(DriverStream stream, CaptureMode) {
  if (!stream || !state().knows(stream)) return DriverResult::stream_capture_unsupported;
  if (object(stream)->capture) return DriverResult::invalid_value;
  auto* graph = new GraphObject;
  state().learn(graph);
  *object(stream) = {graph, true};
  return DriverResult::success;
}

DriverResult end_capture(DriverStream stream, DriverGraph* graph) {
  if (!stream || !state().knows(stream) || !object(stream)->origin)
    return DriverResult::invalid_value;
  *graph = reinterpret_cast<DriverGraph>(object(stream)->capture);
  *object(stream) = {};
  return DriverResult::success;
}

DriverResult record(DriverEvent event, DriverStream stream) {
  if (!valid(stream) || !state().knows(event)) return DriverResult::invalid_handle;
  object(event)->capture = stream ? object(stream)->capture : nullptr;
  return submit(stream, [event] {
    object(event)->when = std::chrono::steady_clock::now();
    object(event)->recorded = true;
    return DriverResult::success;
  });
}

DriverResult elapsed(float* milliseconds, DriverEvent start, DriverEvent end) {
  if (!state().knows(start) || !state().knows(end)) return DriverResult::invalid_handle;
  if (!object(start)->recorded || !object(end)->recorded) return DriverResult::invalid_handle;
  *milliseconds =
      std::chrono::duration<float, std::milli>(object(end)->when - object(start)->when).count();
  return DriverResult::success;
}

DriverResult synchronize(DriverStream stream) {
  if (!valid(stream)) return DriverResult::invalid_handle;
  if (stream && object(stream)->capture) return DriverResult::stream_capture_unsupported;
  state().note_damage();
  return state().ready();
}

DriverResult launch_graph(DriverGraphExec exec, DriverStream stream) {
  if (!state().knows(exec) || !valid(stream)) return DriverResult::invalid_handle;
  return submit(stream, [exec] {
    for (const Work& step : object(exec)->steps)
      if (const DriverResult result = step(); result != DriverResult::success) return result;
    return DriverResult::success;
  });
}

}  // namespace

DriverResult submit(DriverStream stream, Work work) {
  if (!valid(stream)) return DriverResult::invalid_handle;
  if (const DriverResult result = state().ready(); result != DriverResult::success) return result;
  if (stream && object(stream)->capture) {
    // The capture of a stream that joined ends with that of the stream that began it.
    if (!state().knows(object(stream)->capture)) return DriverResult::stream_capture_invalidated;
    object(stream)->capture->steps.push_back(std::move(work));
    return DriverResult::success;
  }
  return work();
}

void fill_streams(DriverApi& api) {
  api.stream_create = [](DriverStream* stream, unsigned) { return create<StreamObject>(stream); };
  api.stream_destroy = destroy<DriverStream>;
  api.stream_synchronize = synchronize;
  api.stream_query = [](DriverStream stream) {
    return valid(stream) ? state().ready() : DriverResult::invalid_handle;
  };
  api.stream_wait_event = wait_for_event;
  api.stream_begin_capture = begin_capture;
  api.stream_end_capture = end_capture;
  api.event_create = [](DriverEvent* event, unsigned) { return create<EventObject>(event); };
  api.event_destroy = destroy<DriverEvent>;
  api.event_record = record;
  api.event_query = [](DriverEvent event) {
    return state().knows(event) ? state().ready() : DriverResult::invalid_handle;
  };
  api.event_synchronize = [](DriverEvent event) {
    return state().knows(event) ? state().ready() : DriverResult::invalid_handle;
  };
  api.event_elapsed_time = elapsed;
  api.graph_instantiate = [](DriverGraphExec* exec, DriverGraph graph, unsigned long long) {
    if (!state().knows(graph)) return DriverResult::invalid_handle;
    return create<GraphObject>(exec, *object(graph));
  };
  api.graph_launch = launch_graph;
  api.graph_exec_update = [](DriverGraphExec exec, DriverGraph graph, GraphUpdateInfo* info) {
    if (!state().knows(exec) || !state().knows(graph)) return DriverResult::invalid_handle;
    const bool alike = object(exec)->steps.size() == object(graph)->steps.size();
    if (info) *info = {.result = alike ? 0 : 1};
    if (!alike) return DriverResult::graph_exec_update_failure;
    object(exec)->steps = object(graph)->steps;
    return DriverResult::success;
  };
  api.graph_exec_destroy = destroy<DriverGraphExec>;
  api.graph_destroy = destroy<DriverGraph>;
}

}  // namespace dais::cuda::emulated
