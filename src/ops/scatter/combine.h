#pragma once

#include <optional>
#include <string_view>
#include <type_traits>

#include "ir/dtype.h"

namespace dais {

/// What becomes of an element that an update meets.
enum class ScatterCombine { none, add, mul, min, max };

inline std::optional<ScatterCombine> scatter_combine(std::string_view reduction) {
  if (reduction == "none") return ScatterCombine::none;
  if (reduction == "add") return ScatterCombine::add;
  if (reduction == "mul") return ScatterCombine::mul;
  if (reduction == "min") return ScatterCombine::min;
  if (reduction == "max") return ScatterCombine::max;
  return std::nullopt;
}

/// NaN stays in min and max; integers wrap.
template <typename T>
T combined(ScatterCombine how, T old, T update) {
  if constexpr (!std::is_arithmetic_v<T>) {
    return number_cast<T>(combined(how, static_cast<float>(old), static_cast<float>(update)));
  } else {
    // Unsigned arithmetic: overflow wraps.
    using Wide = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<int64_t>,
                                             std::type_identity<T>>::type;
    switch (how) {
      case ScatterCombine::add:
        return static_cast<T>(static_cast<Wide>(old) + static_cast<Wide>(update));
      case ScatterCombine::mul:
        return static_cast<T>(static_cast<Wide>(old) * static_cast<Wide>(update));
      case ScatterCombine::min: return old != old || old < update ? old : update;
      case ScatterCombine::max: return old != old || old > update ? old : update;
      default: return update;
    }
  }
}

}  // namespace dais
