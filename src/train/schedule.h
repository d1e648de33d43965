#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dais::train {

/// How the learning rate follows the course of training.
enum class Policy : uint8_t {
  fixed,        ///< rate
  step,         ///< rate * gamma^floor(t / step)
  multistep,    ///< rate * gamma^(milestones passed)
  exponential,  ///< rate * gamma^t
  inverse,      ///< rate * (1 + gamma * t)^-power
  polynomial,   ///< rate * (1 - t / length)^power, then `floor`
  sigmoid,      ///< rate / (1 + exp(gamma * (t - middle)))
  cosine,       ///< from rate to floor along half a cosine
  one_cycle,    ///< from rate / divide up to rate, then down to rate / divide / final_divide
};

/// A learning rate as a function of the update number. Lengths are in updates; `step`,
/// `milestones` and `middle` are given as parts of the whole length (0.33 is a third of the way).
/// Rates by `exponential`, `inverse` and `sigmoid` count t in percent of the length, so that one
/// setting serves any length.
struct Schedule {
  Policy policy = Policy::fixed;
  double rate = 0.01;
  double gamma = 0.1;
  double step = 1.0 / 3;
  std::vector<double> milestones = {0.5, 0.85};
  double power = 1;
  double middle = 0.5;
  double floor = 0;           ///< lowest rate of cosine and polynomial
  double rise = 0.3;          ///< one_cycle: part of the length that goes up
  double divide = 25;         ///< one_cycle: rate / divide at the start
  double final_divide = 1e4;  ///< one_cycle: start rate / final_divide at the end
  int64_t warm_up = 0;        ///< updates of linear rise from `warm_up_from` * rate, before any
  double warm_up_from = 0;    ///< part of the rate that warm-up starts at
  int64_t length = 1;         ///< updates in all, warm-up among them

  /// The rate of update `update` (from 0). Beyond the length the last rate stays.
  double at(int64_t update) const;
  /// Throws `invalid_argument` naming the setting that is outside its range.
  void check() const;
};

/// "fixed", "step", … ; throws `invalid_argument` with the nearest.
Policy policy_from_name(std::string_view name);
std::string_view policy_name(Policy policy);
const std::vector<std::string>& policy_names();
/// The gamma and power that a policy takes when none are given.
void set_policy_defaults(Schedule& schedule);

}  // namespace dais::train
