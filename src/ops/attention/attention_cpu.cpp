// Rows for attention and rotary embedding on f32. Binding only computes strides, so a cache that
// grows by one each step binds in microseconds.

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ops/attention/attend_cpu.h"
#include "ops/attention/attention.h"
#include "ops/strided.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

bool all_f32(const KernelQuery& query, size_t inputs) {
  for (size_t i = 0; i < inputs; ++i)
    if (query.node.has(i) && query.in_dtype(i) != DType::f32) return false;
  return query.out_dtype() == DType::f32;
}

/// [N, heads, L, size], or [N, L, heads * size].
struct HeadsOf {
  int64_t heads = 0, length = 0, size = 0;
  HeadStrides strides;
};
HeadsOf heads_of(const Shape& shape, int64_t heads) {
  HeadsOf out;
  if (shape.rank() == 4) {
    out = {shape[1], shape[2], shape[3], {}};
    out.strides = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3]};
  } else {
    out = {heads, shape[1], heads > 0 ? shape[2] / heads : 0, {}};
    out.strides = {shape[1] * shape[2], out.size, shape[2]};
  }
  return out;
}

int64_t room_of(const Sizes& sizes, size_t input) {
  return input < sizes.room.size() ? sizes.room[input] : 0;
}

class BoundAttention : public BoundKernel {
 public:
  BoundAttention(const AttendSizes& sizes, Isa isa, bool boolean, bool past, size_t outputs)
      : sizes_(sizes), attend_(isa, sizes), boolean_(boolean), has_past_(past), outputs_(outputs) {
    past_.assign(static_cast<size_t>(sizes.batch), sizes.past_capacity);
    const bool cached = past || outputs > 1;
    lines_ = sizes.batch * sizes.kv_heads * sizes.capacity;
    if (cached && outputs < 2) key_floats_ = lines_ * sizes.head;
    if (cached && outputs < 3) value_floats_ = lines_ * sizes.v_head;
  }

  size_t scratch_bytes() const override {
    return sizeof(float) *
           (attend_.scratch_floats() + static_cast<size_t>(key_floats_ + value_floats_));
  }

  Fault run(const Arguments& arguments) noexcept override {
    auto* scratch = static_cast<float*>(arguments.scratch);
    const auto in = [&](size_t i) {
      return i < arguments.in.size() ? static_cast<const float*>(arguments.in[i]) : nullptr;
    };
    AttendPointers p{.q = in(0), .k = in(1), .v = in(2)};
    if (has_past_) {
      p.past_k = in(4);
      p.past_v = in(5);
    }
    if (has_past_ || outputs_ > 1) {
      p.present_k = outputs_ > 1 ? static_cast<float*>(arguments.out[1]) : scratch;
      scratch += key_floats_;
      p.present_v = outputs_ > 2 ? static_cast<float*>(arguments.out[2]) : scratch;
      scratch += value_floats_;
    }
    if (boolean_)
      p.allowed = static_cast<const uint8_t*>(arguments.in[3]);
    else
      p.mask = in(3);
    p.past = past_.data();
    p.y = static_cast<float*>(arguments.out[0]);
    attend_.run(p, scratch);
    return {};
  }

 private:
  AttendSizes sizes_;
  Attend attend_;
  bool boolean_, has_past_;
  size_t outputs_;
  std::vector<int64_t> past_;
  int64_t lines_ = 0, key_floats_ = 0, value_floats_ = 0;
};

/// A kernel that only remembers its node and level.
template <typename Derived>
class NodeKernel : public Kernel {
 public:
  NodeKernel(const Node& node, Isa isa) : node_(node), isa_(isa) {}
  static std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
    return std::make_unique<Derived>(query.node, query.isa);
  }

 protected:
  const Node& node_;
  Isa isa_;
};

Verdict accepts_attention(const KernelQuery& query) {
  const Node& node = query.node;
  const bool boolean = query.in_dtype(3) == DType::boolean;
  if (node.has(6)) return no("valid lengths are given at run time");
  if (node.outs.size() > 3) return no("the scores are wanted");
  if (!all_f32(query, 3) || (node.has(4) && query.in_dtype(4) != DType::f32))
    return no("an element type other than f32");
  if (node.has(3) && !boolean && query.in_dtype(3) != DType::f32) return no("a mask of other type");
  return yes();
}

