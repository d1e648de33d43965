#include "data/arrays.h"

#include <algorithm>
#include <cstring>

#include "data/files.h"

namespace dais::data {
namespace {

Shape tail(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

Tensor to_f32(const Tensor& from) {
  if (from.dtype() == DType::f32) return from;
  Tensor out(DType::f32, from.shape());
  for (int64_t i = 0; i < out.elements(); ++i)
    out.storage<float>()[i] = static_cast<float>(from.to_double(i));
  return out;
}

class Arrays final : public Dataset {
 public:
  Arrays(ArraySource source, Description description, ImageOptions image)
      : source_(std::move(source)), image_(image) {
    description_ = std::move(description);
    const Tensor& inputs = source_.inputs;
    if (inputs.rank() < 1) refuse("a single number is no set of samples");
    if (source_.targets &&
        (source_.targets.rank() < 1 || source_.targets.shape()[0] != inputs.shape()[0]))
      refuse("inputs " + inputs.describe() + " and targets " + source_.targets.describe() +
             " differ in their number");
    if (inputs.dtype() == DType::string || is_complex(inputs.dtype()))
      refuse("inputs of element type " + std::string(dtype_name(inputs.dtype())));
    settle_input();
    settle_target();
  }

  int64_t size() const override { return source_.inputs.shape()[0]; }

  std::string name(int64_t index) const override {
    return source_.name + " " + std::to_string(index);
  }

  int64_t label(int64_t index) const override {
    return labels_.empty() ? -1 : labels_[static_cast<size_t>(index)];
  }

  Sample read(int64_t index) const override {
    Sample sample;
    sample.input = description_.input == InputKind::image ? finish_image(image_at(index), image_)
                                                          : slice(source_.inputs, index);
    if (!labels_.empty()) {
      const int64_t label = labels_[static_cast<size_t>(index)];
      if (label < 0 || label >= description_.class_count)
        throw Error(Code::invalid_argument,
                    "label " + std::to_string(label) + " is outside " +
                        std::to_string(description_.class_count) + " classes",
                    name(index));
      sample.target = Tensor::scalar<int64_t>(label);
    } else if (description_.task == Task::segmentation) {
      const Tensor mask = slice(source_.targets, index);
      Image pixels{mask.shape()[0], mask.shape()[1], 1, {}};
      pixels.pixels.assign(mask.data<uint8_t>().begin(), mask.data<uint8_t>().end());
      pixels = fit_mask(std::move(pixels), image_, kOutsideMask);
      const Shape shape{pixels.height, pixels.width};
      sample.target = image_tensor(std::move(pixels)).reshaped(shape);
    } else if (source_.targets) {
      sample.target = slice(source_.targets, index);
    }
    return sample;
  }

  RawSample raw(int64_t index) const override {
    const Tensor input = slice(source_.inputs, index);
    return {{static_cast<const uint8_t*>(input.raw()), input.bytes()}, "", input.owner()};
  }

 private:
  static constexpr uint8_t kOutsideMask = 255;

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Code::invalid_argument, what, source_.name);
  }

  static Tensor slice(const Tensor& whole, int64_t index) {
    const Shape shape = tail(whole.shape());
    const auto bytes = static_cast<size_t>(shape.elements()) * dtype_size(whole.dtype());
    auto* data =
        const_cast<std::byte*>(whole.storage<std::byte>()) + static_cast<size_t>(index) * bytes;
    // The view keeps the elements alive through a copy of the handle.
    return Tensor::view(whole.dtype(), shape, data, std::make_shared<Tensor>(whole));
  }

  bool holds_images() const {
    const Shape& shape = source_.inputs.shape();
    if (source_.inputs.dtype() != DType::u8) return false;
    if (shape.rank() == 3) return shape[1] > 1 && shape[2] > 1;
    if (shape.rank() != 4) return false;
    const int64_t channels = source_.planar ? shape[1] : shape[3];
    return channels == 1 || channels == 3;
  }

