#include "train/optimisers.h"

#include <algorithm>
#include <cmath>

#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gradient.h"
#include "ops/reduce/reduce.h"

namespace dais::train {
namespace {

using enum OptimiserKind;

Term sum_of_squares(const Term& x) {
  return {*x.graph, x.graph->add(ReduceSumSquare{.keepdims = false}, {x.value})};
}

/// Builds the updates of all parameters; what they share is made once.
class Updater {
 public:
  Updater(Graph& g, const OptimiserOptions& o, const UpdateInputs& inputs)
      : g_(g), o_(o), rate_(g, inputs.rate), step_(g, inputs.step), apply_(g, inputs.apply) {}

  Updates run(const std::vector<Trained>& trained) {
    std::vector<Term> gradients;
    for (const Trained& one : trained) gradients.push_back(clipped_by_value({g_, one.gradient}));
    out_.norm_squared = norm_squared(gradients);
    gate();
    clip_by_norm(gradients);
    make_shared();
    for (const Trained& one : trained)
      out_.states.push_back({one.name, one.before, nullptr, {}, {}});
    for (size_t i = 0; i < trained.size(); ++i) {
      const Term before(g_, trained[i].before);
      at_ = &trained[i];
      const Term after = where(Term(g_, out_.applied), updated(before, gradients[i]), before);
      out_.states[i].after = after;
      if (o_.ema > 0) follow(after);
    }
    return std::move(out_);
  }

 private:
  Term clipped_by_value(const Term& x) {
    if (o_.clip_value <= 0) return x;
    return {g_, g_.add(Clip{}, {x.value, number_like(g_, -o_.clip_value, x),
                                number_like(g_, o_.clip_value, x)})};
  }

  Value* norm_squared(const std::vector<Term>& gradients) {
    Values parts;
    for (const Term& gradient : gradients) parts.push_back(sum_of_squares(gradient));
    if (parts.empty()) return g_.add_constant(Tensor::scalar(0.0f));
    return parts.size() == 1 ? parts[0] : g_.add(Sum{}, parts);
  }

  void gate() {
    // Neither NaN nor infinity is below the largest number.
    Value* largest = number_like(g_, std::numeric_limits<float>::max(), out_.norm_squared);
    Value* finite = g_.add(LessOrEqual{}, {out_.norm_squared, largest});
    out_.applied = g_.add(And{}, {apply_, finite});
  }

  /// g * min(1, limit / (norm + 1e-6)).
  void clip_by_norm(std::vector<Term>& gradients) {
    if (o_.clip_norm <= 0) return;
    const Term norm = apply<Sqrt>({g_, out_.norm_squared});
    const Term factor = o_.clip_norm / (norm + 1e-6);
    const Term bounded(g_, g_.add(Min{}, {factor.value, number_like(g_, 1, factor)}));
    for (Term& gradient : gradients) gradient = gradient * bounded;
  }

  /// Scalars that every parameter uses. Powers near 1 lose their digits in f32.
  void make_shared() {
    const Term done(g_, g_.add(Cast{.to = DType::f64}, {step_}));
    const auto power = [&](double base) {
      return Term(g_, g_.add(Pow{}, {number_like(g_, base, done), (done + 1).value}));
    };
    const auto narrow = [&](const Term& x) {
      return Term(g_, g_.add(Cast{.to = DType::f32}, {x}));
    };
    if (o_.kind == adam || o_.kind == adamw || o_.kind == lamb) {
      const Term rate(g_, g_.add(Cast{.to = DType::f64}, {rate_}));
      const Term correction = 1 - power(o_.beta1);
      step_size_ = narrow(o_.kind == lamb ? 1 / correction : rate / correction).value;
      root_correction_ = narrow(apply<Sqrt>(1 - power(o_.beta2))).value;
    }
    if (o_.kind == adagrad) rate_ = rate_ / narrow(done * o_.rate_decay + 1);
  }

