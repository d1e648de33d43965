#include "ops/qlinear/product_row.h"

namespace dais::ops {

void register_qlinear_cpu(Kernels& kernels) { register_byte_products(kernels); }

}  // namespace dais::ops
