// TopK on numbers of up to 32 bits: value and position become one 64-bit key whose order is the
// result's, so that selecting and sorting compare single integers.
#include <algorithm>
#include <cstring>

#include "base/threads.h"
#include "ops/strided.h"
#include "ops/topk/topk.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

constexpr int64_t kParallelElements = 16384;

/// Unsigned numbers in the same order; NaN above all.
template <typename T>
uint32_t rank_of(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<uint32_t>(static_cast<int64_t>(value) +
                                 (std::is_signed_v<T> ? int64_t{1} << 31 : 0));
  } else {
    // Zeros of both signs are equal.
    const float number = static_cast<float>(value) + 0.0F;
    if (number != number) return 0xFFFFFFFFU;
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits >> 31 ? ~bits : bits | 0x80000000U;
  }
}

template <typename T>
class BoundTopK : public BoundKernel {
 public:
  BoundTopK(const AxisSplit& split, int64_t k, bool largest)
      : split_(split), k_(k), flip_(largest ? 0xFFFFFFFFU : 0), threads_(team_size()) {}

  size_t scratch_bytes() const override {
    return sizeof(uint64_t) * static_cast<size_t>(threads_ * split_.size);
  }

  Fault run(const Arguments& arguments) noexcept override {
    const auto* k = static_cast<const int64_t*>(arguments.in[1]);
    if (*k != k_) return {"k is not what the sizes promise", *k};
    const int64_t lines = split_.outer * split_.inner;
    const int64_t parts =
        std::clamp<int64_t>(std::min(lines, lines * split_.size / kParallelElements), 1, threads_);
    parallel_for(parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part)
        for (int64_t line = lines * part / parts; line < lines * (part + 1) / parts; ++line)
          run_line(arguments, line, static_cast<uint64_t*>(arguments.scratch) + part * split_.size);
    });
    return {};
  }

 private:
  void run_line(const Arguments& arguments, int64_t line, uint64_t* keys) const {
    const int64_t inner = split_.inner, outer = line / inner, at = line % inner;
    const T* x = static_cast<const T*>(arguments.in[0]) + outer * split_.size * inner + at;
    const int64_t to = outer * k_ * inner + at;
    auto* values = static_cast<T*>(arguments.out[0]) + to;
    auto* places = arguments.out.size() > 1 ? static_cast<int64_t*>(arguments.out[1]) : nullptr;
    const uint64_t* chosen = select(x, keys);
    for (int64_t i = 0; i < k_; ++i) {
      const auto place = static_cast<int64_t>(chosen[i] & 0xFFFFFFFFU);
      values[i * inner] = x[place * inner];
      if (places) places[to + i * inner] = place;
    }
  }

  uint64_t key(const T* x, int64_t i) const {
    return static_cast<uint64_t>(rank_of(x[i * split_.inner]) ^ flip_) << 32 |
           static_cast<uint64_t>(i);
  }

  /// The keys of the first k in order.
  const uint64_t* select(const T* x, uint64_t* keys) const {
    const int64_t n = split_.size;
    // A few of many: a heap of the best so far, whose worst one most elements do not beat.
    if (k_ * 16 < n) {
      for (int64_t i = 0; i < k_; ++i) keys[i] = key(x, i);
      std::make_heap(keys, keys + k_);
      for (int64_t i = k_; i < n && k_ > 0; ++i) {
        const uint64_t next = key(x, i);
        if (next >= keys[0]) continue;
        std::pop_heap(keys, keys + k_);
        keys[k_ - 1] = next;
        std::push_heap(keys, keys + k_);
      }
      std::sort_heap(keys, keys + k_);
      return keys;
    }
    for (int64_t i = 0; i < n; ++i) keys[i] = key(x, i);
    if (k_ < n) std::nth_element(keys, keys + k_, keys + n);
    std::sort(keys, keys + k_);
    return keys;
  }

  AxisSplit split_;
  int64_t k_;
  uint32_t flip_;
  int threads_;
};

using KeyTypes = DTypes<DType::f32, DType::f16, DType::bf16, DType::i32, DType::i16, DType::i8,
                        DType::u32, DType::u16, DType::u8>;

class TopKKernel : public Kernel {
 public:
  explicit TopKKernel(const Node& node) : node_(node) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const auto& attrs = *node_.as<TopK>();
    const Shape& x = sizes.in[0];
    if (x.rank() == 0 || sizes.in[1].elements() != 1) return nullptr;
    const size_t axis = normalize_axis(attrs.axis, x.rank());
    const AxisSplit split = split_axis(x, axis);
    const int64_t k = sizes.out[0][axis];
    if (k > split.size || split.size > int64_t{0xFFFFFFFF}) return nullptr;
    std::unique_ptr<BoundKernel> out;
    visit_dtype<KeyTypes>(node_.in[0]->type.dtype, [&]<typename T>() {
      out = std::make_unique<BoundTopK<T>>(split, k, attrs.largest);
    });
    return out;
  }

 private:
  const Node& node_;
};

Verdict accepts(const KernelQuery& query) {
  if (!KeyTypes::contains(query.in_dtype(0))) return no("elements longer than 4 bytes");
  return query.in_dtype(1) == DType::i64 ? yes() : no("k of a rare type");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<TopKKernel>(query.node);
}

}  // namespace

namespace ops {
void register_topk_cpu(Kernels& kernels) {
  kernels.add({.name = "top_k/keys", .op = &TopK::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