  Term state(const char* what) {
    const Type& type = at_->before->type;
    const std::string name = at_->name + "." + what;
    Value* before = g_.add_input(type, name);
    Tensor zeros(type.dtype, *type.static_shape());
    std::fill_n(zeros.storage<uint8_t>(), zeros.bytes(), uint8_t{0});
    out_.states.push_back({name, before, nullptr, std::move(zeros), {}});
    return {g_, before};
  }

  /// Sets the new value of the state that was asked for last but `back`.
  Term keep(const Term& before, const Term& after) {
    const Term held = where(Term(g_, out_.applied), after, before);
    for (StateEntry& entry : out_.states)
      if (entry.before == before.value) entry.after = held;
    return after;
  }

  double decay() const {
    const bool small = at_->before->type.shape->size() < 2;
    const double wanted = o_.weight_decay.value_or(o_.kind == adamw || o_.kind == lamb ? 0.01 : 0);
    return small && !o_.decay_all ? 0 : wanted;
  }

  double epsilon() const {
    const bool coarse = o_.kind == adadelta || o_.kind == lamb;
    return o_.epsilon.value_or(o_.kind == adagrad ? 1e-10 : coarse ? 1e-6 : 1e-8);
  }

  /// Weight decay as part of the gradient.
  Term with_decay(const Term& x, const Term& gradient) {
    return decay() == 0 ? gradient : gradient + x * decay();
  }

  Term running(const char* name, const Term& value, double keep_share) {
    const Term before = state(name);
    return keep(before, before * keep_share + value * (1 - keep_share));
  }

  Term updated(const Term& x, const Term& gradient) {
    switch (o_.kind) {
      case sgd: return x - rate_ * by_momentum(with_decay(x, gradient), o_.dampening, o_.nesterov);
      case adagrad: return by_adagrad(x, with_decay(x, gradient));
      case rmsprop: return by_rmsprop(x, with_decay(x, gradient));
      case adadelta: return by_adadelta(x, with_decay(x, gradient));
      case adam: return x - Term(g_, step_size_) * moment_ratio(with_decay(x, gradient));
      case adamw: {
        const Term kept = decay() == 0 ? x : x * (1 - rate_ * decay());
        return kept - Term(g_, step_size_) * moment_ratio(gradient);
      }
      case lamb: return by_lamb(x, gradient);
    }
    return x;
  }

  Term by_momentum(const Term& gradient, double dampening, bool nesterov) {
    if (o_.momentum == 0) return gradient;
    const Term before = state("momentum");
    Term fresh = gradient;
    if (dampening != 0) {
      // The first step takes the gradient whole.
      const Term first(g_, g_.add(Equal{}, {step_, number_like(g_, 0, step_)}));
      const Term one(g_, number_like(g_, 1, gradient));
      fresh = gradient * where(first, one, 1 - dampening);
    }
    const Term after = keep(before, before * o_.momentum + fresh);
    return nesterov ? gradient + after * o_.momentum : after;
  }

  Term by_adagrad(const Term& x, const Term& gradient) {
    const Term before = state("sum");
    const Term sum = keep(before, before + gradient * gradient);
    return x - rate_ * (gradient / (apply<Sqrt>(sum) + epsilon()));
  }

  Term by_rmsprop(const Term& x, const Term& gradient) {
    const double share = o_.rho.value_or(0.99);
    const Term squares = running("square", gradient * gradient, share);
    Term spread = squares;
    if (o_.centered) {
      const Term mean = running("mean", gradient, share);
      spread = squares - mean * mean;
    }
    const Term scaled = gradient / (apply<Sqrt>(spread) + epsilon());
    return x - rate_ * by_momentum(scaled, 0, false);
  }

