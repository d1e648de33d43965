#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// The one door to oneDNN (libdnnl 2.6 or 3.x): convolution, deconvolution, matrix product and
/// their weight packing. The library is opened at the first call that needs it.
///
/// A kernel row describes its work in a plain struct and calls create() when it binds sizes: 0.2 to
/// 1 ms the first time, some 30 us when oneDNN finds the same code in its cache. create() answers
/// with a primitive or with the reason why oneDNN would be slow or wrong there. The primitive then
/// tells how much scratch memory to book, packs constant weights, and runs.
namespace dais::onednn {

/// Element types. `bf16` accumulates in f32, `s8` and `u8` in s32.
enum class Data : uint8_t { f32, bf16, f16, s32, s8, u8 };

size_t data_bytes(Data data);

/// Functions a post-op may apply to each element.
enum class Eltwise : uint8_t {
  relu,    ///< x > 0 ? x : alpha * x
  clip,    ///< min(max(x, alpha), beta)
  linear,  ///< alpha * x + beta
  tanh,
  logistic,      ///< 1 / (1 + exp(-x))
  gelu_erf,      ///< 0.5 * x * (1 + erf(x / sqrt(2)))
  gelu_tanh,     ///< the tanh approximation of gelu
  swish,         ///< x * logistic(alpha * x)
  hard_sigmoid,  ///< min(max(alpha * x + beta, 0), 1)
  hard_swish,    ///< x * min(max(x / 6 + 0.5, 0), 1)
  elu,           ///< x > 0 ? x : alpha * (exp(x) - 1)
  soft_plus,     ///< log(1 + exp(x))
  mish,          ///< x * tanh(soft_plus(x))
  abs,
  square,
  sqrt,
  exp,
  round,  ///< to the nearest integer, ties to even
};

/// One step applied to the accumulated result before it is stored; steps run in list order.
struct PostOp {
  enum class Kind : uint8_t { eltwise, sum, add, mul };

  Kind kind = Kind::eltwise;
  Eltwise eltwise = Eltwise::relu;
  float alpha = 0, beta = 0;  ///< parameters of `eltwise`; alpha is the scale of `sum`
  Data data = Data::f32;      ///< element type of the operand of `add` and `mul`
  std::vector<int64_t> dims;  ///< operand dims that broadcast to dst; empty: dims of dst
  bool per_channel = false;   ///< operand is one value per output channel (or column n)

  static PostOp apply(Eltwise function, float alpha = 0, float beta = 0);
  /// dst = result + scale * (what dst held before). At most one, and it reads dst's own type.
  static PostOp sum(float scale = 1);
  /// Adds or multiplies by a tensor given to run(); `dims` in logical order (N, C, spatial... or
  /// batch..., m, n), memory dense and in the layout of dst.
  static PostOp add(Data data, std::vector<int64_t> dims = {});
  static PostOp mul(Data data, std::vector<int64_t> dims = {});
  static PostOp add_per_channel(Data data = Data::f32);
  static PostOp mul_per_channel(Data data = Data::f32);

  bool reads_tensor() const { return kind == Kind::add || kind == Kind::mul; }
};

/// What follows the accumulation:
///   dst = saturate(round(post_ops(scale[c] * (acc + bias[c])))) + dst_zero_point
/// rounding ties to even; without quantised types neither scale nor zero point is given.
struct Epilogue {
  bool bias = false;           ///< one value per output channel (column n) is added
  Data bias_data = Data::f32;  ///< f32, bf16 (with bf16 weights) or s32 (with s8/u8 input)
  std::vector<float> scales;   ///< empty, one for all, or one per output channel
  int32_t dst_zero_point = 0;  ///< only with s8 or u8 dst
  std::vector<PostOp> post_ops;
};

/// Sliding window over one to three spatial dimensions; every vector has that many entries.
/// A dilation of 1 is dense, as in ONNX. Padding holds the real number zero.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads_begin, pads_end;
};

class Packed;

/// Convolution. src is (N, C, spatial...), weights (OC, C/groups, kernel...) dense row-major,
/// dst (N, OC, out spatial...).
struct ConvDesc {
  int64_t batch = 1, in_channels = 0, out_channels = 0, groups = 1;
  std::vector<int64_t> in_spatial;
  Window window;
  Data src = Data::f32, weights = Data::f32, dst = Data::f32;
  /// Memory order of src, dst and full-size post-op operands: true N, spatial..., C; false
  /// row-major.
  bool channels_last = false;
  /// Stored src values mean (value - src_zero_point). Non-zero ones may cost the fast kernels:
  /// fold them into the bias with zero_point_bias() where there is no padding.
  int32_t src_zero_point = 0;
  Epilogue epilogue;
  /// Allows Winograd's transform where it is likely to pay (f32, dense 3x3, stride 1, 48 channels
  /// or more, no sum nor full-size operand; oneDNN 2.x with AVX-512 has it): about 1.2 to 1.7 times
  /// as fast on one thread. Errors grow to about 1e-5 of the root mean square of dst. Activations
  /// keep their layout; scratch memory holds copies in oneDNN's.
  bool allow_winograd = false;
  /// Weights packed for another primitive: insist on their format, so that both share them.
  const Packed* share = nullptr;

  std::vector<int64_t> out_spatial() const;
};