class AttentionKernel : public NodeKernel<AttentionKernel> {
 public:
  using NodeKernel::NodeKernel;

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const auto& attrs = *node_.as<Attention>();
    const HeadsOf q = heads_of(sizes.in[0], attrs.q_num_heads);
    const HeadsOf k = heads_of(sizes.in[1], attrs.kv_num_heads);
    const HeadsOf v = heads_of(sizes.in[2], attrs.kv_num_heads);
    AttendSizes s{.batch = sizes.in[0][0],
                  .q_heads = q.heads,
                  .kv_heads = k.heads,
                  .head = q.size,
                  .v_head = v.size,
                  .q_length = q.length,
                  .new_length = k.length,
                  .q = q.strides,
                  .k = k.strides,
                  .v = v.strides};
    const bool past = node_.has(4);
    if (past) {
      s.past_capacity = sizes.in[4][2];
      s.key_room = room_of(sizes, 4);
      s.value_room = room_of(sizes, 5);
    }
    s.capacity = s.total = s.past_capacity + s.new_length;
    s.y = heads_of(sizes.out[0], q.heads).strides;
    s.scale = attrs.scale.value_or(1 / std::sqrt(static_cast<float>(q.size)));
    s.softcap = attrs.softcap;
    s.causal = attrs.is_causal;
    const bool fits = k.heads > 0 && q.heads % k.heads == 0 && k.size == q.size &&
                      v.heads == k.heads && v.length == k.length && sizes.in[1][0] == s.batch &&
                      sizes.in[2][0] == s.batch;
    const Shape cache{s.batch, s.kv_heads, s.past_capacity, s.head};
    const Shape values{s.batch, s.kv_heads, s.past_capacity, s.v_head};
    if (!fits || (past && !(sizes.in[4] == cache && sizes.in[5] == values))) return nullptr;
    if (node_.has(3) && !set_mask(sizes.in[3], s)) return nullptr;
    const bool boolean = node_.has(3) && node_.in[3]->type.dtype == DType::boolean;
    return std::make_unique<BoundAttention>(s, isa_, boolean, past, node_.outs.size());
  }

 private:
  static bool set_mask(const Shape& mask, AttendSizes& s) {
    if (mask.rank() < 1 || mask.rank() > 4 || mask.back() > s.total) return false;
    s.mask_width = mask.back();
    const Shape wanted{s.batch, s.q_heads, s.q_length, s.mask_width};
    for (size_t axis = 0; axis < mask.rank(); ++axis)
      if (mask[axis] != 1 && mask[axis] != wanted[4 - mask.rank() + axis]) return false;
    const Strides strides = broadcast_strides(mask, wanted);
    std::copy_n(strides.begin(), 3, s.mask_strides);
    return true;
  }
};

class BoundGrouped : public BoundKernel {
 public:
  BoundGrouped(const Node& node, Isa isa, const AttendSizes& sizes, const Shape& tables)
      : node_(node), isa_(isa), sizes_(sizes), tables_(tables), attend_(isa, sizes) {
    past_.resize(static_cast<size_t>(sizes.batch));
    const auto& attrs = *node.as<GroupQueryAttention>();
    if (attrs.do_rotary) q_floats_ = sizes.batch * sizes.q_length * sizes.q_heads * sizes.head;
    if (node.outs.size() < 2)
      cache_floats_ = sizes.batch * sizes.kv_heads * sizes.capacity * sizes.head;
  }

  size_t scratch_bytes() const override {
    return sizeof(float) *
           (attend_.scratch_floats() + static_cast<size_t>(q_floats_ + 2 * cache_floats_));
  }