  Term by_adadelta(const Term& x, const Term& gradient) {
    const double share = o_.rho.value_or(0.9);
    const Term squares = running("square", gradient * gradient, share);
    const Term steps = state("delta");
    const Term step = apply<Sqrt>(steps + epsilon()) / apply<Sqrt>(squares + epsilon()) * gradient;
    keep(steps, steps * share + step * step * (1 - share));
    return x - rate_ * step;
  }

  /// First moment over the root of the second, the second corrected for its start from zero.
  Term moment_ratio(const Term& gradient) {
    const Term first = running("moment1", gradient, o_.beta1);
    const Term second = running("moment2", gradient * gradient, o_.beta2);
    return first / (apply<Sqrt>(second) / Term(g_, root_correction_) + epsilon());
  }

  Term by_lamb(const Term& x, const Term& gradient) {
    Term direction = moment_ratio(gradient) * Term(g_, step_size_);
    if (decay() != 0) direction = direction + x * decay();
    const Term size = apply<Sqrt>(sum_of_squares(x));
    const Term length = apply<Sqrt>(sum_of_squares(direction));
    const Term one(g_, number_like(g_, 1, size));
    // Where either is zero the direction is taken as it is.
    const Term ratio = where(length > 0, where(size > 0, size / length, 1), one);
    return x - rate_ * ratio * direction;
  }

  void follow(const Term& weights) {
    const Term before = state("ema");
    out_.states.back().initial = {};
    out_.states.back().starts_as = at_->name;
    keep(before, before * o_.ema + weights * (1 - o_.ema));
  }

  Graph& g_;
  const OptimiserOptions& o_;
  Term rate_, step_, apply_;
  Value *step_size_ = nullptr, *root_correction_ = nullptr;
  const Trained* at_ = nullptr;
  Updates out_;
};

void require(bool holds, const char* problem, const char* flag) {
  if (!holds) throw Error(Code::invalid_argument, problem, flag);
}

}  // namespace

const std::vector<std::string>& optimiser_names() {
  static const std::vector<std::string> names{"sgd",  "adagrad", "rmsprop", "adadelta",
                                              "adam", "adamw",   "lamb"};
  return names;
}

OptimiserKind optimiser_from_name(std::string_view name) {
  const auto& names = optimiser_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<OptimiserKind>(found - names.begin());
  const std::string guess = nearest(name, names);
  throw Error(Code::invalid_argument, "'" + std::string(name) + "' is no optimiser", "--optimiser",
              guess.empty() ? "Use sgd, adagrad, rmsprop, adadelta, adam, adamw or lamb"
                            : "Did you mean " + guess + "?");
}

std::string_view optimiser_name(OptimiserKind kind) {
  return optimiser_names()[static_cast<size_t>(kind)];
}

double usual_rate(OptimiserKind kind) {
  switch (kind) {
    case sgd:
    case adagrad:
    case rmsprop: return 0.01;
    case adadelta: return 1;
    default: return 0.001;
  }
}

void OptimiserOptions::check() const {
  const auto share = [](double x) { return x >= 0 && x < 1; };
  require(share(momentum), "momentum lies between 0 and 1", "--momentum");
  require(share(beta1) && share(beta2), "betas lie between 0 and 1", "--beta1, --beta2");
  require(!rho || share(*rho), "rho lies between 0 and 1", "--rho");
  require(!epsilon || *epsilon > 0, "epsilon is above 0", "--epsilon");
  require(!weight_decay || *weight_decay >= 0, "weight decay is not below 0", "--weight-decay");
  require(!nesterov || (momentum > 0 && dampening == 0), "Nesterov needs momentum and no dampening",
          "--nesterov");
  require(clip_norm >= 0 && clip_value >= 0, "limits are not below 0", "--clip-norm");
  require(share(ema), "the decay of the mean lies between 0 and 1", "--ema");
}

Updates add_updates(Graph& graph, const OptimiserOptions& options,
                    const std::vector<Trained>& trained, const UpdateInputs& inputs) {
  return Updater(graph, options, inputs).run(trained);
}

}  // namespace dais::train
