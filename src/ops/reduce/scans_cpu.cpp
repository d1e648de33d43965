// Rows of what looks along one axis: running sums and products, positions of extreme elements.
#include <algorithm>
#include <type_traits>

#include "base/threads.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/rows_cpu.h"
#include "ops/strided.h"

namespace dais {

#define DAIS_ARG(isa)                                                                     \
  namespace isa {                                                                         \
  int64_t arg_along(const float*, int64_t, bool, bool);                                   \
  void arg_across(const float*, int64_t, int64_t, int64_t, bool, bool, float*, int32_t*); \
  }
DAIS_ARG(plain)
DAIS_ARG(avx2)
DAIS_ARG(avx512)
#undef DAIS_ARG

namespace {

constexpr int64_t kColumns = 64;
constexpr int64_t kParallelElements = 32768;

/// Calls body(outer, first column, columns) for pieces of the space on the pool.
template <typename Body>
void for_columns(const AxisSplit& split, Body&& body) {
  const int64_t pieces = (split.inner + kColumns - 1) / kColumns;
  const int64_t each = std::max<int64_t>(1, split.size * std::min(split.inner, kColumns));
  parallel_for(split.outer * pieces, std::max<int64_t>(1, kParallelElements / each),
               [&](int64_t first, int64_t last) {
                 for (int64_t unit = first; unit < last; ++unit) {
                   const int64_t column = unit % pieces * kColumns;
                   body(unit / pieces, column, std::min(kColumns, split.inner - column));
                 }
               });
}

struct Running {
  bool product = false, exclusive = false, reverse = false;
};

/// Floats run in double, integers in wrapping 64 bits.
template <typename T>
void run_scan(const AxisSplit& split, const Running& how, const T* x, T* y) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  for_columns(split, [&](int64_t outer, int64_t column, int64_t width) {
    Wide totals[kColumns];
    std::fill_n(totals, width, static_cast<Wide>(how.product ? 1 : 0));
    for (int64_t k = 0; k < split.size; ++k) {
      const int64_t row = how.reverse ? split.size - 1 - k : k;
      const int64_t at = (outer * split.size + row) * split.inner + column;
      for (int64_t i = 0; i < width; ++i) {
        const Wide value = static_cast<Wide>(x[at + i]), total = totals[i];
        totals[i] = how.product ? total * value : total + value;
        y[at + i] = static_cast<T>(how.exclusive ? total : totals[i]);
      }
    }
  });
}

using ScanTypes = DTypes<DType::f32, DType::f64, DType::i32, DType::i64>;

class BoundScan : public BoundKernel {
 public:
  BoundScan(const Shape& shape, Running how, DType dtype, DType axis_dtype)
      : shape_(shape), how_(how), dtype_(dtype), axis_dtype_(axis_dtype) {}

  Fault run(const Arguments& arguments) noexcept override {
    const auto rank = static_cast<int64_t>(shape_.rank());
    int64_t axis = axis_dtype_ == DType::i64
                       ? *static_cast<const int64_t*>(arguments.in[1])
                       : int64_t{*static_cast<const int32_t*>(arguments.in[1])};
    if (axis < -rank || axis >= rank) return {"there is no such axis", axis};
    const AxisSplit split = split_axis(shape_, static_cast<size_t>(axis < 0 ? axis + rank : axis));
    visit_dtype<ScanTypes>(dtype_, [&]<typename T>() {
      run_scan(split, how_, static_cast<const T*>(arguments.in[0]),
               static_cast<T*>(arguments.out[0]));
    });
    return {};
  }

 private:
  Shape shape_;
  Running how_;
  DType dtype_, axis_dtype_;
};

class ScanKernel : public Kernel {
 public:
  explicit ScanKernel(const KernelQuery& query) : node_(query.node) {
    if (const auto* sum = node_.as<CumSum>()) how_ = {false, sum->exclusive, sum->reverse};
    if (const auto* product = node_.as<CumProd>())
      how_ = {true, product->exclusive, product->reverse};
  }
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    if (sizes.in[1].elements() != 1 || sizes.in[0].rank() == 0) return nullptr;
    return std::make_unique<BoundScan>(sizes.in[0], how_, node_.in[0]->type.dtype,
                                       node_.in[1]->type.dtype);
  }

