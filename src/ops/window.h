#pragma once

#include <string>
#include <vector>

#include "ir/call.h"
#include "ir/inference.h"

namespace dais {

/// How a window slides over the spatial axes of convolution and pooling: complete and checked.
struct Window {
  enum class Padding : uint8_t { given, same_upper, same_lower, valid };

  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> pads;  ///< begins of all axes, then ends
  Padding padding = Padding::given;
  bool ceil = false;

  size_t rank() const { return kernel.size(); }
  /// Cells from the first to the last tap of the window along an axis.
  int64_t extent(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  /// Number of window positions. A position that would start in the end padding is dropped.
  Dim positions(size_t axis, const Dim& size) const;
  int64_t positions(size_t axis, int64_t size) const {
    return *positions(axis, Dim(size)).constant();
  }
  /// Cells of padding before the first element. `positions` must be that of the size.
  int64_t pad_begin(size_t axis, int64_t size, int64_t positions) const;
};

/// What is wrong with the lists, or "".
std::string fill_window(Window& out, const std::vector<int64_t>& kernel,
                        const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations,
                        const std::vector<int64_t>& pads, const std::string& auto_pad, bool ceil);

/// Reads the attributes common to all windows. Empty lists take their defaults. Throws naming the
/// node when a list has the wrong length or an impossible value.
template <typename Context>
Window make_window(const Context& c, const std::vector<int64_t>& kernel,
                   const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations,
                   const std::vector<int64_t>& pads, const std::string& auto_pad,
                   bool ceil = false) {
  Window out;
  std::string problem = fill_window(out, kernel, strides, dilations, pads, auto_pad, ceil);
  if (!problem.empty()) c.fail(problem);
  return out;
}
/// One run of `count` neighbouring window positions that all see real elements through one cell of
/// the kernel: position out + i looks at element in + i * step.
struct Tap {
  int64_t kernel, out, in, count;
};

/// Every run, ordered by kernel cell, then by position; element and position numbers are row-major
/// over the spatial axes.
struct Taps {
  std::vector<Tap> list;
  int64_t step = 1;
};
/// `begin`: padding before each axis; `in` and `out`: sizes of the spatial axes.
Taps make_taps(const Window& window, const std::vector<int64_t>& begin,
               const std::vector<int64_t>& in, const std::vector<int64_t>& out);

/// Sizes of an activation tensor in either layout.
struct Activation {
  int64_t batch = 1, channels = 1;
  std::vector<int64_t> space;

  Activation() = default;
  Activation(const Shape& shape, bool channels_last);
  int64_t cells() const;
  Shape shape(bool channels_last) const;
};

/// The elements as T in channels-first order.
template <typename T>
std::vector<T> load_channels_first(const Tensor& tensor, bool channels_last);
/// Writes channels-first values to a tensor of either layout.
void store_channels_first(Tensor& to, std::vector<double> values, bool channels_last);
/// Adds input 2 of a convolution (B, one value per output channel; may be left out) to its
/// channels-first sums.
void add_channel_bias(const Call& c, const Activation& sizes, std::vector<double>& sums);
/// Channels-first values in the order of the layout asked for.
template <typename T>
std::vector<T> in_layout(std::vector<T> values, const Activation& sizes, bool channels_last);

/// Shape of an activation in either layout from its parts.
Dims activation_dims(const Dim& batch, const Dim& channels, const Dims& space, bool channels_last);
/// The spatial axes of an activation in either layout.
Dims space_of(const Dims& shape, bool channels_last);
inline size_t channel_axis(size_t rank, bool channels_last) { return channels_last ? rank - 1 : 1; }

}  // namespace dais
