#include "backends/cuda/emulated/launch.h"

#include <algorithm>
#include <mutex>

#include "base/threads.h"

namespace dais::cuda::emulated {
namespace {

/// What the threads of the team bring together.
class Collector {
 public:
  void add(Watch& watch) {
    const std::lock_guard lock(mutex_);
    traffic_.add(watch.take_traffic());
    for (RawFinding& finding : watch.take_findings()) {
      const auto same = std::find_if(raw_.begin(), raw_.end(), [&](const RawFinding& known) {
        return known.kind == finding.kind && known.site == finding.site &&
               known.place.line == finding.place.line;
      });
      if (same == raw_.end()) {
        raw_.push_back(std::move(finding));
      } else {
        same->count += finding.count;
      }
    }
  }
  Traffic& traffic() { return traffic_; }
  const std::vector<RawFinding>& raw() const { return raw_; }

 private:
  std::mutex mutex_;
  Traffic traffic_;
  std::vector<RawFinding> raw_;
};

using Regions = std::shared_ptr<const std::vector<Region>>;

Regions joined(const Regions& a, const Regions& b) {
  if (b->empty()) return a;
  auto both = std::make_shared<std::vector<Region>>(*a);
  both->insert(both->end(), b->begin(), b->end());
  std::sort(both->begin(), both->end(),
            [](const Region& x, const Region& y) { return x.first < y.first; });
  return both;
}

Finding resolve(const Module& module, const std::string& kernel, const RawFinding& raw) {
  Finding finding{.kind = raw.kind, .kernel = kernel, .detail = raw.detail, .count = raw.count};
  if (raw.site) {
    Module::Line line = module.line_of(raw.site);
    finding.file = line.file;
    finding.line = line.line;
  } else if (raw.place.file) {
    finding.file = raw.place.file;
    finding.file.erase(0, finding.file.rfind('/') + 1);
    finding.line = raw.place.line;
  }
  if (raw.other_site) {
    const Module::Line other = module.line_of(raw.other_site);
    finding.detail += "; the other side: " + other.file + ":" + std::to_string(other.line);
  }
  return finding;
}

}  // namespace

LaunchRecord run_grid(const Module& module, const std::string& name, Grid grid,
                      const Memory& memory, const Memory& pinned) {
  grid.checked = module.checked();
  const Reach reach{&memory, joined(memory.regions(), pinned.regions()), module.data()};
  const int64_t blocks = int64_t{grid.grid.x} * grid.grid.y * grid.grid.z;
  std::atomic<int64_t> taken = 0;
  std::atomic<bool> failed = false;
  Collector collector;
  const int64_t workers = std::min<int64_t>(team_size(), blocks);
  parallel_for(workers, 1, [&](int64_t begin, int64_t end) {
    if (begin == end) return;
    Block& block = Block::of_this_thread();
    block.begin(grid, reach);
    const Region shared = module.shared();
    for (int64_t i; !failed && (i = taken++) < blocks;) {
      const auto plane = int64_t{grid.grid.x} * grid.grid.y;
      const Index index{static_cast<unsigned>(i % grid.grid.x),
                        static_cast<unsigned>(i % plane / grid.grid.x),
                        static_cast<unsigned>(i / plane)};
      if (!block.run(index, shared)) failed = true;
    }
    collector.add(block.watch());
    block.watch().end_launch();
  });
  LaunchRecord record{.kernel = name,
                      .grid = grid.grid,
                      .block = grid.block,
                      .dynamic_shared_bytes = grid.dynamic_bytes,
                      .checked = grid.checked,
                      .traffic = std::move(collector.traffic()),
                      .findings = {},
                      .failed = failed};
  for (const RawFinding& raw : collector.raw())
    record.findings.push_back(resolve(module, name, raw));
  return record;
}

}  // namespace dais::cuda::emulated