/// Transposed convolution. src is (N, C, spatial...), weights (C, OC/groups, kernel...) dense
/// row-major, dst (N, OC, out_spatial...). `out_spatial` is stated, since strides leave it open:
/// pads_end follows from it and is ignored in `window`.
struct DeconvDesc {
  int64_t batch = 1, in_channels = 0, out_channels = 0, groups = 1;
  std::vector<int64_t> in_spatial, out_spatial;
  Window window;
  Data src = Data::f32, weights = Data::f32, dst = Data::f32;
  bool channels_last = false;
  Epilogue epilogue;
  const Packed* share = nullptr;
};

/// A matrix operand: `batch` dims before its matrix (each 1 or the product's), and strides in
/// elements for batch... and the two matrix dims. Empty strides mean dense, with the matrix stored
/// transposed if `transposed`. One of the two matrix strides must be 1.
struct MatrixDesc {
  Data data = Data::f32;
  std::vector<int64_t> batch;
  std::vector<int64_t> strides;
  bool transposed = false;
  int32_t zero_point = 0;  ///< stored values mean (value - zero_point); s8 and u8 only
};

/// C[batch, m, n] = epilogue(A[batch, m, k] * B[batch, k, n]). src is A, weights B, dst C.
struct MatmulDesc {
  int64_t m = 0, n = 0, k = 0;
  MatrixDesc a, b, c;   ///< c.batch is the product's; a and b have as many dims, or none
  bool pack_b = false;  ///< B is constant: run() takes it packed (then b.strides describe pack()'s)
  Epilogue epilogue;    ///< channels are the columns n
  const Packed* share = nullptr;
};

/// Weights in the private format of a primitive: aligned, immutable, shared by any number of
/// primitives and threads.
class Packed {
 public:
  ~Packed();
  size_t bytes() const;
  const void* data() const;

 private:
  friend class Primitive;
  friend struct Access;
  struct Body;
  explicit Packed(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

/// Pointers for one run. Null what the description does not use. `post` has one entry per post-op
/// that reads a tensor, in order.
struct Tensors {
  const void* src = nullptr;
  const Packed* packed = nullptr;  ///< packed weights...
  const void* weights = nullptr;   ///< ...or plain ones (matmul without pack_b)
  const void* bias = nullptr;
  void* dst = nullptr;
  std::span<const void* const> post;
  void* scratch = nullptr;  ///< scratch_bytes() bytes, 64-byte aligned
};

/// One compiled operation. Used by one thread at a time; runs on that thread's team, which for the
/// time of the call has the size it had at create().
class Primitive {
 public:
  ~Primitive();

  /// oneDNN's name of the code it chose, such as "brgconv:avx512_core".
  const std::string& implementation() const;
  size_t scratch_bytes() const;

  /// Whether run() takes Packed weights.
  bool packs() const;
  /// Copies plain weights into the private format. Throws Error(exhausted) without memory.
  std::shared_ptr<Packed> pack(const void* weights) const;
  /// The same into existing memory, for weights that change: no allocation by dais, no throw.
  /// False when the format differs.
  bool repack(const void* weights, Packed& packed) const noexcept;
  /// Whether weights packed by another primitive serve this one as they are.
  bool accepts(const Packed& packed) const noexcept;

  /// Neither throws nor allocates (oneDNN itself books a few small blocks). False only if oneDNN
  /// reports a failure. src, weights and dst must not overlap.
  bool run(const Tensors& tensors) noexcept;

 private:
  friend struct Access;
  struct Body;
  explicit Primitive(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

/// A primitive, or the reason why there is none.
struct Created {
  std::unique_ptr<Primitive> primitive;
  std::string reason;
  explicit operator bool() const { return primitive != nullptr; }
};

/// Builds a primitive for the calling thread's team. Refuses, with the reason, when libdnnl is
/// missing, the sizes are empty, integer sums would saturate on this processor, or only oneDNN's
/// reference loops or, for depthwise convolution, one tiny product per channel would serve.
/// Row-major convolution of one group is an im2col product in 2.x (implementation() says "gemm"):
/// about half as fast as channels-last except for 1x1.
Created create(const ConvDesc& desc);
Created create(const DeconvDesc& desc);
Created create(const MatmulDesc& desc);

/// The gradient of a convolution's weights from its src and the gradient of its dst, which lie in
/// the memory order of `forward`; weights' gradients are dense row-major. Neither packs nor fuses:
/// the description's epilogue must be empty. Used by one thread at a time.
class WeightsGradient {
 public:
  ~WeightsGradient();
  const std::string& implementation() const;
  size_t scratch_bytes() const;
  /// Neither throws nor allocates. False only if oneDNN reports a failure.
  bool run(const void* src, const void* diff_dst, void* diff_weights, void* scratch) noexcept;

 private:
  friend struct GradientAccess;
  struct Body;
  explicit WeightsGradient(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};
struct CreatedGradient {
  std::unique_ptr<WeightsGradient> primitive;
  std::string reason;
};
CreatedGradient create_weights_gradient(const ConvDesc& forward);

/// The reason create() would give, or an empty string; cheaper, as no code is generated.
std::string refusal(const ConvDesc& desc);
std::string refusal(const DeconvDesc& desc);
std::string refusal(const MatmulDesc& desc);

/// Bias (s32, one per output channel) that stands for a source zero point where no padding is read:
/// bias[c] - zero_point * sum(weights of c). Weights are s8, rows of `per_channel` values; `bias`
/// may be null.
std::vector<int32_t> zero_point_bias(const int8_t* weights, int64_t channels, int64_t per_channel,
                                     const int32_t* bias, int32_t zero_point);

/// Why oneDNN cannot be used at all in this process; empty when it can. Opens the library.
const std::string& unavailable();

/// Version of the opened library, such as "2.6.3"; empty when unavailable.
const std::string& version();

}  // namespace dais::onednn
