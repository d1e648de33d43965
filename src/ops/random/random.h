#pragma once

#include "ir/op.h"

namespace dais {

// Random numbers are a pure function of seed and element index (see base/philox.h). With a seed
// each run gives the same bits; without one each run of the process gives others, and the next
// process repeats them.

struct RandomNormal {
  DType dtype = DType::f32;
  float mean = 0;
  float scale = 1;
  std::optional<float> seed = {};
  std::vector<int64_t> shape = {};
  static constexpr auto fields =
      std::tuple{field("dtype", &RandomNormal::dtype), field("mean", &RandomNormal::mean),
                 field("scale", &RandomNormal::scale), field("seed", &RandomNormal::seed),
                 field("shape", &RandomNormal::shape)};
  static const Op op;
};

struct RandomUniform {
  DType dtype = DType::f32;
  float low = 0;
  float high = 1;
  std::optional<float> seed = {};
  std::vector<int64_t> shape = {};
  static constexpr auto fields =
      std::tuple{field("dtype", &RandomUniform::dtype), field("low", &RandomUniform::low),
                 field("high", &RandomUniform::high), field("seed", &RandomUniform::seed),
                 field("shape", &RandomUniform::shape)};
  static const Op op;
};

/// (like): of the shape, and unless told otherwise the type, of the input.
struct RandomNormalLike {
  DType dtype = DType::undefined;
  float mean = 0;
  float scale = 1;
  std::optional<float> seed = {};
  static constexpr auto fields =
      std::tuple{field("dtype", &RandomNormalLike::dtype), field("mean", &RandomNormalLike::mean),
                 field("scale", &RandomNormalLike::scale), field("seed", &RandomNormalLike::seed)};
  static const Op op;
};

struct RandomUniformLike {
  DType dtype = DType::undefined;
  float low = 0;
  float high = 1;
  std::optional<float> seed = {};
  static constexpr auto fields =
      std::tuple{field("dtype", &RandomUniformLike::dtype), field("low", &RandomUniformLike::low),
                 field("high", &RandomUniformLike::high), field("seed", &RandomUniformLike::seed)};
  static const Op op;
};

/// (probabilities): ones with the given probabilities, else zeros.
struct Bernoulli {
  DType dtype = DType::undefined;  ///< undefined: that of the input
  std::optional<float> seed = {};
  static constexpr auto fields =
      std::tuple{field("dtype", &Bernoulli::dtype), field("seed", &Bernoulli::seed)};
  static const Op op;
};

/// (log-probabilities: [batch, classes], not normalised): class indices [batch, sample_size].
struct Multinomial {
  DType dtype = DType::i32;
  int64_t sample_size = 1;
  std::optional<float> seed = {};
  static constexpr auto fields = std::tuple{field("dtype", &Multinomial::dtype),
                                            field("sample_size", &Multinomial::sample_size),
                                            field("seed", &Multinomial::seed)};
  static const Op op;
};

/// (x, ratio?, training_mode?, step?) → (y, mask: bool). Outside training y is x and the mask true;
/// in training elements are dropped with probability ratio (0.5 when left out), the others scaled.
/// `step` (i64 scalar) and `stream` (not of ONNX) choose other numbers for each training step and
/// each node; with a seed the same four give the same mask, which the gradient relies on.
struct Dropout {
  std::optional<int64_t> seed = {};
  int64_t stream = 0;
  static constexpr auto fields =
      std::tuple{field("seed", &Dropout::seed), field("stream", &Dropout::stream)};
  static const Op op;
};

/// (x, step: i64 scalar) → y: dropout that is a pure function of seed, stream, step and the place
/// of an element, so that the gradient draws again what the forward pass drew, and a resumed run
/// draws what the uninterrupted one would have. Kept elements are divided by 1 - ratio.
struct SteppedDropout {
  float ratio = 0.5f;
  int64_t seed = 0;
  int64_t stream = 0;  ///< its own for each node of a graph
  static constexpr auto fields =
      std::tuple{field("ratio", &SteppedDropout::ratio), field("seed", &SteppedDropout::seed),
                 field("stream", &SteppedDropout::stream)};
  static const Op op;
};

}  // namespace dais