  Fault run(const Arguments& arguments) noexcept override {
    if (const Fault fault = read_past(arguments); fault.problem) return fault;
    const auto& attrs = *node_.as<GroupQueryAttention>();
    const auto in = [&](size_t i) {
      return i < arguments.in.size() ? static_cast<const float*>(arguments.in[i]) : nullptr;
    };
    auto* scratch = static_cast<float*>(arguments.scratch);
    AttendPointers p{.q = in(0), .k = in(1), .v = in(2), .past_k = in(3), .past_v = in(4)};
    if (!node_.has(1)) {
      p.k = p.q + sizes_.q_heads * sizes_.head;
      p.v = p.k + sizes_.kv_heads * sizes_.head;
    }
    if (attrs.do_rotary) {
      p.cos = in(7);
      p.sin = in(8);
      p.half = tables_[1];
      p.interleaved = attrs.rotary_interleaved;
      rotate_queries(p, scratch);
      p.q = scratch;
      scratch += q_floats_;
    }
    p.present_k = cache_floats_ == 0 ? static_cast<float*>(arguments.out[1]) : scratch;
    scratch += cache_floats_;
    p.present_v = node_.outs.size() > 2 ? static_cast<float*>(arguments.out[2]) : scratch;
    scratch += cache_floats_;
    p.past = past_.data();
    p.y = static_cast<float*>(arguments.out[0]);
    attend_.run(p, scratch);
    return {};
  }

 private:
  Fault read_past(const Arguments& arguments) {
    const bool wide = node_.in[5]->type.dtype == DType::i64;
    const int64_t total = node_.in[6]->type.dtype == DType::i64
                              ? *static_cast<const int64_t*>(arguments.in[6])
                              : *static_cast<const int32_t*>(arguments.in[6]);
    const bool prompt = sizes_.q_length == total;
    if (total < sizes_.q_length || total > sizes_.total)
      return {"total_sequence_length does not fit the query and the cache", total};
    for (int64_t n = 0; n < sizes_.batch; ++n) {
      const int64_t last = wide ? static_cast<const int64_t*>(arguments.in[5])[n]
                                : static_cast<const int32_t*>(arguments.in[5])[n];
      const int64_t past = prompt ? 0 : last + 1 - sizes_.q_length;
      if (past < 0 || past + sizes_.q_length > total)
        return {"seqlens_k does not fit the query and total_sequence_length", last};
      if (node_.as<GroupQueryAttention>()->do_rotary && past + sizes_.q_length > tables_[0])
        return {"a position is outside the rotary tables", past + sizes_.q_length - 1};
      past_[static_cast<size_t>(n)] = past;
    }
    return {};
  }

  /// To [batch, length, heads, size].
  void rotate_queries(const AttendPointers& p, float* to) const {
    const AttendSizes& s = sizes_;
    const RotateHead rotate = rotate_head_loop(isa_);
    parallel_for(s.batch * s.q_length, std::max<int64_t>(1, 8192 / (s.q_heads * s.head + 1)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t token = first; token < last; ++token) {
                     const int64_t position =
                         past_[static_cast<size_t>(token / s.q_length)] + token % s.q_length;
                     for (int64_t h = 0; h < s.q_heads; ++h)
                       rotate(p.q + token * q_row_ + h * s.head, p.half, s.head, p.interleaved,
                              p.cos + position * p.half, p.sin + position * p.half,
                              to + (token * s.q_heads + h) * s.head);
                   }
                 });
  }

 public:
  int64_t q_row_ = 0;  ///< elements between tokens of the given queries

 private:
  const Node& node_;
  Isa isa_;
  AttendSizes sizes_;
  Shape tables_;
  Attend attend_;
  std::vector<int64_t> past_;
  int64_t q_floats_ = 0, cache_floats_ = 0;
};

Verdict accepts_grouped(const KernelQuery& query) {
  const Node& node = query.node;
  if (!all_f32(query, 5)) return no("an element type other than f32");
  for (size_t i : {9, 10, 11})
    if (node.has(i)) return no("positions, a bias or sinks are given");
  if (query.attrs<GroupQueryAttention>().smooth_softmax) return no("a smooth softmax");
  if (node.has(3) != node.has(4)) return no("one of two caches");
  if (node.outs.size() == 2) return no("one of two present outputs");
  for (size_t i : {7, 8})
    if (query.attrs<GroupQueryAttention>().do_rotary && query.in_dtype(i) != DType::f32)
      return no("rotary tables of another type");
  for (size_t i : {5, 6})
    if (query.in_dtype(i) != DType::i32 && query.in_dtype(i) != DType::i64)
      return no("lengths of another type");
  return yes();
}

