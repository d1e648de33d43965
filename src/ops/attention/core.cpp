#include "ops/attention/core.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"

namespace dais {
namespace {

/// Scores of one query against all keys, and what becomes of them.
class Query {
 public:
  Query(const AttentionSizes& sizes, const ScoreStage* stage)
      : s_(sizes),
        stage_(stage),
        scores_(static_cast<size_t>(sizes.kv_length)),
        mask_(scores_.size()) {}

  std::vector<double>& mask() { return mask_; }

  void run(const double* q, const double* k, const double* v, const double* sink, double* y,
           double* seen) {
    for (int64_t j = 0; j < s_.kv_length; ++j) {
      double sum = 0;
      for (int64_t d = 0; d < s_.head; ++d) sum += q[d] * k[j * s_.head + d];
      scores_[static_cast<size_t>(j)] = sum * s_.scale;
    }
    show(ScoreStage::scaled, seen);
    if (s_.softcap > 0)
      for (double& score : scores_) score = s_.softcap * std::tanh(score / s_.softcap);
    show(ScoreStage::capped, seen);
    for (size_t j = 0; j < scores_.size(); ++j)
      scores_[j] = hidden(j) ? -INFINITY : scores_[j] + mask_[j];
    show(ScoreStage::masked, seen);
    normalize(sink);
    show(ScoreStage::probabilities, seen);
    std::fill(y, y + s_.v_head, 0.0);
    for (size_t j = 0; j < scores_.size(); ++j) {
      if (hidden(j)) continue;
      const double* from = v + static_cast<int64_t>(j) * s_.v_head;
      for (int64_t d = 0; d < s_.v_head; ++d) y[d] += scores_[j] * from[d];
    }
  }

 private:
  bool hidden(size_t j) const { return mask_[j] == -INFINITY; }

  void show(ScoreStage stage, double* seen) const {
    if (stage_ && *stage_ == stage) std::copy(scores_.begin(), scores_.end(), seen);
  }

  void normalize(const double* sink) {
    double top = sink ? *sink : -INFINITY;
    for (const double score : scores_) top = std::fmax(top, score);
    double sum = sink ? std::exp(*sink - top) : 0;
    for (size_t j = 0; j < scores_.size(); ++j) {
      // Every key masked: the row is zero, not the NaN of -inf minus -inf.
      scores_[j] = hidden(j) || scores_[j] == -INFINITY ? 0 : std::exp(scores_[j] - top);
      sum += scores_[j];
    }
    if (sum != 0)
      for (double& score : scores_) score /= sum;
  }

  const AttentionSizes& s_;
  const ScoreStage* stage_;
  std::vector<double> scores_, mask_;
};

}  // namespace

AttentionResult attend(const AttentionSizes& s, const std::vector<double>& q,
                       const std::vector<double>& k, const std::vector<double>& v,
                       const AddMask& mask, const std::vector<double>& sink,
                       const ScoreStage* stage) {
  AttentionResult out;
  const int64_t lines = s.batch * s.q_heads;
  out.y.resize(static_cast<size_t>(lines * s.q_length * s.v_head));
  if (stage) out.scores.resize(static_cast<size_t>(lines * s.q_length * s.kv_length));
  const int64_t group = s.kv_heads ? s.q_heads / s.kv_heads : 1;
  parallel_for(lines, 1, [&](int64_t first, int64_t last) {
    Query query(s, stage);
    for (int64_t line = first; line < last; ++line) {
      const int64_t batch = line / s.q_heads, head = line % s.q_heads;
      const int64_t kv = (batch * s.kv_heads + head / group) * s.kv_capacity;
      for (int64_t i = 0; i < s.q_length; ++i) {
        const int64_t row = line * s.q_length + i;
        std::fill(query.mask().begin(), query.mask().end(), 0.0);
        if (mask) mask(batch, head, i, query.mask().data());
        query.run(q.data() + row * s.head, k.data() + kv * s.head, v.data() + kv * s.v_head,
                  sink.empty() ? nullptr : &sink[static_cast<size_t>(head)],
                  out.y.data() + row * s.v_head,
                  stage ? out.scores.data() + row * s.kv_length : nullptr);
      }
    }
  });
  return out;
}

std::vector<double> swap_heads(const std::vector<double>& values, int64_t batch, int64_t length,
                               int64_t heads, int64_t size) {
  std::vector<double> out(values.size());
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t l = 0; l < length; ++l)
      for (int64_t h = 0; h < heads; ++h)
        std::copy_n(values.begin() + ((n * length + l) * heads + h) * size, size,
                    out.begin() + ((n * heads + h) * length + l) * size);
  return out;
}

}  // namespace dais
