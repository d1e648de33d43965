#pragma once

#include <array>

#include "base/isa.h"
#include "ir/dtype.h"

namespace dais::cpu {

/// How fast this machine can be at most: what a step's time is held against.
struct Peaks {
  /// Operations a second of all threads together.
  struct Rate {
    double per_second = 0;
    bool measured = false;  ///< false: computed from the rate of f32
  };
  Rate f32, f64, bf16, i8;
  /// f32 products cut into bf16 parts for the tile unit; 0 without one.
  Rate f32_in_parts;
  /// A copy's rate (bytes read plus bytes written, a second) while both sides together have at
  /// most so many bytes. In rising order; the last one holds for everything larger.
  struct Copy {
    double footprint = 0;
    double per_second = 0;
  };
  std::array<Copy, 3> copies = {};

  const Rate& rate(DType dtype) const;
  double bandwidth(double bytes) const;
  /// The least seconds for so much work on operands of this type: the roofline. `seconds` is what
  /// it really took: f32 products faster than the vector units allow are held against the tile
  /// unit.
  double bound(double flops, double bytes, DType dtype, double seconds) const;
};

/// Measures with loops of this level on a team of so many threads; takes less than 100 ms. Sets the
/// team size of the calling thread.
Peaks measure_peaks(Isa isa, int threads);

}  // namespace dais::cpu
