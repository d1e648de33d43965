// What the controller does about places that cannot be used now: nodes that went away, jobs that
// nobody begins, devices that are not free although nobody holds them.
#include <algorithm>

#include "jobs/controller.h"

namespace dais::jobs {

// Nodes that went away keep their jobs, as far as is known, and get no new ones.
void Controller::mind_hosts() {
  const std::vector<bool> open = executor_->open_hosts();
  for (HostId id = 0; id < open.size(); ++id) {
    if (snapshot_.capacity().host(id).open == open[id]) continue;
    journal_.set_host_open(id, open[id]);
    changed_ = true;
    if (!open[id]) take_back(id);
  }
}

// What was handed over for a host and has not begun there goes elsewhere.
void Controller::take_back(HostId host) {
  const std::vector<int64_t> active(active_.begin(), active_.end());
  for (const int64_t id : active) {
    Entry& entry = open_.at(id);
    const bool there = std::ranges::any_of(entry.placement,
                                           [host](const Slot& slot) { return slot.host == host; });
    if (there && entry.handed_over && entry.row.phase == Phase::starting) {
      stop_attempt(entry, Afterwards::wait, "a node of it went away");
    }
  }
}

// Whoever was to begin it may be busy with others' work, or hold a place that he lost count of.
void Controller::mind_patience() {
  const double patience_s = executor_->patience_s();
  const std::vector<int64_t> active(active_.begin(), active_.end());
  for (const int64_t id : active) {
    Entry& entry = open_.at(id);
    if (!entry.handed_over || entry.row.phase != Phase::starting) continue;
    if (now_s_ - entry.row.start_s < patience_s) continue;
    executor_->leave_alone(entry.placement);
    stop_attempt(entry, Afterwards::wait,
                 "it was not begun within " + std::to_string(static_cast<int64_t>(patience_s)) +
                     " s: its nodes are left alone as long");
  }
}

void Controller::mind_quarantine(const std::vector<devices::DeviceSample>& samples) {
  std::set<int> held;
  for (const int64_t id : active_) {
    for (const Slot& slot : open_.at(id).placement) held.insert(slot.device);
  }
  quarantine_.sample(now_s_, samples, held);
  for (int device = 0; device < options_.machine.devices; ++device) {
    const bool open = !quarantine_.closed().contains(device);
    const bool was_open = ((snapshot_.capacity().host(0).closed_devices >> device) & 1) == 0;
    if (open == was_open) continue;
    journal_.set_device_open(0, device, open);
    changed_ = true;
  }
}

// What a waiting job should be told of them.
std::string Controller::closed_devices() const {
  std::string text;
  for (const auto& [device, bytes] : quarantine_.closed()) {
    text += "; GPU " + std::to_string(device) +
            " is in quarantine: " + std::to_string(bytes >> 20) + " MiB of its memory stay in use";
  }
  return text;
}

}  // namespace dais::jobs
