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

std::string first_line(const path& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

/// quota / period when both are positive numbers ("max" and "-1" mean no limit).
Cores ratio(std::string_view quota, std::string_view period) {
  int64_t used = 0, of = 0;
  auto parse = [](std::string_view text, int64_t& value) {
    return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
  };
  if (!parse(quota, used) || !parse(period, of) || used <= 0 || of <= 0) return std::nullopt;
  return static_cast<double>(used) / static_cast<double>(of);
}

Cores limit_v2(const path& group) {
  const std::string line = first_line(group / "cpu.max");
  const size_t space = line.find(' ');
  if (space == std::string::npos) return std::nullopt;
  return ratio(std::string_view(line).substr(0, space), std::string_view(line).substr(space + 1));
}

Cores limit_v1(const path& group) {
  return ratio(first_line(group / "cpu.cfs_quota_us"), first_line(group / "cpu.cfs_period_us"));
}

Cores tighter(Cores a, Cores b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

/// The tightest limit from `group` up to the root. In a container the path may name groups of the
/// host that are not visible; their files are missing and the mounted root holds the limit.
Cores tightest(const path& mount, std::string_view group, Cores (*limit)(const path&)) {
  Cores found = limit(mount);
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

/// One line of the membership: "hierarchy:controllers:group".
Cores limit_of_line(std::string_view line, const path& mount) {
  const size_t first = line.find(':');
  const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
  if (second == line.npos) return std::nullopt;
  const std::string_view controllers = line.substr(first + 1, second - first - 1);
  const std::string_view group = line.substr(second + 1);
  if (controllers.empty())
    return tighter(tightest(mount, group, limit_v2), tightest(mount / "unified", group, limit_v2));
  if (!lists(controllers, "cpu")) return std::nullopt;
  return tighter(tightest(mount / "cpu", group, limit_v1),
                 tightest(mount / controllers, group, limit_v1));
}

}  // namespace

Cores cpu_quota_cores(std::string_view membership, const path& mount) {
  Cores found;
  while (!membership.empty()) {
    const size_t end = std::min(membership.find('\n'), membership.size());
    found = tighter(found, limit_of_line(membership.substr(0, end), mount));
    membership.remove_prefix(std::min(end + 1, membership.size()));
  }
  return found;
}

Cores cpu_quota_cores() {
  std::ifstream in("/proc/self/cgroup");
  return cpu_quota_cores(std::string(std::istreambuf_iterator<char>(in), {}));
}

}  // namespace dais
