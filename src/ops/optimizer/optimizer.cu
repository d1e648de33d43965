// Steps of optimisers, all of a tensor's state in one pass: each of weight, gradient and moments is
// read once and written once, four elements by a thread where the count allows. Bound by memory.
// Learning rate and number of updates come from memory, so that a recorded launch takes those of its
// own step. Outputs may be the inputs.
//
// Compiled with: no options
#include "pack.cuh"

struct AdamRule {
  float alpha, beta, epsilon, norm, norm_post;
};
struct MomentumRule {
  float alpha, beta, norm;
  int nesterov;
};
struct AdagradRule {
  float decay, epsilon, norm;
};

/// Calls body(weight, gradient, first, second) by reference on every element.
template <typename Body>
__device__ __forceinline__ void each_weight(const float* x, const float* g, const float* v,
                                            const float* h, float* new_x, float* new_v,
                                            float* new_h, Size count, Body body) {
  if (count % 4 == 0) {
    each_element(count / 4, [&](Size quad) {
      const Size i = 4 * quad;
      auto px = load_pack<4>(x + i);
      const auto pg = load_pack<4>(g + i);
      auto pv = load_pack<4>(v + i);
      auto ph = h ? load_pack<4>(h + i) : pv;
#pragma unroll
      for (int k = 0; k < 4; ++k) body(px.at[k], pg.at[k], pv.at[k], ph.at[k]);
      store_pack(new_x + i, px);
      store_pack(new_v + i, pv);
      if (h) store_pack(new_h + i, ph);
    });
  } else {
    each_element(count, [&](Size i) {
      float weight = x[i], first = v[i], second = h ? h[i] : 0.0f;
      body(weight, g[i], first, second);
      new_x[i] = weight;
      new_v[i] = first;
      if (h) new_h[i] = second;
    });
  }
}

extern "C" __global__ void __launch_bounds__(256)
    adam(const float* rate, const int64* updates, const float* x, const float* g, const float* v,
         const float* h, float* new_x, float* new_v, float* new_h, Size count, AdamRule rule) {
  const double done = static_cast<double>(*updates);
  const float step =
      *updates == 0 ? *rate
                    : static_cast<float>(*rate * sqrt(1 - pow(double(rule.beta), done)) /
                                         (1 - pow(double(rule.alpha), done)));
  each_weight(x, g, v, h, new_x, new_v, new_h, count,
              [&](float& weight, float gradient, float& first, float& second) {
                gradient += rule.norm * weight;
                first = rule.alpha * first + (1 - rule.alpha) * gradient;
                second = rule.beta * second + (1 - rule.beta) * gradient * gradient;
                weight -= step * first / (sqrtf(second) + rule.epsilon);
                weight *= 1 - rule.norm_post;
              });
}

extern "C" __global__ void __launch_bounds__(256)
    momentum(const float* rate, const int64* updates, const float* x, const float* g,
             const float* v, float* new_x, float* new_v, Size count, MomentumRule rule) {
  const float beta = *updates == 0 ? 1.0f : rule.beta, step = *rate;
  each_weight(x, g, v, nullptr, new_x, new_v, nullptr, count,
              [&](float& weight, float gradient, float& first, float&) {
                gradient += rule.norm * weight;
                first = rule.alpha * first + beta * gradient;
                weight -= step * (rule.nesterov ? gradient + rule.alpha * first : first);
              });
}

extern "C" __global__ void __launch_bounds__(256)
    adagrad(const float* rate, const int64* updates, const float* x, const float* g, const float* h,
            float* new_x, float* new_h, Size count, AdagradRule rule) {
  const float step = *rate / (1 + static_cast<float>(*updates) * rule.decay);
  each_weight(x, g, h, nullptr, new_x, new_h, nullptr, count,
              [&](float& weight, float gradient, float& squares, float&) {
                gradient += rule.norm * weight;
                squares += gradient * gradient;
                weight -= step * gradient / (sqrtf(squares) + rule.epsilon);
              });
}
