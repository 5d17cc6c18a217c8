#pragma once

#include "./config.hpp"

#include <cstdint>

namespace sifr {

/// How a step's samples are split; train = micro × accumulation × ranks.
struct BatchPlan {
  std::int64_t train = 0;         ///< samples per step, all ranks
  std::int64_t micro = 0;         ///< samples per rank and micro-batch
  std::int64_t accumulation = 0;  ///< micro-batches per step
  bool operator==(const BatchPlan&) const = default;
};

/// Completes the three batch keys for `world` data-parallel ranks, as DeepSpeed does: what is
/// missing is computed by integer division, then all must fit. Throws ConfigError otherwise.
[[nodiscard]] SIFR_API BatchPlan resolve_batch(const Config& config, int world);

}  // namespace sifr
