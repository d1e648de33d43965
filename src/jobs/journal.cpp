#include "jobs/journal.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "jobs/data_folder.h"
#include "jobs/journal_text.h"
#include "jobs/placement_text.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> journals(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& item : fs::directory_iterator(folder, error)) {
    if (item.path().extension() == ".jsonl") found.push_back(item.path());
  }
  std::ranges::sort(found);
  return found;
}

fs::path next_name(const fs::path& folder) {
  const auto known = journals(folder);
  const int64_t last = known.empty() ? 0 : std::atoll(known.back().stem().c_str());
  std::string number = std::to_string(last + 1);
  number.insert(0, number.size() < 8 ? 8 - number.size() : 0, '0');
  return folder / (number + ".jsonl");
}

}  // namespace

Journal::Journal(Snapshot& snapshot, const fs::path& folder, const Policy& policy)
    : snapshot_(snapshot) {
  std::error_code ignored;
  try {
    make_folder(folder);
  } catch (const Error&) {
    // Without a journal everything else goes on.
  }
  auto old = journals(folder);
  for (size_t i = 0; i + journals_kept <= old.size(); ++i) fs::remove(old[i], ignored);
  file_ = std::fopen(next_name(folder).c_str(), "we");
  line(policy_line(policy));
}

Journal::~Journal() {
  if (file_) std::fclose(file_);
}

// A line is written whole and at once, so that a killed daemon leaves whole lines.
void Journal::line(const std::string& text) {
  if (!file_) return;
  bytes_ += static_cast<int64_t>(text.size()) + 1;
  const bool written = bytes_ <= journal_bytes &&
                       std::fwrite((text + "\n").data(), text.size() + 1, 1, file_) == 1 &&
                       std::fflush(file_) == 0;
  if (written) return;
  std::fclose(file_);
  file_ = nullptr;
}

HostId Journal::add_host(const Host& host) {
  const HostId id = snapshot_.add_host(host);
  line(host_line(snapshot_.now_s(), host));
  return id;
}

void Journal::set_host_open(HostId id, bool open) {
  snapshot_.set_host_open(id, open);
  line(host_open_line(snapshot_.now_s(), id, open));
}

void Journal::set_device_open(HostId id, int device, bool open) {
  snapshot_.set_device_open(id, device, open);
  line(device_open_line(snapshot_.now_s(), id, device, open));
}

ProjectId Journal::add_project(const Project& project) {
  const ProjectId id = snapshot_.add_project(project);
  line(project_line(snapshot_.now_s(), id, project));
  return id;
}

void Journal::set_project(ProjectId id, const Project& project) {
  snapshot_.set_project(id, project);
  line(project_line(snapshot_.now_s(), id, project));
}

void Journal::add_usage(ProjectId id, double gpu_s) {
  snapshot_.add_usage(id, gpu_s);
  line(usage_line(snapshot_.now_s(), id, gpu_s));
}

JobId Journal::submit(std::shared_ptr<const JobSpec> spec) {
  const std::string text = submit_line(snapshot_.now_s(), *spec);
  const JobId id = snapshot_.submit(std::move(spec));
  line(text);
  return id;
}

void Journal::start(JobId id, const Placement& placement, Standing standing) {
  snapshot_.start(id, placement, standing);
  line(start_line(snapshot_.now_s(), {id, placement, standing}));
}

void Journal::preempt(JobId id) {
  snapshot_.preempt(id);
  line(job_line(snapshot_.now_s(), "preempt", id));
}

void Journal::stopped(JobId id) {
  snapshot_.stopped(id);
  line(job_line(snapshot_.now_s(), "stopped", id));
}

void Journal::end(JobId id, bool completed) {
  snapshot_.end(id, completed);
  line(job_line(snapshot_.now_s(), completed ? "completed" : "left", id));
}

Decision Journal::decide(const Policy& policy) {
  Decision decision = jobs::decide(snapshot_, policy);
  line(decision_line(snapshot_.now_s(), "decided", decision));
  return decision;
}

void Journal::apply(const Decision& decision) {
  jobs::apply(snapshot_, decision);
  line(decision_line(snapshot_.now_s(), "applied", decision));
}

// ---- Looking back

namespace {

class Player {
 public:
  Player(const nlohmann::json& first, const std::optional<Policy>& otherwise)
      : policy_(otherwise ? *otherwise : policy_from(first)), snapshot_(policy_) {}

