#include <unordered_map>

#include "autodiff/autodiff.h"

namespace dais {
namespace {

constexpr std::string_view kWhole = "its result is made of integers or booleans";
constexpr std::string_view kMade = "its result does not depend on numbers that could be trained";
constexpr std::string_view kRandom = "its result is drawn at random";
constexpr std::string_view kStep = "it is constant almost everywhere";
constexpr std::string_view kQuantised = "it computes with integers of few bits; train in floats";
constexpr std::string_view kClassical = "it applies a classical model that is fitted elsewhere";
constexpr std::string_view kText = "it works on text or files";
constexpr std::string_view kServing = "it keeps a cache of past tokens, which only serving has";
constexpr std::string_view kUpdate = "it is an optimiser's step";
constexpr std::string_view kSecond =
    "it is a gradient itself, not meant to be differentiated again";
constexpr std::string_view kLate = "passes make it after gradients have been appended";
constexpr std::string_view kSequence =
    "it handles sequences or optionals, through which no gradient is followed; use tensors";
constexpr std::string_view kSampled =
    "it reads boxes or moved places of an image, which no training here does";
constexpr std::string_view kBits = "it reads the bits of numbers, not their values";

struct Reason {
  std::string_view text;
  std::initializer_list<std::string_view> ops;
};

const std::initializer_list<Reason> kReasons = {
    {kWhole,
     {"and",
      "arg_max",
      "arg_min",
      "bit_shift",
      "bitwise_and",
      "bitwise_not",
      "bitwise_or",
      "bitwise_xor",
      "equal",
      "greater",
      "greater_or_equal",
      "is_inf",
      "is_nan",
      "less",
      "less_or_equal",
      "non_max_suppression",
      "non_zero",
      "not",
      "optional_has_element",
      "or",
      "sequence_length",
      "shape",
      "size",
      "xor"}},
    {kMade,
     {"blackman_window", "constant_of_shape", "eye_like", "hamming_window", "hann_window",
      "mel_weight_matrix", "one_hot", "range", "sequence_empty"}},
    {kRandom,
     {"bernoulli", "multinomial", "random_normal", "random_normal_like", "random_uniform",
      "random_uniform_like"}},
    {kStep, {"binarizer", "hardmax"}},
    {kQuantised,
     {"conv_integer", "dequantize_linear", "dynamic_quantize_linear", "mat_mul_integer",
      "mat_mul_integer_to_float", "mat_mul_n_bits", "q_gemm", "q_linear_conv", "q_linear_mat_mul",
      "quantize_linear"}},
    {kClassical,
     {"array_feature_extractor", "feature_vectorizer", "imputer", "label_encoder",
      "linear_classifier", "linear_regressor", "normalizer", "one_hot_encoder", "scaler",
      "svm_classifier", "svm_regressor", "tree_ensemble", "tree_ensemble_classifier",
      "tree_ensemble_regressor"}},
    {kText,
     {"cast_map", "dict_vectorizer", "image_decoder", "regex_full_match", "string_concat",
      "string_normalizer", "string_split", "tf_idf_vectorizer", "zip_map"}},
    {kServing,
     {"causal_conv_with_state", "group_query_attention", "linear_attention", "tensor_scatter"}},
    {kUpdate, {"adagrad", "adam", "momentum"}},
    {kSecond,
     {"batch_normalization_backward", "col2im_backward", "ctc_loss_backward", "cum_prod_backward",
      "det_backward", "gru_backward", "lstm_backward", "max_pool_backward", "resize_backward",
      "rnn_backward"}},
    {kSequence,
     {"concat_from_sequence", "optional", "optional_get_element", "sequence_at",
      "sequence_construct", "sequence_erase", "sequence_insert", "sequence_map",
      "split_to_sequence"}},
    {kSampled, {"deform_conv", "grid_sample", "max_roi_pool", "roi_align"}},
    {kLate, {"all_reduce_finish", "all_reduce_start", "fused"}},
    {kBits, {"bit_cast"}},
};

}  // namespace

std::string_view no_gradient_reason(const Op& op) {
  static const auto reasons = [] {
    std::unordered_map<std::string_view, std::string_view> out;
    for (const Reason& reason : kReasons)
      for (const std::string_view name : reason.ops) out[name] = reason.text;
    return out;
  }();
  const auto found = reasons.find(op.name);
  return found == reasons.end() ? std::string_view() : found->second;
}

}  // namespace dais
