#include "autodiff/gradient_case.h"
#include "ops/affine_grid/affine_grid.h"
#include "ops/attention/attention.h"
#include "ops/center_crop_pad/center_crop_pad.h"
#include "ops/col2im/col2im.h"
#include "ops/compress/compress.h"
#include "ops/depth_to_space/depth_to_space.h"
#include "ops/det/det.h"
#include "ops/einsum/einsum.h"
#include "ops/max_unpool/max_unpool.h"
#include "ops/resize/resize.h"
#include "ops/reverse_sequence/reverse_sequence.h"
#include "ops/scatter/scatter.h"
#include "ops/stft/stft.h"
#include "ops/topk/topk.h"
#include "ops/unique/unique.h"

namespace dais {
namespace {

void rearranged(GradientCases& cases) {
  for (const bool last : {false, true}) {
    const auto image = last ? batched({2, 2, 3, 8}) : batched({2, 8, 2, 3});
    cases.add(DepthToSpace{2, "DCR", last}, {image});
    cases.add(DepthToSpace{2, "CRD", last}, {image});
    cases.add(SpaceToDepth{2, last}, {last ? batched({2, 2, 4, 3}) : batched({2, 3, 2, 4})});
  }
  cases.add(ReverseSequence{}, {real({4, 2, 2}), fixed_ints({3, 2})});
  cases.add(CenterCropPad{}, {real({5, 4}), fixed_ints({2, 7})});
  cases.add(CenterCropPad{.axes = {1}}, {batched({2, 4}), fixed_ints({7})});
  const auto some = fixed(Tensor::of<bool>(Shape{3}, {true, false, true}));
  cases.add(Compress{.axis = 1}, {real({2, 4, 2}), some});
  cases.add(Compress{}, {real({2, 3}), some});
  cases.add(Unique{}, {real({5})}, 2, {0});
  cases.add(Unique{.axis = 1, .sorted = false}, {real({2, 3})}, 2, {0});
  for (const bool largest : {false, true})
    cases.add(TopK{.axis = 1, .largest = largest}, {batched({2, 5, 2}), fixed_ints({2})}, 2);
  const auto places = fixed(Tensor::of<int64_t>(Shape{1, 1, 2, 2}, {0, 3, 9, 14}));
  cases.add(MaxUnpool{.kernel_shape = {2, 2}, .strides = {2, 2}}, {real({1, 1, 2, 2}), places});
  cases.add(Col2Im{.pads = {1, 0, 0, 1}, .strides = {2, 1}},
            {real({2, 12, 4}), fixed_ints({4, 3}), fixed_ints({2, 3})});
}

void scattered(GradientCases& cases) {
  const auto indices = fixed(Tensor::of<int64_t>(Shape{2, 2}, {2, 0, -1, 1}));
  const auto tuples = fixed(Tensor::of<int64_t>(Shape{2, 1}, {2, 0}));
  const Spread positive{.low = 0.4, .high = 2}, other{.low = -1.83, .high = 2.2};
  for (const char* reduction : {"none", "add", "mul", "min", "max"}) {
    cases.add(ScatterElements{.axis = 1, .reduction = reduction},
              {real({2, 3}, positive), indices, real({2, 2}, other)});
    cases.add(ScatterND{.reduction = reduction}, {real({3, 2}), tuples, real({2, 2}, other)});
  }
}

void sums(GradientCases& cases) {
  cases.add(Einsum{"bij,bjk->bik"}, {batched({2, 2, 3}), batched({2, 3, 2})});
  cases.add(Einsum{"ij,jk,kl->il"}, {real({2, 3}), real({3, 2}), real({2, 2})});
  cases.add(Einsum{"...ij,...j"}, {real({2, 2, 3}), real({3})});
  cases.add(Einsum{"ij->j"}, {real({2, 3})});
  cases.add(Einsum{"ij,j->i"}, {real({2, 3}), real({1})});
  cases.add(Det{}, {batched({2, 3, 3})});
  cases.add(Det{}, {real({1, 1})});
}

void transforms(GradientCases& cases) {
  const auto axis = fixed(Tensor::scalar<int64_t>(1));
  for (const bool inverse : {false, true})
    for (const int64_t parts : {1, 2}) {
      const auto signal = batched({2, 5, 2, parts});
      cases.add(Dft{.inverse = inverse}, {signal, none(), axis});
      for (const int64_t length : {4, 7})
        cases.add(Dft{.inverse = inverse, .onesided = inverse || parts == 1},
                  {signal, fixed(Tensor::scalar(length)), axis});
    }
  cases.add(Dft{.inverse = true, .onesided = true}, {batched({2, 4, 2})});
  const auto step = fixed(Tensor::scalar<int64_t>(2)), frame = fixed(Tensor::scalar<int64_t>(4));
  const auto window = fixed(real({4}).value);
  for (const bool onesided : {false, true}) {
    cases.add(Stft{onesided}, {batched({2, 9, 1}), step, window, frame});
    cases.add(Stft{onesided}, {batched({2, 8, 1}), step, none(), frame});
  }
}

void resampled(GradientCases& cases) {
  const auto scales = [](std::vector<float> values) {
    return fixed(Tensor::of<float>(Shape{std::ssize(values)}, std::span<const float>(values)));
  };
  const CaseInput image = batched({1, 2, 4, 3});
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    cases.add(Resize{.mode = mode}, {image, none(), scales({1, 1, 2, 1.7F})});
    cases.add(Resize{.mode = mode, .coordinate_transformation_mode = "align_corners"},
              {image, none(), none(), fixed_ints({1, 2, 3, 5})});
    cases.add(Resize{.mode = mode, .coordinate_transformation_mode = "asymmetric", .axes = {2, 3}},
              {image, none(), none(), fixed_ints({2, 4})});
  }
  cases.add(Resize{.mode = "linear", .antialias = true},
            {image, none(), scales({1, 1, 0.6F, 0.5F})});
  cases.add(
      Resize{.mode = "linear",
             .coordinate_transformation_mode = "tf_crop_and_resize",
             .extrapolation_value = 3},
      {image, scales({0, 0, -0.3F, 0.2F, 1, 1, 0.7F, 1.2F}), none(), fixed_ints({1, 2, 5, 4})});
  for (const bool align : {false, true}) {
    cases.add(AffineGrid{align}, {batched({2, 2, 3}), fixed_ints({2, 1, 2, 3})});
    cases.add(AffineGrid{align}, {real({1, 3, 4}), fixed_ints({1, 1, 2, 3, 2})});
  }
}

void attentions(GradientCases& cases) {
  const CaseInput q = batched({2, 4, 3, 2}), k = batched({2, 2, 3, 2}), v = batched({2, 2, 3, 4});
  cases.add(Attention{}, {q, q, q});
  cases.add(Attention{.is_causal = true}, {q, k, v});
  cases.add(Attention{.kv_num_heads = 2, .q_num_heads = 2, .scale = 0.3f, .softcap = 2},
            {batched({2, 3, 4}), batched({2, 3, 4}), batched({2, 3, 6}), real({3, 3})});
  const auto angles = fixed(real({3, 1}).value);
  const auto ids = fixed(Tensor::of<int64_t>(Shape{2, 3}, {0, 1, 2, 2, 0, 1}));
  for (const bool interleaved : {false, true})
    cases.add(RotaryEmbedding{.interleaved = interleaved}, {q, angles, angles, ids});
}

}  // namespace

void signal_cases(GradientCases& cases) {
  rearranged(cases);
  scattered(cases);
  sums(cases);
  transforms(cases);
  resampled(cases);
  attentions(cases);
}

}  // namespace dais
