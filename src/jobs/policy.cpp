#include "jobs/policy.h"

#include "base/error.h"

namespace dais::jobs {

std::string_view ordering_name(Ordering ordering) {
  switch (ordering) {
    case Ordering::fifo: return "fifo";
    case Ordering::priority: return "priority";
    case Ordering::fair: return "fair";
    case Ordering::las: return "las";
    case Ordering::standard: return "default";
  }
  return "default";
}

std::vector<std::string> policy_names() { return {"fifo", "priority", "fair", "las", "default"}; }

Policy policy_named(std::string_view name) {
  Policy policy;
  for (Ordering ordering :
       {Ordering::fifo, Ordering::priority, Ordering::fair, Ordering::las, Ordering::standard}) {
    if (ordering_name(ordering) != name) continue;
    policy.ordering = ordering;
    return policy;
  }
  std::string near = nearest(name, policy_names());
  throw Error(Code::invalid_argument, "unknown policy '" + std::string(name) + "'", "--policy",
              near.empty() ? "Use fifo, priority, fair, las or default" : "Did you mean " + near);
}

}  // namespace dais::jobs
