#include "ops/rnn/rnn.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

constexpr int64_t kLength = 4, kBatch = 9, kInput = 5, kHidden = 19;
constexpr RowTolerance kTolerance{.relative = 1e-4, .absolute = 1e-4};

Tensor lengths() {
  Tensor out(DType::i32, Shape{kBatch});
  for (int64_t n = 0; n < kBatch; ++n)
    out.data<int32_t>()[static_cast<size_t>(n)] = static_cast<int32_t>((n * 2) % (kLength + 1));
  return out;
}

struct Form {
  const char* direction;
  int64_t layout;
  bool lengths;
  int64_t directions() const { return std::string(direction) == "bidirectional" ? 2 : 1; }
  Shape state() const {
    return layout == 1 ? Shape{kBatch, directions(), kHidden}
                       : Shape{directions(), kBatch, kHidden};
  }
  Shape y() const {
    return layout == 1 ? Shape{kBatch, kLength, directions(), kHidden}
                       : Shape{kLength, directions(), kBatch, kHidden};
  }
  Shape kept(int64_t width) const { return {directions(), kLength, kBatch, width * kHidden}; }
};
constexpr Form kForms[] = {{"forward", 0, false},
                           {"reverse", 1, true},
                           {"bidirectional", 0, true},
                           {"bidirectional", 1, false}};

/// What the layer keeps for its gradient.
template <typename S>
void check_kept(S attrs, int64_t gates, size_t outputs) {
  for (const Form& form : kForms) {
    attrs.direction = form.direction;
    attrs.layout = form.layout;
    const int64_t d = form.directions(), rows = gates * kHidden;
    const Shape x =
        form.layout == 1 ? Shape{kBatch, kLength, kInput} : Shape{kLength, kBatch, kInput};
    std::vector<Tensor> in{sample<float>(x, 1, 1),
                           sample<float>(Shape{d, rows, kInput}, 0.4, 2),
                           sample<float>(Shape{d, rows, kHidden}, 0.3, 3),
                           sample<float>(Shape{d, 2 * rows}, 0.5, 4),
                           form.lengths ? lengths() : Tensor(),
                           sample<float>(form.state(), 1, 5)};
    if (gates == 4) in.push_back(sample<float>(form.state(), 1, 6));
    EXPECT_GT(check_rows(attrs, in, kTolerance, {}, outputs), 0);
  }
}

TEST(RecurrentRows, KeepWhatTheGradientNeeds) {
  check_kept(GRU{}, 3, 4);
  check_kept(GRU{.linear_before_reset = true}, 3, 4);
  check_kept(LSTM{}, 4, 5);
}

template <typename S>
void check_back(S attrs, int64_t gates, int64_t kept, size_t outputs) {
  for (const Form& form : kForms) {
    attrs.direction = form.direction;
    attrs.layout = form.layout;
    const int64_t d = form.directions();
    const bool lstm = gates == 4;
    std::vector<Tensor> in(lstm ? 11 : gates == 3 ? 10 : 9);
    in[0] = sample<float>(form.y(), 1, 1);
    in[1] = sample<float>(form.state(), 1, 2);
    in[3] = sample<float>(Shape{d, gates * kHidden, kHidden}, 0.3, 4);
    if (form.lengths) in[4] = lengths();
    in[5] = sample<float>(form.state(), 1, 5);
    in[8] = sample<float>(form.y(), 1, 6);
    if (gates > 1) in[9] = sample<float>(form.kept(kept), 1, 7);
    if (lstm) {
      in[2] = sample<float>(form.state(), 1, 3);
      in[6] = sample<float>(form.state(), 1, 8);
      in[10] = sample<float>(form.kept(1), 1, 9);
    }
    EXPECT_GT(check_rows(attrs, in, kTolerance, {}, outputs), 0);
  }
}

TEST(RecurrentRows, GoBackThroughTime) {
  check_back(RNNBackward{}, 1, 1, 3);
  check_back(GRUBackward{.flag = true}, 3, 4, 4);
  check_back(LSTMBackward{}, 4, 4, 4);
  check_back(LSTMBackward{.flag = true}, 4, 4, 4);
}

/// In bf16 the rows round states and slopes, by 2^-9 of each, before they meet R, whose rows of 19
/// numbers up to 0.3 let the errors grow by less than twice in each of four steps; the reference
/// rounds results alone.
constexpr RowTolerance kHalfTolerance{.relative = 0x1p-7, .absolute = 16 * 0x1p-9};

template <typename S, typename B>
void check_halves(S attrs, B back, int64_t gates) {
  if (cpu::machine_isa() < Isa::amx) GTEST_SKIP() << "needs the tile unit";
  for (const Form& form : {Form{"forward", 0, false}, Form{"reverse", 1, false},
                           Form{"bidirectional", 0, false}, Form{"bidirectional", 1, false}}) {
    attrs.direction = back.direction = form.direction;
    attrs.layout = back.layout = form.layout;
    const int64_t d = form.directions(), rows = gates * kHidden;
    const Shape x =
        form.layout == 1 ? Shape{kBatch, kLength, kInput} : Shape{kLength, kBatch, kInput};
    const Tensor r = in_half(sample<float>(Shape{d, rows, kHidden}, 0.3, 3));
    std::vector<Tensor> in{in_half(sample<float>(x, 1, 1)),
                           in_half(sample<float>(Shape{d, rows, kInput}, 0.4, 2)), r,
                           in_half(sample<float>(Shape{d, 2 * rows}, 0.5, 4))};
    EXPECT_GT(check_rows(attrs, in, kHalfTolerance, {}, gates == 4 ? 5 : 4), 0);
    std::vector<Tensor> given(gates == 4 ? 11 : 10);
    given[0] = in_half(sample<float>(form.y(), 1, 1));
    given[3] = r;
    given[8] = in_half(sample<float>(form.y(), 1, 6));
    given[9] = in_half(sample<float>(form.kept(4), 1, 7));
    if (gates == 4) given[10] = in_half(sample<float>(form.kept(1), 1, 9));
    EXPECT_GT(check_rows(back, given, kHalfTolerance, {}, 4), 0);
  }
}

TEST(HalfRecurrentRows, AgreeWithTheReference) {
  check_halves(GRU{.linear_before_reset = true}, GRUBackward{.flag = true}, 3);
  check_halves(LSTM{}, LSTMBackward{}, 4);
  check_halves(LSTM{.input_forget = true}, LSTMBackward{.flag = true}, 4);
}

}  // namespace
}  // namespace dais