  void settle_input() {
    const Shape sample = tail(source_.inputs.shape());
    if (holds_images()) {
      description_.input = InputKind::image;
      const bool flat = sample.rank() == 2;
      const size_t first = source_.planar && !flat ? 1 : 0;
      const int64_t channels = flat ? 1 : sample[source_.planar ? 0 : 2];
      if (image_.channels == 0) image_.channels = static_cast<int>(channels);
      description_.input_shape = image_.height > 0
                                     ? Shape{image_.height, image_.width, image_.channels}
                                     : Shape{sample[first], sample[first + 1], image_.channels};
      return;
    }
    const bool row = sample.rank() == 1;
    description_.input = row ? InputKind::row : InputKind::array;
    if (row) source_.inputs = to_f32(source_.inputs);
    description_.input_shape = sample;
  }

  void settle_target() {
    Tensor& targets = source_.targets;
    if (!targets) {
      description_.task = Task::none;
      return;
    }
    if (targets.rank() == 2 && targets.shape()[1] == 1)
      targets = targets.reshaped({targets.shape()[0]});
    if (is_integer(targets.dtype()) && targets.rank() == 1) return settle_classes();
    if (targets.dtype() == DType::u8 && targets.rank() == 3 &&
        description_.input == InputKind::image) {
      description_.task = Task::segmentation;
      uint8_t most = 0;
      for (const uint8_t level : targets.data<uint8_t>())
        if (level != kOutsideMask) most = std::max(most, level);
      if (description_.class_count == 0) description_.class_count = most + 1;
      return;
    }
    description_.task = Task::regression;
    targets = to_f32(targets);
    if (targets.rank() == 1) targets = targets.reshaped({targets.shape()[0], 1});
    description_.class_count = tail(targets.shape()).elements();
  }

  void settle_classes() {
    description_.task = Task::classification;
    labels_ = source_.targets.to_ints();
    constexpr int64_t kMostClasses = 1 << 20;
    const bool open = description_.class_count == 0;
    std::vector<std::string> wrong;
    for (size_t i = 0; i < labels_.size(); ++i) {
      const int64_t limit = open ? kMostClasses : description_.class_count;
      if (labels_[i] < 0 || labels_[i] >= limit)
        wrong.push_back(name(static_cast<int64_t>(i)) + ": " + std::to_string(labels_[i]));
      else if (open && labels_[i] >= most_)
        most_ = labels_[i] + 1;
    }
    if (open) description_.class_count = most_;
    add_finding(description_, "label outside the classes", std::move(wrong));
    find_empty_classes(description_, labels_);
  }

  Image image_at(int64_t index) const {
    const Tensor flat = slice(source_.inputs, index);
    const auto from = flat.data<uint8_t>();
    const Shape& shape = flat.shape();
    Image image;
    if (!source_.planar || shape.rank() == 2) {
      image.height = shape[0];
      image.width = shape[1];
      image.channels = shape.rank() == 2 ? 1 : static_cast<int>(shape[2]);
      image.pixels.assign(from.begin(), from.end());
      return image;
    }
    image.height = shape[1];
    image.width = shape[2];
    image.channels = static_cast<int>(shape[0]);
    image.pixels.resize(from.size());
    const auto plane = static_cast<size_t>(image.height * image.width);
    const auto channels = static_cast<size_t>(image.channels);
    for (size_t c = 0; c < channels; ++c)
      for (size_t i = 0; i < plane; ++i) image.pixels[i * channels + c] = from[c * plane + i];
    return image;
  }

  ArraySource source_;
  ImageOptions image_;
  std::vector<int64_t> labels_;
  int64_t most_ = 0;
};

}  // namespace

DatasetPtr array_dataset(ArraySource source, Description description, const ImageOptions& image) {
  return std::make_shared<Arrays>(std::move(source), std::move(description), image);
}

}  // namespace dais::data
