#pragma once

#include "config_schema/hints.hpp"

#include <string>
#include <string_view>

namespace sifr::detail {

/// Calls `visit(name, what a value must be, member)` for every hint.
template <class H, class Visit>
void visit_hints(H& hints, Visit&& visit) {
  constexpr std::string_view kSteps = "a whole number from 1 to 1e9";
  constexpr std::string_view kNumber = "a number from 0 to 3.4e38";
  visit("micro_batch", kSteps, hints.micro_batch);
  visit("accumulation", kSteps, hints.accumulation);
  visit("lr", kNumber, hints.lr);
  visit("betas", "two numbers from 0 to below 1, such as 0.9,0.999", hints.betas);
  visit("eps", kNumber, hints.eps);
  visit("weight_decay", kNumber, hints.weight_decay);
  visit("max_grad_norm", kNumber, hints.max_grad_norm);
  visit("warmup_steps", kSteps, hints.warmup_steps);
  visit("total_steps", kSteps, hints.total_steps);
  visit("hidden_size", kSteps, hints.hidden_size);
  visit("precision", "fp32, bf16 or fp16", hints.precision);
}

/// Throws UsageError for a hint that the program has set to what no hint can be.
void check_hints(const Hints& hints);

/// The value of a hint for a message.
[[nodiscard]] std::string hint_text(const Hints& hints, std::string_view name);

}  // namespace sifr::detail
