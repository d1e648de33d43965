#pragma once

#include "base/isa.h"
#include "ir/graph.h"

namespace dais {

/// What passes may know of the machine that a graph is prepared for.
class Target {
 public:
  virtual ~Target() = default;
  /// Whether some kernel (not the reference) takes this node as it stands.
  virtual bool has_kernel(const Node& node) const = 0;
  virtual Isa isa() const = 0;
  virtual int threads() const = 0;
};

}  // namespace dais
