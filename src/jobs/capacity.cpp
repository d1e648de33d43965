#include "jobs/capacity.h"

#include <algorithm>

namespace dais::jobs {
namespace {

// Hosts of one free count that are tried before the next count: a host is passed over only when its
// CPUs or memory run out before its GPUs, which is rare.
constexpr int scan_limit = 64;
constexpr int hosts_scanned = 16 * scan_limit;  // of all free counts
constexpr int racks_tried = 8;

uint64_t whole_key(int free_devices, uint32_t rack, HostId host) {
  return (static_cast<uint64_t>(free_devices) << 56) | (uint64_t{rack & 0xffffff} << 32) | host;
}
uint64_t gap_key(int free_milli, HostId host, int device) {
  return (static_cast<uint64_t>(free_milli) << 40) | (uint64_t{host} << 8) |
         static_cast<uint64_t>(device);
}
uint64_t rack_key(int32_t free_devices, uint32_t rack) {
  return (static_cast<uint64_t>(free_devices) << 32) | rack;
}

bool usable(const HostState& state, int device) {
  return ((state.closed_devices >> device) & 1) == 0;
}

int whole_per_task(const Shape& shape) {
  return static_cast<int>(shape.task.gpu_milli / whole_gpu);
}

// Picks `count` wholly free devices: the island with the tightest fit, else the fullest islands.
std::vector<int> pick_devices(const HostState& state, int count) {
  const int island_size = std::max(1, state.host->island_size);
  std::vector<std::vector<int>> islands((state.host->devices + island_size - 1) / island_size);
  for (int device = 0; device < state.host->devices; ++device) {
    if (usable(state, device) && state.gpu_free[device] == whole_gpu) {
      islands[device / island_size].push_back(device);
    }
  }
  const std::vector<int>* tightest = nullptr;
  for (const auto& island : islands) {
    if (static_cast<int>(island.size()) < count) continue;
    if (!tightest || island.size() < tightest->size()) tightest = &island;
  }
  std::vector<int> picked;
  if (tightest) {
    picked.assign(tightest->begin(), tightest->begin() + count);
    return picked;
  }
  std::stable_sort(islands.begin(), islands.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const auto& island : islands) {
    for (int device : island) {
      if (static_cast<int>(picked.size()) < count) picked.push_back(device);
    }
  }
  return picked;
}

using Free = std::array<int16_t, max_devices>;

// A device of its own for every part of a task: the tightest fit, the largest part first. Whatever
// a part fits on, a smaller one does too, so that this finds a way where there is one. Takes what
// it finds from `free`; nothing and nowhere when there is no way.
std::vector<int> fit_parts(const HostState& state, Free& free, const Shape& shape) {
  std::vector<int> picked;
  Free left = free;
  uint64_t used = state.closed_devices;
  for (int i = 0; i < shape.devices(); ++i) {
    int best = -1;
    for (int device = 0; device < state.host->devices; ++device) {
      if (((used >> device) & 1) || left[device] < shape.part(i)) continue;
      if (best < 0 || left[device] < left[best]) best = device;
    }
    if (best < 0) return {};
    used |= uint64_t{1} << best;
    left[best] = static_cast<int16_t>(left[best] - shape.part(i));
    picked.push_back(best);
  }
  free = left;
  return picked;
}

int mixed_tasks(const HostState& state, const Shape& shape) {
  Free free = state.gpu_free;
  int tasks = 0;
  while (tasks < shape.tasks && !fit_parts(state, free, shape).empty()) ++tasks;
  return tasks;
}

// Appends `tasks` tasks of whole GPUs on one host; they are known to fit.
void fill_host(HostId id, const HostState& state, const Shape& shape, int tasks, Placement& out) {
  const int per_task = whole_per_task(shape);
  const int first_task = out.empty() ? 0 : out.back().task + 1;
  const std::vector<int> devices = pick_devices(state, tasks * per_task);
  for (int i = 0; i < tasks * per_task; ++i) {
    out.push_back({id, static_cast<int16_t>(devices[i]),
                   static_cast<int16_t>(first_task + i / per_task),
                   static_cast<int32_t>(whole_gpu)});
  }
}

}  // namespace

int HostState::whole_free() const {
  int count = 0;
  for (int device = 0; device < host->devices; ++device) {
    count += gpu_free[device] == whole_gpu && ((closed_devices >> device) & 1) == 0;
  }
  return count;
}

int HostState::room(const Shape& shape) const {
  if (!open) return 0;
  const int64_t share = shape.task.gpu_milli;
  int64_t tasks = shape.tasks;
  if (shape.mixed()) {
    tasks = mixed_tasks(*this, shape);
  } else if (share >= whole_gpu) {
    tasks = whole_free() / whole_per_task(shape);
  } else if (share > 0) {
    tasks = 0;
    for (int device = 0; device < host->devices; ++device) {
      if (usable(*this, device)) tasks += gpu_free[device] / share;
    }
  }
  if (shape.task.cpu_milli > 0) tasks = std::min(tasks, cpu_free / shape.task.cpu_milli);
  if (shape.task.memory_mib > 0) tasks = std::min(tasks, memory_free / shape.task.memory_mib);
  return static_cast<int>(tasks);
}

void HostState::move(const Placement& placement, size_t begin, size_t end, const Shape& shape,
                     int sign) {
  for (size_t i = begin; i < end; ++i) {
    const Slot& slot = placement[i];
    if (slot.device >= 0) {
      const int free = gpu_free[slot.device] - sign * slot.gpu_milli;
      DAIS_CHECK(free >= 0 && free <= whole_gpu);
      gpu_free[slot.device] = static_cast<int16_t>(free);
    }
    if (i == begin || slot.task != placement[i - 1].task) {
      cpu_free -= sign * shape.task.cpu_milli;
      memory_free -= sign * shape.task.memory_mib;
    }
  }
}

size_t end_of_host(const Placement& placement, size_t begin) {
  size_t end = begin;
  while (end < placement.size() && placement[end].host == placement[begin].host) ++end;
  return end;
}

HostId Capacity::add_host(Host host) {
  if (host.devices < 0 || host.devices > max_devices) {
    throw Error(Code::invalid_argument, "a host has " + std::to_string(host.devices) + " devices",
                host.name, "At most " + std::to_string(max_devices) + " are supported");
  }
  HostState state;
  std::fill_n(state.gpu_free.begin(), host.devices, static_cast<int16_t>(whole_gpu));
  state.cpu_free = host.cpu_milli;
  state.memory_free = host.memory_mib;
  state.host = std::make_shared<const Host>(std::move(host));
  widest_ = std::max(widest_, state.host->devices);
  const HostId id = next_host_++;
  hosts_.set(id, state);
  index(id, state);
  return id;
}

void Capacity::index(HostId id, const HostState& state) {
  if (!state.open) return;
  const int whole = state.whole_free();
  by_whole_.set(whole_key(whole, state.host->rack, id), {});
  count_rack(state.host->rack, whole);
  whole_free_ += whole * whole_gpu;
  for (int device = 0; device < state.host->devices; ++device) {
    if (!usable(state, device)) continue;
    const int free = state.gpu_free[device];
    total_.gpu_milli += whole_gpu;
    gpu_free_ += free;
    if (free > 0 && free < whole_gpu) by_gap_.set(gap_key(free, id, device), {});
  }
  total_.cpu_milli += state.host->cpu_milli;
  total_.memory_mib += state.host->memory_mib;
}

void Capacity::unindex(HostId id, const HostState& state) {
  if (!state.open) return;
  const int whole = state.whole_free();
  by_whole_.erase(whole_key(whole, state.host->rack, id));
  count_rack(state.host->rack, -whole);
  whole_free_ -= whole * whole_gpu;
  for (int device = 0; device < state.host->devices; ++device) {
    if (!usable(state, device)) continue;
    const int free = state.gpu_free[device];
    total_.gpu_milli -= whole_gpu;
    gpu_free_ -= free;
    if (free > 0 && free < whole_gpu) by_gap_.erase(gap_key(free, id, device));
  }
  total_.cpu_milli -= state.host->cpu_milli;
  total_.memory_mib -= state.host->memory_mib;
}

void Capacity::count_rack(uint32_t rack, int devices) {
  if (devices == 0) return;
  const int32_t* before = rack_free_.find(rack);
  const int32_t now = (before ? *before : 0) + devices;
  if (before && *before > 0) by_rack_.erase(rack_key(*before, rack));
  rack_free_.set(rack, now);
  if (now > 0) by_rack_.set(rack_key(now, rack), {});
}

template <typename Change>
void Capacity::change_host(HostId id, Change&& change) {
  HostState& state = hosts_.edit(id);
  unindex(id, state);
  change(state);
  index(id, state);
}

void Capacity::set_open(HostId id, bool open) {
  change_host(id, [open](HostState& state) { state.open = open; });
}

void Capacity::set_device_open(HostId id, int device, bool open) {
  DAIS_CHECK(device >= 0 && device < host(id).host->devices);
  change_host(id, [device, open](HostState& state) {
    const uint64_t bit = uint64_t{1} << device;
    state.closed_devices = open ? state.closed_devices & ~bit : state.closed_devices | bit;
  });
}

void Capacity::move(const Placement& placement, const Shape& shape, int sign) {
  for (size_t begin = 0; begin < placement.size();) {
    const size_t end = end_of_host(placement, begin);
    change_host(placement[begin].host,
                [&](HostState& state) { state.move(placement, begin, end, shape, sign); });
    begin = end;
  }
}

void Capacity::take(const Placement& placement, const Shape& shape) { move(placement, shape, 1); }

void Capacity::give_back(const Placement& placement, const Shape& shape) {
  move(placement, shape, -1);
}

bool Capacity::fits(const Placement& placement, const Shape& shape) const {
  for (size_t begin = 0; begin < placement.size();) {
    HostState state = host(placement[begin].host);
    if (!state.open) return false;
    size_t i = begin;
    for (; i < placement.size() && placement[i].host == placement[begin].host; ++i) {
      const Slot& slot = placement[i];
      if (slot.device >= 0) {
        if (!usable(state, slot.device) || state.gpu_free[slot.device] < slot.gpu_milli)
          return false;
        state.gpu_free[slot.device] =
            static_cast<int16_t>(state.gpu_free[slot.device] - slot.gpu_milli);
      }
      if (i == begin || slot.task != placement[i - 1].task) {
        state.cpu_free -= shape.task.cpu_milli;
        state.memory_free -= shape.task.memory_mib;
      }
    }
    if (state.cpu_free < 0 || state.memory_free < 0) return false;
    begin = i;
  }
  return true;
}

int Capacity::room(const Shape& shape) const {
  const int devices = shape.devices();
  const auto least = static_cast<int>(shape.part(devices - 1));
  std::vector<HostId> candidates;
  if (devices > 0 && least < whole_gpu) {
    for (auto gap = by_gap_.lower_bound(gap_key(least, 0, 0)); gap;
         gap = by_gap_.after(gap->first)) {
      candidates.push_back(static_cast<HostId>(gap->first >> 8));
    }
  }
  int tasks = 0;
  for (auto entry = by_whole_.lower_bound(whole_key(devices, 0, 0)); entry && tasks < shape.tasks;
       entry = by_whole_.after(entry->first)) {
    const auto id = static_cast<HostId>(entry->first);
    tasks += host(id).room(shape);
    std::erase(candidates, id);
  }
  std::ranges::sort(candidates);
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (const HostId id : candidates) tasks += host(id).room(shape);
  return std::min(tasks, shape.tasks);
}

bool Capacity::possible(const Shape& shape, bool with_closed) const {
  if (!with_closed && !shape.total().within(total_)) return false;
  Capacity empty;
  hosts_.for_each([&](HostId, const HostState& state) {
    if (!state.open && !with_closed) return;
    const HostId id = empty.add_host(*state.host);
    for (int device = 0; device < state.host->devices && !with_closed; ++device) {
      if (!usable(state, device)) empty.set_device_open(id, device, false);
    }
  });
  return empty.find(shape).has_value();
}

std::optional<Placement> Capacity::find(const Shape& shape) const {
  const Resources need = shape.total();
  if (need.gpu_milli > gpu_free_) return std::nullopt;
  if (shape.mixed() || shape.task.gpu_milli == 0 || shape.task.gpu_milli % whole_gpu != 0) {
    return one_by_one(shape);
  }
  if (need.gpu_milli > whole_free_) return std::nullopt;
  return find_whole(shape);
}

std::optional<Placement> Capacity::find_whole(const Shape& shape) const {
  Placement out;
  if (on_one_host(shape, out)) return out;
  const auto devices = static_cast<int32_t>(shape.total().gpu_milli / whole_gpu);
  auto rack = by_rack_.lower_bound(rack_key(devices, 0));
  for (int tried = 0; rack && tried < racks_tried; ++tried) {
    out.clear();
    if (on_rack(static_cast<uint32_t>(rack->first), shape, shape.tasks, out) == 0) return out;
    rack = by_rack_.after(rack->first);
  }
  out.clear();
  int left = shape.tasks;
  for (auto fullest = by_rack_.last(); fullest && left > 0;
       fullest = by_rack_.before(fullest->first)) {
    left = on_rack(static_cast<uint32_t>(fullest->first), shape, left, out);
  }
  if (left > 0) return std::nullopt;
  return out;
}

bool Capacity::on_one_host(const Shape& shape, Placement& out) const {
  const int64_t devices = shape.total().gpu_milli / whole_gpu;
  if (devices > widest_) return false;
  for (int free = static_cast<int>(devices); free <= widest_; ++free) {
    auto entry = by_whole_.lower_bound(whole_key(free, 0, 0));
    for (int scanned = 0;
         entry && entry->first >> 56 == static_cast<uint64_t>(free) && scanned < scan_limit;
         ++scanned) {
      const auto id = static_cast<HostId>(entry->first);
      const HostState& state = host(id);
      if (state.room(shape) >= shape.tasks) {
        fill_host(id, state, shape, shape.tasks, out);
        return true;
      }
      entry = by_whole_.after(entry->first);
    }
  }
  return false;
}

// Places up to `tasks` tasks on a rack, emptiest hosts first and the rest where it fits tightest;
// returns how many are left.
int Capacity::on_rack(uint32_t rack, const Shape& shape, int tasks, Placement& out) const {
  const int per_task = whole_per_task(shape);
  std::vector<HostId> used;
  for (int free = widest_; free >= per_task && tasks > 0; --free) {
    auto entry = by_whole_.lower_bound(whole_key(free, rack, 0));
    while (entry && tasks > 0 && entry->first >> 32 == whole_key(free, rack, 0) >> 32) {
      const auto id = static_cast<HostId>(entry->first);
      const HostState& state = host(id);
      const int fit = state.room(shape);
      // The last few tasks look for a tighter host further down.
      if (fit > tasks && free > per_task * tasks) break;
      if (fit > 0) fill_host(id, state, shape, std::min(fit, tasks), out);
      tasks -= std::min(fit, tasks);
      used.push_back(id);
      entry = by_whole_.after(entry->first);
    }
  }
  // None was tighter: take the tightest of the hosts passed over.
  for (int free = per_task; free <= widest_ && tasks > 0; ++free) {
    auto entry = by_whole_.lower_bound(whole_key(free, rack, 0));
    while (entry && tasks > 0 && entry->first >> 32 == whole_key(free, rack, 0) >> 32) {
      const auto id = static_cast<HostId>(entry->first);
      if (std::find(used.begin(), used.end(), id) == used.end()) {
        const int fit = std::min(host(id).room(shape), tasks);
        if (fit > 0) fill_host(id, host(id), shape, fit, out);
        tasks -= fit;
      }
      entry = by_whole_.after(entry->first);
    }
  }
  return tasks;
}

// Parts and GPU-less tasks: each task is booked on a copy before the next is placed.
std::optional<Placement> Capacity::one_by_one(const Shape& shape) const {
  Capacity scratch = *this;
  const Shape single = shape.single();
  Placement out;
  for (int task = 0; task < shape.tasks; ++task) {
    auto slots = shape.mixed()               ? scratch.find_mixed(single)
                 : shape.task.gpu_milli == 0 ? scratch.find_gpuless(shape.task)
                                             : scratch.find_fraction(shape.task);
    if (!slots) return std::nullopt;
    if (task + 1 < shape.tasks) scratch.take(*slots, single);
    for (Slot slot : *slots) {
      slot.task = static_cast<int16_t>(task);
      out.push_back(slot);
    }
  }
  // Slots of one host stand together: booking reads them host by host.
  std::stable_sort(out.begin(), out.end(),
                   [](const Slot& a, const Slot& b) { return a.host < b.host; });
  return out;
}

std::optional<Placement> Capacity::find_fraction(const Resources& task) const {
  if (task.gpu_milli > whole_gpu) return std::nullopt;
  auto hosts = [&task](const HostState& state) {
    return state.cpu_free >= task.cpu_milli && state.memory_free >= task.memory_mib;
  };
  const auto share = static_cast<int32_t>(task.gpu_milli);
  auto gap = by_gap_.lower_bound(gap_key(share, 0, 0));
  for (int scanned = 0; gap && scanned < scan_limit; ++scanned, gap = by_gap_.after(gap->first)) {
    const auto id = static_cast<HostId>(gap->first >> 8);
    const auto device = static_cast<int16_t>(gap->first & 0xff);
    if (hosts(host(id))) return Placement{{id, device, 0, share}};
  }
  auto entry = by_whole_.lower_bound(whole_key(1, 0, 0));
  for (int scanned = 0; entry && scanned < hosts_scanned;
       ++scanned, entry = by_whole_.after(entry->first)) {
    const auto id = static_cast<HostId>(entry->first);
    if (!hosts(host(id))) continue;
    return Placement{{id, static_cast<int16_t>(pick_devices(host(id), 1)[0]), 0, share}};
  }
  return std::nullopt;
}

// A host that holds the task has a gap for its smallest part, or a whole device for every part.
std::optional<Placement> Capacity::find_mixed(const Shape& single) const {
  std::optional<HostId> where;
  const auto try_host = [&](uint64_t id) {
    if (host(static_cast<HostId>(id)).room(single) > 0) where = static_cast<HostId>(id);
  };
  const int devices = single.devices();
  const auto least = static_cast<int>(single.part(devices - 1));
  std::optional<uint64_t> tried;
  for (auto gap = by_gap_.lower_bound(gap_key(least, 0, 0)); gap && !where;
       gap = by_gap_.after(gap->first)) {
    const uint64_t id = gap->first >> 8 & 0xffffffff;
    if (tried != id) try_host(id);
    tried = id;
  }
  for (auto entry = by_whole_.lower_bound(whole_key(devices, 0, 0)); entry && !where;
       entry = by_whole_.after(entry->first)) {
    try_host(entry->first & 0xffffffff);
  }
  if (!where) return std::nullopt;
  Placement out;
  Free free = host(*where).gpu_free;
  int part = 0;
  for (const int device : fit_parts(host(*where), free, single)) {
    out.push_back(
        {*where, static_cast<int16_t>(device), 0, static_cast<int32_t>(single.part(part++))});
  }
  return out;
}

// GPU-less tasks go where the fewest GPUs are free, to keep hosts whole for those that need them.
std::optional<Placement> Capacity::find_gpuless(const Resources& task) const {
  for (auto entry = by_whole_.first(); entry; entry = by_whole_.after(entry->first)) {
    const auto id = static_cast<HostId>(entry->first);
    const HostState& state = host(id);
    if (state.cpu_free >= task.cpu_milli && state.memory_free >= task.memory_mib) {
      return Placement{{id, -1, 0, 0}};
    }
  }
  return std::nullopt;
}

}  // namespace dais::jobs
