#include "backends/cuda/memory_share.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "base/error.h"

namespace dais::cuda {

size_t memory_share(std::string_view list, int ordinal, size_t device_bytes) {
  if (list.empty()) return all_memory;
  const auto refuse = [&list](const std::string& what) {
    throw Error(Code::invalid_argument, what,
                std::string(memory_share_variable) + "=" + std::string(list),
                "Give a part or a number of bytes for each visible device, such as 0.5,1");
  };
  for (int device = 0;; ++device) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view one = list.substr(0, comma);
    double value = 0;
    const auto result = std::from_chars(one.data(), one.data() + one.size(), value);
    if (result.ec != std::errc() || result.ptr != one.data() + one.size() ||
        !(value > 0 && value <= 0x1p60)) {
      refuse("'" + std::string(one) + "' is no part of a device");
    }
    if (device == ordinal) {
      if (value == 1) return all_memory;
      const double bytes = value < 1 ? value * static_cast<double>(device_bytes) : value;
      return static_cast<size_t>(std::floor(bytes));
    }
    if (comma == list.size()) refuse("nothing is said of device " + std::to_string(ordinal));
    list.remove_prefix(comma + 1);
  }
}

}  // namespace dais::cuda
