#pragma once

#include "ir/op.h"

namespace dais {

/// Converts element types; complex types only to themselves. Floats become integers by dropping the
/// fraction, out of range gives the nearest limit (types of 2 and 4 bits wrap) and NaN gives 0;
/// integers wrap. `saturate` and `round_mode` ("up", "down", "nearest") matter for 8-bit floats and
/// their scale type. Numbers become text as the shortest decimal that reads back the same; text
/// that is no number is an error when run.
struct Cast {
  DType to = DType::undefined;
  bool saturate = true;
  std::string round_mode = "up";
  static constexpr auto fields =
      std::tuple{required_field("to", &Cast::to), field("saturate", &Cast::saturate),
                 field("round_mode", &Cast::round_mode)};
  static const Op op;
};

/// The same bits as another element type of the same width.
struct BitCast {
  DType to = DType::undefined;
  static constexpr auto fields = std::tuple{required_field("to", &BitCast::to)};
  static const Op op;
};

/// Decimal text of a number as Cast writes it: "0.5", "3.0", "1e-05", "NaN", "INF".
std::string number_text(float value);
std::string number_text(double value);
/// The number a text stands for, nullopt when it is none. Case and outer blanks do not matter.
std::optional<double> parse_number(std::string_view text);

}  // namespace dais