  void play(const nlohmann::json& event, int64_t line) {
    snapshot_.advance(time_of(event));
    ++report_.events;
    if (event.contains("decided")) return compare(decision_from(event.at("decided")), line);
    if (event.contains("applied")) return apply(decision_from(event.at("applied")));
    if (event.contains("host")) {
      snapshot_.add_host(host_from(event.at("host")));
    } else if (event.contains("host_open")) {
      snapshot_.set_host_open(host_of(event), event.at("host_open").get<bool>());
    } else if (event.contains("device_open")) {
      const HostId id = host_of(event);
      const int device = event.at("device");
      if (device < 0 || device >= snapshot_.capacity().host(id).host->devices) {
        throw Error(Code::invalid_argument, "a device that the host has not");
      }
      snapshot_.set_device_open(id, device, event.at("device_open").get<bool>());
    } else if (event.contains("project")) {
      set_project(event);
    } else if (event.contains("usage")) {
      snapshot_.add_usage(event.at("id"), event.at("usage"));
    } else if (event.contains("submit")) {
      snapshot_.submit(std::make_shared<const JobSpec>(spec_from(event.at("submit"))));
    } else if (event.contains("start")) {
      start(start_from(event.at("start")));
    } else if (event.contains("preempt")) {
      snapshot_.preempt(event.at("preempt"));
    } else if (event.contains("stopped")) {
      snapshot_.stopped(event.at("stopped"));
    } else if (event.contains("completed")) {
      snapshot_.end(event.at("completed"), true);
    } else {
      snapshot_.end(event.at("left"), false);
    }
  }

  ReplayReport report() const { return report_; }

 private:
  HostId host_of(const nlohmann::json& event) const {
    const auto id = event.at("id").get<HostId>();
    if (id < snapshot_.capacity().hosts()) return id;
    throw Error(Code::invalid_argument, "a host that was not added");
  }

  void set_project(const nlohmann::json& event) {
    const ProjectId id = event.at("id");
    const Project project = project_from(event.at("project"));
    if (snapshot_.projects().contains(id)) {
      snapshot_.set_project(id, project);
    } else {
      snapshot_.add_project(project);
    }
  }

  void start(const Start& start) {
    for (const Slot& slot : start.placement) {
      const bool there = slot.host < snapshot_.capacity().hosts() && slot.device >= -1 &&
                         slot.device < snapshot_.capacity().host(slot.host).host->devices;
      if (!there) throw Error(Code::invalid_argument, "a place that no host has");
    }
    snapshot_.start(start.job, start.placement, start.standing);
  }

  void apply(const Decision& decision) {
    for (const JobId id : decision.promote) snapshot_.promote(id);
    for (const Preemption& one : decision.preempt) snapshot_.preempt(one.victim);
    for (const Start& one : decision.start) start(one);
    report_.starts += static_cast<int64_t>(decision.start.size());
    report_.preemptions += static_cast<int64_t>(decision.preempt.size());
  }

  void compare(const Decision& then, int64_t line) {
    ++report_.cycles;
    const Decision now = decide(snapshot_, policy_);
    if (now == then) return;
    if (report_.differing++ > 0) return;
    report_.first_line = line;
    report_.first_difference = "then " + decision_text(then) + ", now " + decision_text(now);
  }

  Policy policy_;
  Snapshot snapshot_;
  ReplayReport report_;
};

[[noreturn]] void refuse(const std::string& path, int64_t line, const std::string& why) {
  throw Error(Code::invalid_argument, "line " + std::to_string(line) + ": " + why, path,
              "Give a journal that `dais up` wrote, from its beginning");
}

}  // namespace

ReplayReport replay(const std::string& path, const std::optional<Policy>& otherwise) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(Code::not_found, "no such journal", path);
  std::unique_ptr<Player> player;
  std::string text;
  for (int64_t line = 1; std::getline(file, text); ++line) {
    if (file.eof()) break;
    const nlohmann::json event = nlohmann::json::parse(text, nullptr, false);
    if (!event.is_object()) refuse(path, line, "not an event");
    try {
      if (player) {
        player->play(event, line);
      } else {
        player = std::make_unique<Player>(event, otherwise);
      }
    } catch (const Error& error) {
      refuse(path, line, error.problem());
    } catch (const nlohmann::json::exception& error) {
      refuse(path, line, std::string("not an event: ") + error.what());
    }
  }
  if (!player) refuse(path, 1, "the journal is empty");
  return player->report();
}

std::string latest_journal(const fs::path& folder) {
  const auto known = journals(folder / "cycles");
  if (known.empty()) {
    throw Error(Code::not_found, "no journal", (folder / "cycles").string(),
                "`dais up` writes one; name a file to replay another");
  }
  return known.back().string();
}

}  // namespace dais::jobs
