#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace dais::train {
namespace {

/// From a to b along half a cosine, as `part` goes from 0 to 1.
double cosine_between(double a, double b, double part) {
  return b + (a - b) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

double one_cycle(const Schedule& s, double part) {
  const double start = s.rate / s.divide;
  if (part < s.rise) return cosine_between(start, s.rate, part / s.rise);
  return cosine_between(s.rate, start / s.final_divide, (part - s.rise) / (1 - s.rise));
}

/// The rate when `part` of the length (without warm-up) is done.
double rate_of(const Schedule& s, double part) {
  const double percent = 100 * part;
  switch (s.policy) {
    case Policy::fixed: return s.rate;
    // The small addend keeps a boundary that rounding put just below a whole number.
    case Policy::step: return s.rate * std::pow(s.gamma, std::floor(part / s.step + 1e-9));
    case Policy::multistep: {
      const auto passed = std::count_if(s.milestones.begin(), s.milestones.end(),
                                        [&](double at) { return part >= at - 1e-12; });
      return s.rate * std::pow(s.gamma, static_cast<double>(passed));
    }
    case Policy::exponential: return s.rate * std::pow(s.gamma, percent);
    case Policy::inverse: return s.rate * std::pow(1 + s.gamma * percent, -s.power);
    case Policy::polynomial:
      return std::max(s.floor, s.rate * std::pow(std::max(0.0, 1 - part), s.power));
    case Policy::sigmoid: return s.rate / (1 + std::exp(s.gamma * (percent - 100 * s.middle)));
    case Policy::cosine: return cosine_between(s.rate, s.floor, part);
    case Policy::one_cycle: return one_cycle(s, part);
  }
  return s.rate;
}

void require(bool holds, const char* problem, const char* flag) {
  if (!holds) throw Error(Code::invalid_argument, problem, flag);
}

}  // namespace

double Schedule::at(int64_t update) const {
  if (update < warm_up) {
    const double part = static_cast<double>(update + 1) / static_cast<double>(warm_up);
    return rate_of(*this, 0) * (warm_up_from + (1 - warm_up_from) * part);
  }
  // Curves with an end reach it at the last update.
  const bool ends = policy == Policy::cosine || policy == Policy::one_cycle;
  const int64_t steps = std::max<int64_t>(1, length - warm_up - (ends ? 1 : 0));
  const double done = static_cast<double>(update - warm_up) / static_cast<double>(steps);
  return rate_of(*this, std::clamp(done, 0.0, 1.0));
}

void Schedule::check() const {
  require(std::isfinite(rate) && rate >= 0, "the learning rate must be a number from 0", "--lr");
  require(std::isfinite(gamma) && gamma >= 0, "the factor must be a number from 0", "--lr-gamma");
  require(step > 0 && step <= 1, "a step is a part of the length, above 0 up to 1", "--lr-step");
  for (double at : milestones)
    require(at > 0 && at <= 1, "milestones are parts of the length, above 0 up to 1",
            "--lr-milestones");
  require(std::isfinite(power), "the power must be a number", "--lr-power");
  require(floor >= 0 && floor <= rate, "the lowest rate lies between 0 and the rate", "--lr-floor");
  require(rise > 0 && rise < 1, "the rise is a part of the length, between 0 and 1", "--lr-rise");
  require(warm_up >= 0 && (warm_up < length || length <= 1),
          "warm-up must end before the training does", "--warm-up");
}

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"fixed",       "step",    "multistep",
                                              "exponential", "inverse", "polynomial",
                                              "sigmoid",     "cosine",  "one-cycle"};
  return names;
}

Policy policy_from_name(std::string_view name) {
  const auto& names = policy_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<Policy>(found - names.begin());
  const std::string guess = nearest(name, names);
  throw Error(Code::invalid_argument, "'" + std::string(name) + "' is no learning-rate policy",
              "--lr-policy",
              guess.empty() ? "Use fixed, step, multistep, exponential, inverse, polynomial, "
                              "sigmoid, cosine or one-cycle"
                            : "Did you mean " + guess + "?");
}

std::string_view policy_name(Policy policy) { return policy_names()[static_cast<size_t>(policy)]; }

void set_policy_defaults(Schedule& s) {
  if (s.policy == Policy::multistep) s.gamma = 0.5;
  if (s.policy == Policy::exponential) s.gamma = 0.95;
  if (s.policy == Policy::polynomial) s.power = 3;
  if (s.policy == Policy::inverse) s.power = 0.5;
}

}  // namespace dais::train
