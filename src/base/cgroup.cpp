#include "base/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace dais {
namespace {

using std::filesystem::path;
using Cores = std::optional<double>;
using Memory = std::optional<GroupMemory>;

std::string first_line(const path& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
    return std::nullopt;
  return value;
}

/// quota / period when both are positive numbers ("max" and "-1" mean no limit).
Cores ratio(std::string_view quota, std::string_view period) {
  const auto used = number(quota), of = number(period);
  if (!used || !of || *used <= 0 || *of <= 0) return std::nullopt;
  return static_cast<double>(*used) / static_cast<double>(*of);
}

Cores cores_v2(const path& group) {
  const std::string line = first_line(group / "cpu.max");
  const size_t space = line.find(' ');
  if (space == std::string::npos) return std::nullopt;
  return ratio(std::string_view(line).substr(0, space), std::string_view(line).substr(space + 1));
}

Cores cores_v1(const path& group) {
  return ratio(first_line(group / "cpu.cfs_quota_us"), first_line(group / "cpu.cfs_period_us"));
}

Memory memory_of(const path& limit_file, const path& used_file) {
  // Version 1 says "no limit" by the largest number of whole pages.
  constexpr int64_t kNone = int64_t{1} << 62;
  const auto limit = number(first_line(limit_file)), used = number(first_line(used_file));
  if (!limit || !used || *limit < 0 || *limit >= kNone) return std::nullopt;
  return GroupMemory{*limit, *used};
}

Memory memory_v2(const path& group) {
  return memory_of(group / "memory.max", group / "memory.current");
}

Memory memory_v1(const path& group) {
  return memory_of(group / "memory.limit_in_bytes", group / "memory.usage_in_bytes");
}

double limit_of(double cores) { return cores; }
int64_t limit_of(const GroupMemory& memory) { return memory.limit_bytes; }

template <typename Limit>
std::optional<Limit> tighter(const std::optional<Limit>& a, const std::optional<Limit>& b) {
  if (!a || !b) return a ? a : b;
  return limit_of(*b) < limit_of(*a) ? b : a;
}

/// The tightest limit from `group` up to the root. In a container the path may name groups of the
/// host that are not visible; their files are missing and the mounted root holds the limit.
template <typename Limit>
std::optional<Limit> tightest(const path& mount, std::string_view group,
                              std::optional<Limit> (*limit)(const path&)) {
  auto found = limit(mount);
  for (path at = path(group).relative_path(); !at.empty(); at = at.parent_path())
    found = tighter(found, limit(mount / at));
  return found;
}

bool lists(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == wanted) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

/// How a controller tells its limit in both versions.
template <typename Limit>
struct Controller {
  const char* name;
  std::optional<Limit> (*v1)(const path&);
  std::optional<Limit> (*v2)(const path&);
};

/// One line of the membership: "hierarchy:controllers:group".
template <typename Limit>
std::optional<Limit> limit_of_line(std::string_view line, const path& mount,
                                   const Controller<Limit>& wanted) {
  const size_t first = line.find(':');
  const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
  if (second == line.npos) return std::nullopt;
  const std::string_view controllers = line.substr(first + 1, second - first - 1);
  const std::string_view group = line.substr(second + 1);
  if (controllers.empty())
    return tighter(tightest(mount, group, wanted.v2),
                   tightest(mount / "unified", group, wanted.v2));
  if (!lists(controllers, wanted.name)) return std::nullopt;
  return tighter(tightest(mount / wanted.name, group, wanted.v1),
                 tightest(mount / controllers, group, wanted.v1));
}

template <typename Limit>
std::optional<Limit> found_in(std::string_view membership, const path& mount,
                              const Controller<Limit>& wanted) {
  std::optional<Limit> found;
  while (!membership.empty()) {
    const size_t end = std::min(membership.find('\n'), membership.size());
    found = tighter(found, limit_of_line(membership.substr(0, end), mount, wanted));
    membership.remove_prefix(std::min(end + 1, membership.size()));
  }
  return found;
}

}  // namespace

Cores cpu_quota_cores(std::string_view membership, const path& mount) {
  return found_in<double>(membership, mount, {"cpu", cores_v1, cores_v2});
}

Memory group_memory(std::string_view membership, const path& mount) {
  return found_in<GroupMemory>(membership, mount, {"memory", memory_v1, memory_v2});
}

Cores cpu_quota_cores() {
  std::ifstream in("/proc/self/cgroup");
  return cpu_quota_cores(std::string(std::istreambuf_iterator<char>(in), {}));
}

}  // namespace dais
