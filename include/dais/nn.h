#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace dais {
class Graph;
class Value;
}  // namespace dais

/// Networks of one's own: each layer function adds nodes and initial weights to a Network and gives
/// the value that it computes. What results is an ordinary ONNX model in its inference form; the
/// trainer turns dropout and batch statistics on, and adds the loss.
namespace dais::nn {

struct NetworkBody;

/// One size for every spatial axis, or one per axis: 3, {41, 11}.
class Sizes {
 public:
  Sizes(int64_t all) : values_{all} {}
  Sizes(std::initializer_list<int64_t> each) : values_(each) {}
  Sizes(std::vector<int64_t> each) : values_(std::move(each)) {}
  /// One per axis; throws `invalid_argument` when there are others than one or `axes` of them.
  std::vector<int64_t> along(size_t axes) const;

 private:
  std::vector<int64_t> values_;
};

/// A size of an input: a number, or the name of an open one: {"batch", 3, 32, 32}.
struct Extent {
  Extent(int64_t number) : size(number) {}
  Extent(const char* name) : symbol(name) {}
  int64_t size = -1;
  std::string symbol = {};
};

/// How the elements of a parameter are drawn. A scale is divided by the square root of the fan:
/// how many elements go into (or come out of) one element of the layer.
struct Init {
  enum class Kind : uint8_t { constant, uniform, normal, truncated_normal };
  enum class Fan : uint8_t { none, in, out, mean };
  Kind kind = Kind::constant;
  double scale = 0;  ///< constant: the value; uniform: bound; normal: deviation
  Fan fan = Fan::none;

  static Init constant(double value) { return {Kind::constant, value, Fan::none}; }
  static Init uniform(double bound) { return {Kind::uniform, bound, Fan::none}; }
  static Init normal(double deviation) { return {Kind::normal, deviation, Fan::none}; }
  /// Redrawn beyond two deviations.
  static Init truncated_normal(double deviation) {
    return {Kind::truncated_normal, deviation, Fan::none};
  }
  /// Uniform within 1 / sqrt(fan in): the default of linear layers and convolutions.
  static Init fan_in_uniform() { return {Kind::uniform, 1, Fan::in}; }
  static Init kaiming_normal(Fan fan = Fan::in) { return {Kind::normal, 1.4142135623730951, fan}; }
  static Init kaiming_uniform(Fan fan = Fan::in) { return {Kind::uniform, 2.449489742783178, fan}; }
  static Init xavier_normal() { return {Kind::normal, 1, Fan::mean}; }
  static Init xavier_uniform() { return {Kind::uniform, 1.7320508075688772, Fan::mean}; }
};

class Network;

/// A value of the network that is being built: an input, a parameter, or what a layer gives. Valid
/// as long as its Network. Its first axis is the batch, unless a function says otherwise.
class Value {
 public:
  size_t rank() const;
  /// Size of an axis, negative ones counted from the end. Throws `invalid_argument` for an axis
  /// that is not there or is open.
  int64_t size(int64_t axis) const;
  std::vector<int64_t> shape() const;  ///< -1 where open

 private:
  friend struct NetworkBody;
  Value(NetworkBody* body, dais::Value* value) : body_(body), value_(value) {}
  NetworkBody* body_;
  dais::Value* value_;
};

/// A trainable tensor as it stands in the file.
struct ParameterInfo {
  std::string name;
  std::vector<int64_t> shape;
  int64_t elements = 0;
};

struct WriteOptions {
  int64_t opset = 23;          ///< of ai.onnx
  bool external_data = false;  ///< weights in a second file beside the model: PATH.data
};

/// A network under construction. Movable; used by one thread at a time. Initial weights are a
/// function of the seed and the parameter's name alone, so that a layer more or less leaves those
/// of the others as they are.
class Network {
 public:
  explicit Network(std::string name, uint64_t seed = 0);
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  /// The usual inputs: "image" [batch, channels, height, width] and "tokens" [batch, length] (i64).
  Value image(int64_t channels, int64_t height, int64_t width);
  Value tokens();
  Value input(std::string name, const std::vector<Extent>& shape, DType dtype = DType::f32);
  /// A trainable tensor of one's own. Fans are those of a matrix [in, out] or of a filter
  /// [out, in, space...].
  Value parameter(const std::string& name, const std::vector<int64_t>& shape, Init init);
  /// A tensor that stays as it is while training.
  Value constant(Tensor tensor, const std::string& name = {});
  void output(std::string name, Value value);
  /// A remark in the file (ONNX metadata), such as "dais.task" = "classification".
  void note(std::string key, std::string text);

  /// In the order in which they were made.
  std::vector<ParameterInfo> parameters() const;
  int64_t parameter_count() const;
  size_t node_count() const;

  /// Writes the ONNX file in one atomic step. Throws what the file system and the format forbid.
  void save(const std::filesystem::path& path, const WriteOptions& options = {});
  /// The same as bytes, for Model::parse.
  std::vector<uint8_t> onnx(const WriteOptions& options = {});

  /// The graph with its initial weights; for the engine's own use.
  Graph& graph();

