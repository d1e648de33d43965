#include "autodiff/gradient_case.h"
#include "ops/conv/conv.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/lrn/lrn.h"
#include "ops/pool/pool.h"

namespace dais {
namespace {

void convolutions(GradientCases& cases) {
  const CaseInput image = batched({2, 4, 6, 5});
  cases.add(Conv{.pads = {1, 1, 1, 1}}, {image, real({3, 4, 3, 3}), real({3})});
  cases.add(Conv{.pads = {1, 0, 2, 1}, .strides = {2, 3}}, {image, real({3, 4, 3, 2})});
  cases.add(Conv{.dilations = {2, 1}, .pads = {2, 0, 0, 0}, .group = 2},
            {image, real({4, 2, 3, 2}), real({4})});
  cases.add(Conv{.group = 4}, {image, real({8, 1, 3, 3})});
  cases.add(Conv{.auto_pad = "SAME_UPPER", .strides = {2, 2}}, {image, real({2, 4, 3, 2})});
  cases.add(Conv{.strides = {2}}, {batched({2, 3, 9}), real({2, 3, 4}), real({2})});
  cases.add(Conv{.pads = {1, 0, 0, 1, 0, 0}}, {real({1, 2, 3, 2, 2}), real({2, 2, 2, 2, 2})});
  cases.add(Conv{.pads = {1, 1, 1, 1}, .strides = {2, 1}, .channels_last = true},
            {batched({2, 6, 5, 4}), real({3, 4, 3, 3}), real({3})});
  const std::vector<int64_t> kernel{3, 2}, strides{2, 1};
  const CaseInput weights = real({3, 2, 3, 2});
  cases.add(ConvBackwardData{.kernel_shape = kernel, .strides = strides},
            {batched({2, 3, 2, 3}), weights, fixed_ints({2, 2, 6, 4})});
  cases.add(ConvBackwardWeights{.kernel_shape = kernel, .strides = strides},
            {batched({2, 2, 6, 4}), batched({2, 3, 2, 3})});
}

void transposed(GradientCases& cases) {
  const CaseInput x = batched({2, 4, 3, 2});
  cases.add(ConvTranspose{}, {x, real({4, 3, 3, 2}), real({3})});
  cases.add(ConvTranspose{.output_padding = {1, 0}, .pads = {1, 0, 1, 1}, .strides = {2, 3}},
            {x, real({4, 3, 3, 3})});
  cases.add(ConvTranspose{.dilations = {2, 1}, .output_padding = {1, 0}, .group = 2},
            {x, real({4, 2, 2, 2})});
  cases.add(ConvTranspose{.auto_pad = "SAME_UPPER", .strides = {2, 2}}, {x, real({4, 2, 3, 3})});
  cases.add(ConvTranspose{.output_shape = {6, 5}, .strides = {2, 2}}, {x, real({4, 2, 3, 3})});
  cases.add(ConvTranspose{.strides = {2}, .channels_last = true},
            {batched({2, 3, 2}), real({2, 3, 3}), real({3})});
}

template <typename Struct>
void pools(GradientCases& cases, Struct attrs, const Spread& spread = {}) {
  const CaseInput image = batched({2, 2, 5, 6}, spread);
  attrs.kernel_shape = {3, 2};
  cases.add(attrs, {image});
  attrs.pads = {1, 0, 1, 1};
  attrs.strides = {2, 2};
  cases.add(attrs, {image});
  attrs.ceil_mode = true;
  cases.add(attrs, {image});
  attrs.dilations = {1, 2};
  cases.add(attrs, {image});
  attrs.channels_last = true;
  cases.add(attrs, {image});
  Struct line;
  line.kernel_shape = {3};
  line.auto_pad = "SAME_LOWER";
  cases.add(line, {batched({2, 2, 7}, spread)});
}

}  // namespace

void window_cases(GradientCases& cases) {
  convolutions(cases);
  transposed(cases);
  pools(cases, MaxPool{});
  cases.add(MaxPool{.kernel_shape = {2, 2}}, {real({1, 2, 3, 3})}, 2);
  pools(cases, AveragePool{});
  pools(cases, AveragePool{.count_include_pad = true});
  for (const int64_t p : {1, 2, 3}) {
    pools(cases, LpPool{.p = p});
    cases.add(GlobalLpPool{.p = p}, {batched({2, 3, 4, 2})});
  }
  cases.add(AveragePoolBackward{.kernel_shape = {3}, .pads = {1, 0}, .strides = {2}},
            {real({2, 2, 3}), fixed_ints({2, 2, 6})});
  for (const bool last : {false, true}) {
    cases.add(GlobalAveragePool{last}, {batched({2, 3, 4, 2})});
    cases.add(GlobalMaxPool{last}, {batched({2, 3, 4, 2})});
    for (const int64_t size : {3, 4})
      cases.add(
          LRN{.alpha = 0.3f, .beta = 0.75f, .bias = 1.5f, .size = size, .channels_last = last},
          {batched({2, 5, 2, 6})});
  }
}

}  // namespace dais
