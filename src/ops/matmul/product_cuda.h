#pragma once

#include <functional>
#include <optional>

#include "backends/cuda/launch.h"
#include "ops/elementwise/text_cuda.h"

namespace dais {

/// What kind of product product.cu is compiled for; the numbers of its MODE.
enum class ProductMode { matrices = 0, conv = 1, conv_data = 2, conv_weights = 3 };

/// The kernel's Problem, byte for byte.
struct ProductProblem {
  int32_t rows = 0, columns = 0, depth = 0, group = 1;
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0;
  int64_t a_batch[6] = {}, b_batch[6] = {};
  uint32_t batch_sizes[6] = {};
  int32_t batch_axes = 0, channels = 0;
  int32_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, window[3] = {1, 1, 1};
  int32_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {};
  int32_t taps = 1, in_cells = 1, out_cells = 1, rows_first_a = 0, columns_first_b = 0, packs = 0;
};

/// Steps of an epilogue's operand along batch, row and column of the result.
using OperandSteps = std::array<int64_t, 3>;

struct ProductCall {
  ProductProblem problem;
  int64_t batches = 1;
};

/// How one op becomes a product.
struct ProductForm {
  ProductMode mode = ProductMode::matrices;
  size_t a = 0, b = 1;  ///< inputs of the product node
  /// Sizes from the shapes of A, of B and of the product's result; nothing: not for these.
  std::function<std::optional<ProductCall>(const Shape&, const Shape&, const Shape&)> call;
  /// How many of a result's last axes the columns stand for, the axis before being the rows.
  size_t column_axes = 1;
};

/// Where one of a kernel's tensors comes from.
struct ProductSource {
  int input = -1;  ///< of the node that runs
  Tensor tensor;   ///< else: a constant of the body, and its copy on the device
  std::shared_ptr<DeviceMemory> memory;

  const Shape& shape(const Sizes& sizes) const {
    return input >= 0 ? sizes.in[static_cast<size_t>(input)] : tensor.shape();
  }
  const void* address(const Arguments& arguments) const noexcept {
    return input >= 0 ? arguments.in[static_cast<size_t>(input)] : memory->address();
  }
};
/// An input of the node that runs, or a constant inside it, which is uploaded.
ProductSource product_source(const KernelQuery& query, const Value* value);

/// The product node that a row is asked about: the node itself or the first of a Fused node's body.
const Node& product_of(const Node& node);

/// Whether the types and what follows the product can be part of its kernel.
Verdict accepts_product(const KernelQuery& query, const ProductForm& form);
std::unique_ptr<Kernel> prepare_product(const KernelQuery& query, const ProductForm& form);

}  // namespace dais