 private:
  friend class Scope;
  std::unique_ptr<NetworkBody> body_;
};

/// While it lives, names of new parameters begin with `name` and a dot.
class Scope {
 public:
  Scope(const Network& network, std::string_view name);
  Scope(Value value, std::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  NetworkBody* body_;
  size_t length_;
};

// Layers. Where a name is left out, layers of a scope are numbered by kind: conv1, conv2, linear1.

struct LinearOptions {
  bool bias = true;
  std::optional<Init> init = {}, bias_init = {};  ///< default: fan_in_uniform for both
  std::string name = {};
};
/// Along the last axis. Weights: [width, in] of matrices, [in, width] of inputs with more axes.
Value linear(Value x, int64_t width, const LinearOptions& options = {});

struct ConvOptions {
  Sizes kernel = 3, stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::optional<Init> init = {}, bias_init = {};
  std::string name = {};
};
/// x is [batch, in, space...].
Value conv(Value x, int64_t channels, const ConvOptions& options = {});
/// The transpose of such a convolution: a stride enlarges. Dilation is not used.
Value conv_transpose(Value x, int64_t channels, const ConvOptions& options);

struct NormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< batch_norm: share of the new batch in the running statistics
  double scale = 1;       ///< initial one
  std::string name = {};
};
Value batch_norm(Value x, const NormOptions& options = {});
Value group_norm(Value x, int64_t groups, const NormOptions& options = {});
Value layer_norm(Value x, const NormOptions& options = {});  ///< along the last axis
Value rms_norm(Value x, const NormOptions& options = {});    ///< along the last axis

Value relu(Value x);
Value relu6(Value x);
Value leaky_relu(Value x, double slope = 0.01);
Value gelu(Value x);
Value silu(Value x);
Value sigmoid(Value x);
Value tanh(Value x);
Value exp(Value x);
Value hard_swish(Value x);
Value softmax(Value x, int64_t axis = -1);

struct PoolOptions {
  Sizes kernel = 2;
  std::optional<Sizes> stride = {};  ///< default: the kernel
  Sizes padding = 0;
  bool ceil = false;  ///< a last window that is only partly filled counts
};
Value max_pool(Value x, const PoolOptions& options = {});
Value average_pool(Value x, const PoolOptions& options = {});
/// The mean over all spatial axes: [batch, channels], or with `keep` [batch, channels, 1...].
Value global_average_pool(Value x, bool keep = false);
/// Nothing at inference; nothing at all for a ratio of 0.
Value dropout(Value x, double ratio);
Value upsample(Value x, int64_t factor, bool linear = false);

struct EmbeddingOptions {
  std::optional<Init> init = {};  ///< default: normal(1)
  std::string name = {};
};
/// Integers to rows of a table [count, width].
Value embedding(Value indices, int64_t count, int64_t width, const EmbeddingOptions& options = {});

/// Rows of a table, such as a parameter that another layer uses as well.
Value lookup(Value table, Value indices);

struct RecurrentOptions {
  int64_t layers = 1;
  bool bidirectional = false;
  double dropout = 0;       ///< between layers
  bool time_first = false;  ///< x and the result are [length, batch, ...]
  std::string name = {};
};
/// x is [batch, length, in]; the result [batch, length, hidden], twice as wide when bidirectional.
Value lstm(Value x, int64_t hidden, const RecurrentOptions& options = {});
Value gru(Value x, int64_t hidden, const RecurrentOptions& options = {});

struct AttentionOptions {
  int64_t heads = 1;
  bool causal = false;
  std::optional<Value> mask = {};  ///< boolean, broadcast to [batch, heads, queries, keys]
};
/// Scaled dot-product attention of [batch, length, width] values.
Value attention(Value query, Value key, Value value, const AttentionOptions& options);

struct TransformerOptions {
  int64_t heads = 1;
  int64_t hidden = 0;  ///< of the feed-forward part; 0: four times the width
  bool causal = false;
  bool norm_first = true;
  double dropout = 0;
  double epsilon = 1e-5;
  std::optional<Value> mask = {};
  std::optional<Init> init = {};           ///< of all matrices; biases are then zero
  std::optional<Init> residual_init = {};  ///< of those whose result joins the residual stream
};
/// Self-attention and two linear layers around GELU, each added to its input.
Value transformer_block(Value x, const TransformerOptions& options);

// Shapes and arithmetic. Operands broadcast as in ONNX.

Value flatten(Value x);  ///< [batch, everything else]
/// 0 keeps the size at that place, -1 stands for what is left.
Value reshape(Value x, const std::vector<int64_t>& sizes);
Value transpose(Value x, const std::vector<int64_t>& order);
Value concat(const std::vector<Value>& parts, int64_t axis);
/// Elements [begin, end) of an axis; negative bounds count from its end.
Value slice(Value x, int64_t axis, int64_t begin, int64_t end);
/// 0, 1, 2, ... (i64): one for each place along an axis of x, which may be open.
Value places_along(Value x, int64_t axis);
std::vector<Value> split(Value x, int64_t axis, const std::vector<int64_t>& sizes);
Value squeeze(Value x, int64_t axis);
Value unsqueeze(Value x, int64_t axis);
/// Repeats x [1, ...] to the batch of `like`.
Value repeat_batch(Value x, Value like);
Value mean(Value x, const std::vector<int64_t>& axes, bool keep = false);
Value sum(Value x, const std::vector<int64_t>& axes, bool keep = false);
Value matmul(Value a, Value b);
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator+(Value a, double b);
Value operator*(Value a, double b);
/// Boolean: where integers are a number; where either of two booleans is true.
Value equals(Value integers, int64_t value);
Value either(Value a, Value b);
Value negate(Value boolean);
Value to_float(Value x);
Value maximum(Value a, double b);

}  // namespace dais::nn
