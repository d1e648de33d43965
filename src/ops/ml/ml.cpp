#include "ops/ml/ml.h"

#include "ops/ml/ml_parts.h"
#include "ops/ml/tree.h"

namespace dais::ops {

void define_ml(OpRegistry& registry) {
  define_features(registry);
  define_labels(registry);
  define_linear(registry);
  define_trees(registry);
}

}  // namespace dais::ops
