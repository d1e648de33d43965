#include "ops/qlinear/rows_cpu.h"

namespace dais::ops {

void register_qlinear_cpu(Kernels& kernels) {
  register_byte_products(kernels);
  register_byte_convolutions(kernels);
  register_byte_conversions(kernels);
}

}  // namespace dais::ops
