#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "jobs/model.h"
#include "jobs/persistent_map.h"

namespace dais::jobs {

/// One host and what is free on it.
struct HostState {
  std::shared_ptr<const Host> host;
  std::array<int16_t, max_devices> gpu_free{};  ///< thousandths
  int64_t cpu_free = 0;
  int64_t memory_free = 0;
  uint64_t closed_devices = 0;  ///< bit per device that must not be given out
  bool open = true;             ///< closed hosts keep their jobs but get no new ones

  /// Devices of which nothing is used.
  int whole_free() const;
  /// Tasks of a shape that fit beside what runs there; none on a closed host.
  int room(const Shape& shape) const;
  /// Books (sign 1) or returns (-1) the slots of a placement from `begin` to `end`, all of them on
  /// this host.
  void move(const Placement& placement, size_t begin, size_t end, const Shape& shape, int sign);
};

/// Where the slots that follow `begin` on the same host end.
size_t end_of_host(const Placement& placement, size_t begin);

/// What is free where, with indexes that answer "where would this gang go" without scanning the
/// hosts. Copies share structure. A gang goes to as few hosts as it can, then to one rack, then to
/// few racks; whole GPUs to the host with the tightest fit, within it to the tightest island;
/// fractions to the device with the tightest gap, those of several devices to distinct ones.
class Capacity {
 public:
  HostId add_host(Host host);
  void set_open(HostId id, bool open);
  void set_device_open(HostId id, int device, bool open);

  /// Where the gang would go, or nothing when it does not fit now.
  std::optional<Placement> find(const Shape& shape) const;
  /// Books or returns a placement of a shape.
  void take(const Placement& placement, const Shape& shape);
  void give_back(const Placement& placement, const Shape& shape);
  /// Tasks of a shape that fit beside what runs now, counted up to the size of its gang.
  int room(const Shape& shape) const;
  /// True when every slot of the placement is free.
  bool fits(const Placement& placement, const Shape& shape) const;
  /// True when the gang would fit on what is open, or on everything, if nothing ran.
  bool possible(const Shape& shape, bool with_closed = false) const;

  const HostState& host(HostId id) const { return hosts_.at(id); }
  HostId hosts() const { return next_host_; }
  /// Everything on open hosts, used or not.
  const Resources& total() const { return total_; }
  /// Unused thousandths of GPUs on open hosts, and of these the ones on wholly free devices.
  int64_t gpu_free() const { return gpu_free_; }
  int64_t whole_free() const { return whole_free_; }

  /// Throws `internal` unless every index equals one rebuilt from the hosts. For tests.
  void verify() const;

 private:
  struct Nothing {};

  void index(HostId id, const HostState& state);
  void unindex(HostId id, const HostState& state);
  void count_rack(uint32_t rack, int devices);
  template <typename Change>
  void change_host(HostId id, Change&& change);
  void move(const Placement& placement, const Shape& shape, int sign);

  std::optional<Placement> find_whole(const Shape& shape) const;
  bool on_one_host(const Shape& shape, Placement& out) const;
  int on_rack(uint32_t rack, const Shape& shape, int tasks, Placement& out) const;
  std::optional<Placement> one_by_one(const Shape& shape) const;
  std::optional<Placement> find_fraction(const Resources& task) const;
  std::optional<Placement> find_mixed(const Shape& single) const;
  std::optional<Placement> find_gpuless(const Resources& task) const;

  PersistentMap<HostState> hosts_;
  PersistentMap<Nothing> by_whole_;   // [free devices 8][rack 24][host 32]
  PersistentMap<Nothing> by_gap_;     // [free thousandths 16][host 32][device 8], shared devices
  PersistentMap<Nothing> by_rack_;    // [free devices 32][rack 32]
  PersistentMap<int32_t> rack_free_;  // free devices of each rack
  HostId next_host_ = 0;
  int widest_ = 0;  // most devices of a host
  Resources total_;
  int64_t gpu_free_ = 0;
  int64_t whole_free_ = 0;
};

}  // namespace dais::jobs