 private:
  const Node& node_;
  Running how_;
};

Verdict accepts_scan(const KernelQuery& query) {
  if (!ScanTypes::contains(query.in_dtype(0))) return no("a rare element type");
  const DType axis = query.in_dtype(1);
  return axis == DType::i64 || axis == DType::i32 ? yes() : no("an axis of a rare type");
}

std::unique_ptr<Kernel> prepare_scan(const KernelQuery& query) {
  return std::make_unique<ScanKernel>(query);
}

struct ArgLoops {
  int64_t (*along)(const float*, int64_t, bool, bool);
  void (*across)(const float*, int64_t, int64_t, int64_t, bool, bool, float*, int32_t*);
};

ArgLoops arg_loops(Isa isa) {
  if (isa >= Isa::avx512) return {avx512::arg_along, avx512::arg_across};
  if (isa == Isa::avx2) return {avx2::arg_along, avx2::arg_across};
  return {plain::arg_along, plain::arg_across};
}

class BoundArg : public BoundKernel {
 public:
  BoundArg(const AxisSplit& split, bool least, bool last, ArgLoops loops)
      : split_(split), least_(least), last_(last), loops_(loops) {}

  Fault run(const Arguments& arguments) noexcept override {
    const auto* x = static_cast<const float*>(arguments.in[0]);
    auto* y = static_cast<int64_t*>(arguments.out[0]);
    if (split_.inner == 1) {
      parallel_for(split_.outer, std::max<int64_t>(1, kParallelElements / split_.size),
                   [&](int64_t first, int64_t last) {
                     for (int64_t i = first; i < last; ++i)
                       y[i] = loops_.along(x + i * split_.size, split_.size, least_, last_);
                   });
      return {};
    }
    for_columns(split_, [&](int64_t outer, int64_t column, int64_t width) {
      float best[kColumns];
      int32_t at[kColumns];
      loops_.across(x + outer * split_.size * split_.inner + column, split_.size, split_.inner,
                    width, least_, last_, best, at);
      std::copy_n(at, width, y + outer * split_.inner + column);
    });
    return {};
  }

 private:
  AxisSplit split_;
  bool least_, last_;
  ArgLoops loops_;
};

template <typename Struct>
class ArgKernel : public Kernel {
 public:
  explicit ArgKernel(const KernelQuery& query) : node_(query.node), loops_(arg_loops(query.isa)) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const auto& attrs = *node_.as<Struct>();
    const Shape& x = sizes.in[0];
    if (x.rank() == 0) return nullptr;
    const AxisSplit split = split_axis(x, normalize_axis(attrs.axis, x.rank()));
    if (split.size == 0 || split.size >= int64_t{1} << 31) return nullptr;
    return std::make_unique<BoundArg>(split, std::is_same_v<Struct, ArgMin>,
                                      attrs.select_last_index, loops_);
  }

 private:
  const Node& node_;
  ArgLoops loops_;
};

Verdict accepts_arg(const KernelQuery& query) {
  return query.in_dtype(0) == DType::f32 ? yes() : no("element type other than f32");
}

template <typename Struct>
std::unique_ptr<Kernel> prepare_arg(const KernelQuery& query) {
  return std::make_unique<ArgKernel<Struct>>(query);
}

}  // namespace

void register_scans(Kernels& kernels) {
  for (const Op* op : {&CumSum::op, &CumProd::op})
    kernels.add({.name = "scan/columns",
                 .op = op,
                 .accepts = accepts_scan,
                 .prepare = prepare_scan,
                 .overwrites = first_over_first});
  const auto add_arg = [&](const Op& op, std::unique_ptr<Kernel> (*prepare)(const KernelQuery&)) {
    kernels.add({.name = "arg/lanes", .op = &op, .accepts = accepts_arg, .prepare = prepare});
  };
  add_arg(ArgMax::op, prepare_arg<ArgMax>);
  add_arg(ArgMin::op, prepare_arg<ArgMin>);
}

}  // namespace dais
