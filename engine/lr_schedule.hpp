#pragma once

#include "../config_schema/config.hpp"

#include <cstdint>
#include <functional>

namespace sifr {

/// The learning rate of an update; `update` counts the updates applied before it, from 0. Skipped
/// steps do not count. Called with the same argument on every rank, and must give the same value.
using Schedule = std::function<double(std::int64_t update)>;

/// The schedule that a config names, with DeepSpeed's values to the bit. `base_lr` is the
/// optimizer's lr.
///
/// DeepSpeed's scheduler sets a first value when it is made and counts t = 0, 1, … with its steps,
/// one after each update. So update 0 runs with the value of its making, update k > 0 with the one
/// of t = k - 1, and the first two updates of the warm-ups both run with the lowest lr
/// (WarmupCosineLR: 0, then base_lr × warmup_min_ratio).
///
///     update      0     1     2     3     4     5     6   …
///     t                 0     1     2     3     4     5   …
///     WarmupLR    min   min   rising …        max   max   …     (warmup_num_steps 4)
///
/// Throws UsageError for a section that no file could hold: warmup_num_steps below 1, or without
/// total_num_steps where its type needs it.
[[nodiscard]] SIFR_API Schedule make_schedule(const SchedulerConfig& config, double base_lr);

}  // namespace sifr
