#include "cli/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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

}  // namespace

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
  write_file(path, out.dump(-1, ' ', false, json::error_handler_t::replace) + '\n');
}

}  // namespace dais::cli
