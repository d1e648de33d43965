#pragma once

#include <cstdint>

namespace dais::jobs {

/// An amount of what jobs consume. Thousandths keep fractions exact.
struct Resources {
  int64_t gpu_milli = 0;
  int64_t cpu_milli = 0;
  int64_t memory_mib = 0;

  bool operator==(const Resources&) const = default;
  Resources& operator+=(const Resources& other) {
    gpu_milli += other.gpu_milli;
    cpu_milli += other.cpu_milli;
    memory_mib += other.memory_mib;
    return *this;
  }
  Resources& operator-=(const Resources& other) { return *this += other * -1; }
  friend Resources operator+(Resources lhs, const Resources& rhs) { return lhs += rhs; }
  friend Resources operator-(Resources lhs, const Resources& rhs) { return lhs -= rhs; }
  Resources operator*(int64_t times) const {
    return {gpu_milli * times, cpu_milli * times, memory_mib * times};
  }
  /// True when no part exceeds that of `bound`.
  bool within(const Resources& bound) const {
    return gpu_milli <= bound.gpu_milli && cpu_milli <= bound.cpu_milli &&
           memory_mib <= bound.memory_mib;
  }
};

/// The largest share of `total` that any part takes (dominant resource fairness).
inline double dominant_share(const Resources& used, const Resources& total) {
  double share = 0;
  auto part = [&share](int64_t use, int64_t all) {
    if (all > 0 && static_cast<double>(use) > share * static_cast<double>(all)) {
      share = static_cast<double>(use) / static_cast<double>(all);
    }
  };
  part(used.gpu_milli, total.gpu_milli);
  part(used.cpu_milli, total.cpu_milli);
  part(used.memory_mib, total.memory_mib);
  return share;
}

}  // namespace dais::jobs
