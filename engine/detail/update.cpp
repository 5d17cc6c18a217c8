#include "device/detail/log.hpp"
#include "engine/detail/engine_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

// EngineState: the update at a step's boundary, by the rules 6 to 9 of docs/numerics.md.
namespace sifr::detail {

void EngineState::reach_boundary(StepReport& report) {
  if (options_.reduce_at_boundary) {
    reducer_.reduce_accumulators();
    reducer_.wait();
  }
  reducer_.clear_missing_sums();
  const ShardedOptimizer::Norm norm = agree_on_norm();
  notice_unused_units();
  const double weight = report.weight;
  if (!std::isfinite(static_cast<float>(1 / weight))) {
    end_step();
    throw UsageError(
        fmt::format("step(): the weights of all ranks and micro-batches of this step add up to {}: "
                    "nothing can be averaged",
                    weight));
  }
  report.step = ++steps_;
  if (norm.non_finite >= 0) return refuse(report, norm.non_finite);
  report.gradient_norm = std::sqrt(norm.squares.value()) / weight;
  const double clip = config_.gradient_clipping;
  const double coefficient = clip > 0 ? std::min(1.0, clip / (report.gradient_norm + 1e-6)) : 1.0;
  optimizer_.update({.lr = report.lr,
                     .update = updates_ + 1,
                     .factor = static_cast<float>(coefficient / weight)});
  publish_weights(WeightStore::Which::kTrainable);
  report.updates = ++updates_;
  report.outcome = Outcome::kUpdated;
  end_step();
  print(report);
}

// The exact sum over ranks, and the first parameter of any rank with a sum that is not finite.
ShardedOptimizer::Norm EngineState::agree_on_norm() {
  ShardedOptimizer::Norm own = optimizer_.squared_norm();
  own.squares.normalise();
  norms_.resize(static_cast<std::size_t>(communicator_.size()));
  communicator_.exchange(std::as_bytes(std::span(&own, 1)),
                         std::as_writable_bytes(std::span(norms_)),
                         {"gradient norm"});
  ShardedOptimizer::Norm all;
  for (const ShardedOptimizer::Norm& norm : norms_) {
    all.squares.add(norm.squares);
    if (norm.non_finite >= 0 && (all.non_finite < 0 || norm.non_finite < all.non_finite))
      all.non_finite = norm.non_finite;
  }
  return all;
}

bool EngineState::skips_non_finite() const {
  if (config_.sifr.non_finite) return *config_.sifr.non_finite == NonFinite::kSkip;
  return config_.bf16.enabled && config_.bf16.check_grad_overflow;
}

// A sum is not finite: the step's gradients are dropped, weights and schedule stay.
void EngineState::refuse(StepReport& report, std::int64_t parameter) {
  report.gradient_norm = std::numeric_limits<double>::infinity();
  report.outcome = Outcome::kSkipped;
  report.skipped = ++skipped_;
  end_step();
  std::string text = fmt::format(
      "step {}: the gradient of '{}' is not finite", report.step, parameter_name(parameter));
  if (config_.sifr.debug) {
    text +=
        " (debug mode is on: what is read outside its lease is NaN; look for a pointer that is "
        "kept)";
  }
  if (!skips_non_finite()) {
    throw NumericsError(
        text +
        ": weights are untouched; lower the learning rate, check the data, or set \"sifr\": "
        "{\"non_finite\": \"skip\"}");
  }
  if (context_.rank() == 0)
    log(context_.log(), 0, "engine", Level::kWarning, "{}: the update is skipped", text);
}

const std::string& EngineState::parameter_name(std::int64_t number) const {
  for (const UnitLayout& unit : layout_.units()) {
    for (const ParameterLayout& parameter : unit.parameters) {
      if (parameter.index == number) return parameter.spec.name;
    }
  }
  throw UsageError(fmt::format("no parameter has number {}", number));
}

}  // namespace sifr::detail