class GroupedKernel : public NodeKernel<GroupedKernel> {
 public:
  using NodeKernel::NodeKernel;

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const auto& attrs = *node_.as<GroupQueryAttention>();
    const Shape& q = sizes.in[0];
    const bool joined = !node_.has(1);
    const int64_t parts = attrs.num_heads + (joined ? 2 * attrs.kv_num_heads : 0);
    // Without present outputs the total length is known only to the reference.
    if (sizes.out.size() < 2 || q[2] % parts != 0) return nullptr;
    const int64_t size = q[2] / parts, kv_row = joined ? q[2] : attrs.kv_num_heads * size;
    AttendSizes s{.batch = q[0],
                  .q_heads = attrs.num_heads,
                  .kv_heads = attrs.kv_num_heads,
                  .head = size,
                  .v_head = size,
                  .q_length = q[1],
                  .new_length = q[1]};
    s.q = {q[1] * q[2], size, q[2]};
    s.k = s.v = {q[1] * kv_row, size, kv_row};
    s.y = {q[1] * s.q_heads * size, size, s.q_heads * size};
    if (attrs.do_rotary) s.q = s.y;
    s.capacity = s.total = sizes.out[1][2];
    if (node_.has(3)) {
      s.past_capacity = sizes.in[3][2];
      s.key_room = room_of(sizes, 3);
      s.value_room = room_of(sizes, 4);
    }
    s.scale = attrs.scale != 0 ? attrs.scale : 1 / std::sqrt(static_cast<float>(size));
    s.softcap = attrs.softcap;
    s.causal = true;
    s.window = attrs.local_window_size;
    const Shape wanted{s.batch, q[1], attrs.kv_num_heads * size};
    if (!joined && !(sizes.in[1] == wanted && sizes.in[2] == wanted)) return nullptr;
    if (sizes.in[5].elements() != s.batch || sizes.in[6].elements() != 1) return nullptr;
    const Shape tables = attrs.do_rotary ? sizes.in[7] : Shape{0, 0};
    if (tables.rank() != 2 || 2 * tables[1] > size || (attrs.do_rotary && !(sizes.in[8] == tables)))
      return nullptr;
    auto bound = std::make_unique<BoundGrouped>(node_, isa_, s, tables);
    bound->q_row_ = q[2];
    return bound;
  }
};

class BoundRotary : public BoundKernel {
 public:
  BoundRotary(const Node& node, Isa isa, const Sizes& sizes) : node_(node), isa_(isa) {
    const auto& attrs = *node.as<RotaryEmbedding>();
    const Shape& x = sizes.in[0];
    half_ = sizes.in[1].back();
    batch_ = x[0];
    table_rows_ = sizes.in[1][0];
    const int64_t heads = x.rank() == 4         ? x[1]
                          : attrs.num_heads > 0 ? attrs.num_heads
                                                : x[2] / std::max<int64_t>(2 * half_, 1);
    x_ = heads_of(x, heads);
    positions_ = node.has(3) ? sizes.in[3].elements() : 0;
  }

  bool fits(const Sizes& sizes) const {
    const bool tables = sizes.in[1] == sizes.in[2] && 2 * half_ <= x_.size &&
                        sizes.in[1].rank() == (node_.has(3) ? 2u : 3u);
    if (!tables || x_.heads <= 0 || x_.size <= 0) return false;
    if (node_.has(3)) return positions_ == 1 || positions_ == batch_ * x_.length;
    return sizes.in[1][0] == batch_ && sizes.in[1][1] == x_.length;
  }

