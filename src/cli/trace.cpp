#include "cli/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "cli/layers.h"

namespace dais::cli {
namespace {

using nlohmann::json;

json lane_name(int lane) {
  const std::string name =
      lane == 0 ? "thread 0 (calls the session)" : "thread " + std::to_string(lane);
  return {
      {"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", lane}, {"args", {{"name", name}}}};
}

constexpr int kDevice = 2;  // the trace's second process

bool is_copy(const cuda::Activity& activity) {
  return activity.kind != cuda::Activity::Kind::kernel &&
         activity.kind != cuda::Activity::Kind::wait;
}

/// Kernels of a stream and its copies may run at once, so they have a lane each.
int lane_of(const cuda::Activity& activity) {
  return static_cast<int>(activity.stream) * 2 + (is_copy(activity) ? 1 : 0);
}

std::string text_of(const cuda::Activity& activity) {
  switch (activity.kind) {
    case cuda::Activity::Kind::to_device: return "copy to the device";
    case cuda::Activity::Kind::from_device: return "copy from the device";
    case cuda::Activity::Kind::on_device: return "copy on the device";
    case cuda::Activity::Kind::data: return "wait for data";
    case cuda::Activity::Kind::fill: return "fill";
    case cuda::Activity::Kind::wait: return "host waits";
    default: return activity.name;
  }
}

/// The device's lanes: names first, then what happened in them.
void add_device(json& events, const std::vector<cuda::Activity>& activities, double origin) {
  if (activities.empty()) return;
  const auto meta = [&](const char* what, int lane, const std::string& name) {
    json entry{{"name", what}, {"ph", "M"}, {"pid", kDevice}, {"args", {{"name", name}}}};
    if (lane >= 0) entry["tid"] = lane;
    events.push_back(std::move(entry));
  };
  meta("process_name", -1, "device");
  std::set<int> lanes;
  for (const cuda::Activity& activity : activities) {
    const int lane = lane_of(activity);
    if (lanes.insert(lane).second)
      meta("thread_name", lane,
           "stream " + std::to_string(activity.stream) +
               (is_copy(activity) ? ", copies" : ", kernels"));
    json args = json::object();
    if (activity.bytes > 0) {
      args["bytes"] = activity.bytes;
      if (activity.seconds > 0)
        args["bytes_per_second"] = static_cast<double>(activity.bytes) / activity.seconds;
    }
    events.push_back({{"name", text_of(activity)},
                      {"cat", "device"},
                      {"ph", "X"},
                      {"pid", kDevice},
                      {"tid", lane},
                      {"ts", (activity.start - origin) * 1e6},
                      {"dur", activity.seconds * 1e6},
                      {"args", std::move(args)}});
  }
}

}  // namespace

void Trace::add(const std::vector<cuda::Activity>& activities) {
  activities_.insert(activities_.end(), activities.begin(), activities.end());
}

void Trace::add(const char* kind, std::string name, double start, double seconds) {
  events_.push_back({{kind, std::move(name), {}, start, seconds, 0}});
}

void Trace::add(const std::vector<SpanRecord>& records) {
  for (const SpanRecord& record : records) events_.push_back({record});
}

void Trace::add(const std::vector<StepTime>& profile) {
  for (const StepTime& time : profile) {
    const Step& step = time.plan->steps()[time.step];
    const StepCost cost = cost_of(time);
    events_.push_back({{"step", kernel_name(step), step.node->where(), time.start, time.elapsed, 0},
                       cost.flops,
                       cost.bytes});
  }
}

void Trace::write(const std::string& path, int threads) const {
  double origin = events_.empty() ? 0 : events_.front().span.start;
  for (const Event& event : events_) {
    origin = std::min(origin, event.span.start);
    threads = std::max(threads, event.span.lane + 1);
  }
  for (const cuda::Activity& activity : activities_) origin = std::min(origin, activity.start);
  json out{{"displayTimeUnit", "ms"}, {"traceEvents", json::array()}};
  for (int lane = 0; lane < threads; ++lane) out["traceEvents"].push_back(lane_name(lane));
  for (const auto& [span, flops, bytes] : events_) {
    json args = json::object();
    if (!span.subject.empty()) args["node"] = span.subject;
    if (std::string_view(span.kind) == "step") {
      args["flops"] = flops;
      args["bytes"] = bytes;
    }
    out["traceEvents"].push_back({{"name", span.name.empty() ? span.kind : span.name},
                                  {"cat", span.kind},
                                  {"ph", "X"},
                                  {"pid", 1},
                                  {"tid", span.lane},
                                  {"ts", (span.start - origin) * 1e6},
                                  {"dur", span.seconds * 1e6},
                                  {"args", std::move(args)}});
  }
  add_device(out["traceEvents"], activities_, origin);
  write_file(path, out.dump(-1, ' ', false, json::error_handler_t::replace) + '\n');
}

}  // namespace dais::cli