  Fault run(const Arguments& arguments) noexcept override {
    const bool given = node_.has(3);
    const bool one = given && positions_ == 1 && batch_ * x_.length != 1;
    const bool wide = given && node_.in[3]->type.dtype == DType::i64;
    const auto position = [&](int64_t token) {
      if (!given) return token;
      const int64_t at = one ? 0 : token;
      const int64_t number = wide ? static_cast<const int64_t*>(arguments.in[3])[at]
                                  : static_cast<const int32_t*>(arguments.in[3])[at];
      return one ? number + token % x_.length : number;
    };
    const int64_t tokens = batch_ * x_.length;
    for (int64_t token = 0; given && token < tokens; ++token)
      if (const int64_t at = position(token); at < 0 || at >= table_rows_)
        return {"a position is outside the tables", at};
    const auto* x = static_cast<const float*>(arguments.in[0]);
    const auto* cos = static_cast<const float*>(arguments.in[1]);
    const auto* sin = static_cast<const float*>(arguments.in[2]);
    auto* y = static_cast<float*>(arguments.out[0]);
    const RotateHead rotate = rotate_head_loop(isa_);
    const bool interleaved = node_.as<RotaryEmbedding>()->interleaved;
    const int64_t grain = std::max<int64_t>(1, 8192 / (x_.heads * x_.size));
    parallel_for(tokens, grain, [&](int64_t first, int64_t last) {
      for (int64_t token = first; token < last; ++token) {
        const int64_t row = position(token) * half_;
        const int64_t base =
            token / x_.length * x_.strides.batch + token % x_.length * x_.strides.row;
        for (int64_t h = 0; h < x_.heads; ++h) {
          const int64_t at = base + h * x_.strides.head;
          rotate(x + at, half_, x_.size, interleaved, cos + row, sin + row, y + at);
        }
      }
    });
    return {};
  }

 private:
  const Node& node_;
  Isa isa_;
  HeadsOf x_;
  int64_t half_ = 0, batch_ = 0, table_rows_ = 0, positions_ = 0;
};

Verdict accepts_rotary(const KernelQuery& query) {
  if (!all_f32(query, 3)) return no("an element type other than f32");
  const DType positions = query.in_dtype(3);
  const bool known = positions == DType::i64 || positions == DType::i32;
  return !query.node.has(3) || known ? yes() : no("positions of another type");
}

class RotaryKernel : public NodeKernel<RotaryKernel> {
 public:
  using NodeKernel::NodeKernel;

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape& x = sizes.in[0];
    if (x.rank() != 3 && x.rank() != 4) return nullptr;
    const auto& attrs = *node_.as<RotaryEmbedding>();
    auto bound = std::make_unique<BoundRotary>(node_, isa_, sizes);
    const int64_t rotated = attrs.rotary_embedding_dim;
    const int64_t size = x.rank() == 4 ? x[3] : 0;
    const int64_t half = sizes.in[1].back();
    if (rotated == 0 ? (size > 0 && 2 * half != size) : 2 * half != rotated) return nullptr;
    return bound->fits(sizes) ? std::move(bound) : nullptr;
  }
};

/// Present keys and values continue the past ones, whose inputs are `first` and the next.
template <size_t first>
bool continues_past(const Node&, size_t output, size_t input) {
  return output > 0 && output < 3 && input == first + output - 1;
}
template <size_t first>
bool grows_past(const Node& node, size_t output, size_t input, size_t axis) {
  return axis == 2 && continues_past<first>(node, output, input);
}

}  // namespace

namespace ops {
void register_attention_cpu(Kernels& kernels) {
  kernels.add({.name = "attention",
               .op = &Attention::op,
               .accepts = accepts_attention,
               .prepare = AttentionKernel::prepare,
               .grows = grows_past<4>});
  kernels.add({.name = "grouped_attention",
               .op = &GroupQueryAttention::op,
               .accepts = accepts_grouped,
               .prepare = GroupedKernel::prepare,
               .overwrites = continues_past<3>,
               .grows = grows_past<3>});
  kernels.add({.name = "rotary",
               .op = &RotaryEmbedding::op,
               .accepts = accepts_rotary,
               .prepare = RotaryKernel::prepare,
               .overwrites = first_over_first});
}
}  // namespace ops
}  // namespace dais
